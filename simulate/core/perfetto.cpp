#include "perfetto.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <string_view>

namespace simfa {

namespace {

// Field numbers of perfetto/trace/*.proto, version 59.
namespace trace {
constexpr int packet = 1;
}
namespace packet {
constexpr int timestamp = 8;
constexpr int sequence_id = 10;
constexpr int track_event = 11;
constexpr int interned_data = 12;
constexpr int sequence_flags = 13;
constexpr int track_descriptor = 60;
constexpr std::uint64_t state_cleared = 1;
constexpr std::uint64_t needs_state = 2;
}  // namespace packet
namespace event {
constexpr int debug_annotations = 4;
constexpr int type = 9;
constexpr int name_iid = 10;
constexpr int track_uuid = 11;
constexpr int double_counter_value = 44;
constexpr std::uint64_t slice_begin = 1;
constexpr std::uint64_t slice_end = 2;
constexpr std::uint64_t counter = 4;
}  // namespace event
namespace annotation {
constexpr int name_iid = 1;
constexpr int int_value = 4;
}  // namespace annotation
namespace descriptor {
constexpr int uuid = 1;
constexpr int name = 2;
constexpr int parent_uuid = 5;
constexpr int counter = 8;
constexpr int child_ordering = 11;
constexpr int sibling_order_rank = 12;
constexpr int unit_name = 6;  // of the counter
constexpr std::uint64_t explicit_order = 3;
}  // namespace descriptor
namespace interned {
constexpr int event_names = 2;
constexpr int annotation_names = 3;
constexpr int iid = 1;
constexpr int name = 2;
}  // namespace interned

constexpr std::array<const char*, 3> kArguments = {"start_cycle", "cycles", "ordinal"};  // interned as 1, 2, 3
constexpr std::uint64_t kSequence = 1;

// A message being built, in the wire format of protocol buffers: a key (field number and type), then the value.
class ProtoMessage {
  public:
    void number(int field, std::uint64_t value) {
        varint(static_cast<std::uint64_t>(field) << 3);
        varint(value);
    }
    void text(int field, std::string_view value) {
        varint(static_cast<std::uint64_t>(field) << 3 | 2);
        varint(value.size());
        bytes_.append(value);
    }
    void message(int field, const ProtoMessage& value) { text(field, value.bytes_); }

    std::string& bytes() { return bytes_; }

  private:
    void varint(std::uint64_t value) {
        std::array<char, 10> encoded;
        std::size_t length = 0;
        for (; value >= 0x80; value >>= 7) encoded[length++] = static_cast<char>(value | 0x80);
        encoded[length++] = static_cast<char>(value);
        bytes_.append(encoded.data(), length);
    }

    std::string bytes_;
};

std::uint64_t uuid_of(std::int32_t track) { return static_cast<std::uint64_t>(track) + 1; }  // 0 stands for none

ProtoMessage interned_name(std::uint64_t iid, std::string_view name) {
    ProtoMessage message;
    message.number(interned::iid, iid);
    message.text(interned::name, name);
    return message;
}

// Packets of events, one after the other. Each is written in one go: its messages are shorter than 128 bytes, so that
// their lengths take one byte, which is filled in last.
class Events {
  public:
    Events(double ns_per_cycle, std::size_t bytes) : ns_per_cycle_(ns_per_cycle) { all_.reserve(bytes); }

    void begin(std::uint64_t type, std::int32_t track, std::int64_t cycle) {
        at_ = buffer_.data();
        open(trace::packet);
        number(packet::timestamp, static_cast<std::uint64_t>(std::llround(static_cast<double>(cycle) * ns_per_cycle_)));
        number(packet::sequence_id, kSequence);
        number(packet::sequence_flags, packet::needs_state);
        event_ = open(packet::track_event);
        number(event::type, type);
        number(event::track_uuid, uuid_of(track));
    }
    void number(int field, std::uint64_t value) {
        key(field, 0);
        for (; value >= 0x80; value >>= 7) *at_++ = static_cast<char>(value | 0x80);
        *at_++ = static_cast<char>(value);
    }
    void fixed(int field, double value) {
        key(field, 1);
        const auto bits = std::bit_cast<std::uint64_t>(value);
        for (int byte = 0; byte < 8; ++byte) *at_++ = static_cast<char>(bits >> (8 * byte));
    }
    void argument(std::uint64_t name, std::int64_t value) {
        char* const start = open(event::debug_annotations);
        number(annotation::name_iid, name);
        number(annotation::int_value, static_cast<std::uint64_t>(value));
        close(start);
    }
    void end() {
        close(event_);
        close(buffer_.data() + 2);
        all_.append(buffer_.data(), static_cast<std::size_t>(at_ - buffer_.data()));
    }
    std::string take() { return std::move(all_); }

