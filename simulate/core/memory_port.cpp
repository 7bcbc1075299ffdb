#include "memory_port.hpp"

#include <algorithm>

namespace simfa {

MemoryPort::MemoryPort(const Config& config, int pair, int pairs, PairStats& stats)
    : pair_(pair),
      side_(side_of(pair, pairs)),
      slice_count_(config.slices),
      remote_copy_(config.remote_copy),
      ideal_latency_(config.ideal_latency_cycles),
      near_request_cycles_(config.near_latency_cycles / 2),
      far_request_cycles_(config.far_latency_cycles / 2),
      port_lines_per_cycle_(config.port_lines_per_cycle),
      port_cycles_per_line_(config.port_cycles_per_line),
      stats_(stats),
      hash_(static_cast<HashKind>(config.hash), config.slices),
      lrc_(config) {}

void MemoryPort::request(std::uint32_t line, bool write, const Waiter& waiter, Cycle now) {
    if (ideal_latency_ > 0) {
        ideal_.push({now + ideal_latency_, waiter, false});
        return;
    }
    if (!write) {
        const Lrc::Found found = lrc_.join(line, waiter, now);
        if (found != Lrc::Found::none) {
            ++stats_.lrc_merges;
            if (found == Lrc::Found::answered) deliver_all(waiter, now);
            return;
        }
        ++stats_.l2_read_requests;
    }
    lrc_.open(line, write, waiter);
    int slice = static_cast<int>(hash_.slice_of(line));
    const bool far = side_of(slice, slice_count_) != side_;
    Cycle latency = far ? far_request_cycles_ : near_request_cycles_;
    if (far && remote_copy_ && !write) {
        // The near twin looks for a shadow first.
        slice = (slice + slice_count_ / 2) % slice_count_;
        latency = near_request_cycles_;
    }
    Message message;
    message.line = line;
    message.source = static_cast<std::uint16_t>(pair_);
    message.tag = waiter.op;
    message.flags = static_cast<std::uint8_t>(waiter.owner | static_cast<unsigned>(waiter.target) << 1);
    message.kind = write ? write_request : read_request;
    outbox_.to_slice(slice, now + latency, message);
}

void MemoryPort::answer(const Message& message, Cycle now) {
    const bool write = message.kind == write_ack;
    const Waiter waiter{message.tag, static_cast<std::uint8_t>(message.flags & 1),
                        static_cast<Target>(message.flags >> 1)};
    const std::span<const Waiter> joined = lrc_.close(message.line, write, waiter, now);
    if (write)
        tma_[waiter.owner]->answer(waiter.op, false, now);
    else
        deliver_all(waiter, now);
    for (const Waiter& other : joined) deliver_all(other, now);
    tma_[0]->unblock(now);
    tma_[1]->unblock(now);
}

void MemoryPort::deliver_all(const Waiter& waiter, Cycle now) {
    if (waiter.target != Target::other) deliver(waiter.owner, waiter, false, now);
    if (waiter.target != Target::own) deliver(waiter.owner ^ 1, waiter, true, now);
}

// Sends one line through the response port of SM `sm`: at once if the port is free, else in order.
void MemoryPort::deliver(int sm, const Waiter& waiter, bool other, Cycle now) {
    Port& port = ports_[sm];
    Cycle slot;
    if (port_cycles_per_line_ > 1) {
        slot = std::max(now, port.cycle);
        port.cycle = slot + port_cycles_per_line_;
    } else {
        if (port.cycle < now || port.used == port_lines_per_cycle_) {
            port.cycle = std::max(now, port.cycle + 1);
            port.used = 0;
        }
        ++port.used;
        slot = port.cycle;
    }
    if (slot == now)
        tma_[waiter.owner]->answer(waiter.op, other, now);
    else
        port.queue.push({slot, waiter, other});
}

void MemoryPort::run(Cycle now) {
    while (!ideal_.empty() && ideal_.front().cycle == now) {
        const Waiter waiter = ideal_.front().waiter;
        ideal_.pop();
        tma_[waiter.owner]->answer(waiter.op, false, now);
        if (waiter.target == Target::both) tma_[waiter.owner]->answer(waiter.op, true, now);
    }
    for (Port& port : ports_) {
        while (!port.queue.empty() && port.queue.front().cycle == now) {
            const Delivery delivery = port.queue.front();
            port.queue.pop();
            tma_[delivery.waiter.owner]->answer(delivery.waiter.op, delivery.other, now);
        }
    }
}

}  // namespace simfa
