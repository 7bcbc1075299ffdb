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
    void fixed(int field, double value) {
        varint(static_cast<std::uint64_t>(field) << 3 | 1);
        const auto bits = std::bit_cast<std::uint64_t>(value);
        for (int byte = 0; byte < 8; ++byte) bytes_.push_back(static_cast<char>(bits >> (8 * byte)));
    }
    void text(int field, std::string_view value) {
        varint(static_cast<std::uint64_t>(field) << 3 | 2);
        varint(value.size());
        bytes_.append(value);
    }
    void message(int field, const ProtoMessage& value) { text(field, value.bytes_); }
    void clear() { bytes_.clear(); }

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

// Packets of events, one after the other; the messages of an event are built in the same memory each time.
class Events {
  public:
    explicit Events(double ns_per_cycle) : ns_per_cycle_(ns_per_cycle) {}

    ProtoMessage& begin(std::uint64_t type, std::int32_t track) {
        event_.clear();
        event_.number(event::type, type);
        event_.number(event::track_uuid, uuid_of(track));
        return event_;
    }
    void argument(std::size_t name, std::int64_t value) {
        annotation_.clear();
        annotation_.number(annotation::name_iid, name + 1);
        annotation_.number(annotation::int_value, static_cast<std::uint64_t>(value));
        event_.message(event::debug_annotations, annotation_);
    }
    void end(std::int64_t cycle) {
        packet_.clear();
        packet_.number(packet::timestamp,
                       static_cast<std::uint64_t>(std::llround(static_cast<double>(cycle) * ns_per_cycle_)));
        packet_.number(packet::sequence_id, kSequence);
        packet_.number(packet::sequence_flags, packet::needs_state);
        packet_.message(packet::track_event, event_);
        all_.message(trace::packet, packet_);
    }
    void reserve(std::size_t bytes) { all_.bytes().reserve(bytes); }
    std::string take() { return std::move(all_.bytes()); }

  private:
    double ns_per_cycle_;
    ProtoMessage event_;
    ProtoMessage annotation_;
    ProtoMessage packet_;
    ProtoMessage all_;
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
    Events events(ns_per_cycle);
    events.reserve(slices.count * kSliceBytes);
    for (std::size_t i = 0; i < slices.count; ++i) {
        events.begin(event::slice_begin, slices.track[i])
            .number(event::name_iid, static_cast<std::uint64_t>(slices.name[i]) + 1);
        events.argument(0, slices.start[i]);
        events.argument(1, slices.end[i] - slices.start[i]);
        events.argument(2, slices.arg[i]);
        events.end(slices.start[i]);
        events.begin(event::slice_end, slices.track[i]);
        events.end(slices.end[i]);
    }
    return events.take();
}

std::string perfetto_counter(std::int32_t track, std::span<const std::int64_t> cycles, std::span<const double> values,
                             double ns_per_cycle) {
    Events events(ns_per_cycle);
    for (std::size_t i = 0; i < cycles.size(); ++i) {
        events.begin(event::counter, track).fixed(event::double_counter_value, values[i]);
        events.end(cycles[i]);
    }
    return events.take();
}

}  // namespace simfa