  private:
    // Field numbers here take one byte below 16, else two.
    void key(int field, int type) {
        const unsigned value = static_cast<unsigned>(field) << 3 | static_cast<unsigned>(type);
        if (value >= 0x80) *at_++ = static_cast<char>(value | 0x80);
        *at_++ = static_cast<char>(value >= 0x80 ? value >> 7 : value);
    }
    // Begins a message; its contents start at the result.
    char* open(int field) {
        key(field, 2);
        return ++at_;
    }
    void close(char* start) { start[-1] = static_cast<char>(at_ - start); }

    double ns_per_cycle_;
    std::string all_;
    // Keys and lengths, three numbers of an event, and three arguments with a name and a number each, all at their
    // longest.
    std::array<char, 2 + 2 + 4 * 12 + 3 * (2 + 2 + 11)> buffer_;
    static_assert(sizeof(buffer_) < 128);
    char* at_ = nullptr;
    char* event_ = nullptr;
};

}  // namespace

std::string perfetto_head(std::span<const PerfettoTrack> tracks, std::span<const std::string> names) {
    ProtoMessage all;
    ProtoMessage strings;
    for (std::size_t i = 0; i < names.size(); ++i)
        strings.message(interned::event_names, interned_name(i + 1, names[i]));
    for (std::size_t i = 0; i < kArguments.size(); ++i)
        strings.message(interned::annotation_names, interned_name(i + 1, kArguments[i]));
    ProtoMessage first;
    first.number(packet::sequence_id, kSequence);
    first.number(packet::sequence_flags, packet::state_cleared);
    first.message(packet::interned_data, strings);
    all.message(trace::packet, first);
    for (std::size_t i = 0; i < tracks.size(); ++i) {
        const PerfettoTrack& track = tracks[i];
        ProtoMessage described;
        described.number(descriptor::uuid, uuid_of(static_cast<std::int32_t>(i)));
        described.text(descriptor::name, track.name);
        if (track.parent >= 0) described.number(descriptor::parent_uuid, uuid_of(track.parent));
        if (track.counter) {
            ProtoMessage counter;
            counter.text(descriptor::unit_name, track.unit);
            described.message(descriptor::counter, counter);
        }
        described.number(descriptor::child_ordering, descriptor::explicit_order);
        described.number(descriptor::sibling_order_rank, i);
        ProtoMessage packet;
        packet.number(packet::sequence_id, kSequence);
        packet.message(packet::track_descriptor, described);
        all.message(trace::packet, packet);
    }
    return std::move(all.bytes());
}

std::string perfetto_slices(const SliceColumns& slices, double ns_per_cycle) {
    constexpr std::size_t kSliceBytes = 80;  // about, begin and end together
    Events events(ns_per_cycle, slices.count * kSliceBytes);
    for (std::size_t i = 0; i < slices.count; ++i) {
        events.begin(event::slice_begin, slices.track[i], slices.start[i]);
        events.number(event::name_iid, static_cast<std::uint64_t>(slices.name[i]) + 1);
        events.argument(1, slices.start[i]);
        events.argument(2, slices.end[i] - slices.start[i]);
        events.argument(3, slices.arg[i]);
        events.end();
        events.begin(event::slice_end, slices.track[i], slices.end[i]);
        events.end();
    }
    return events.take();
}

std::string perfetto_counter(std::int32_t track, std::span<const std::int64_t> cycles, std::span<const double> values,
                             double ns_per_cycle) {
    Events events(ns_per_cycle, 0);
    for (std::size_t i = 0; i < cycles.size(); ++i) {
        events.begin(event::counter, track, cycles[i]);
        events.fixed(event::double_counter_value, values[i]);
        events.end();
    }
    return events.take();
}

}  // namespace simfa
