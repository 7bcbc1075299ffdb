#include "memory_port.hpp"

#include <algorithm>

namespace simfa {

MemoryPort::MemoryPort(const Config& config, int pair, int pairs, PairStats& stats)
    : pair_(pair),
      side_(side_of(pair, pairs)),
      slice_count_(config.slices),
      first_far_slice_((config.slices + 1) / 2),
      remote_copy_(config.remote_copy),
      ideal_latency_(config.ideal_latency_cycles),
      never_full_(config.ideal_latency_cycles == 0 && config.lrc_hold_cycles == 0 &&
                  (!config.lrc_enabled || config.lrc_entries >= 2 * config.max_lines_in_flight)),
      request_cycles_{config.near_latency_cycles / 2, config.far_latency_cycles / 2},
      port_lines_per_cycle_(config.port_lines_per_cycle),
      slow_port_(config.port_cycles_per_line > 1),
      port_cycles_(config.port_cycles_per_line, config.sectors()),
      all_(all_sectors(config.sectors())),
      stats_(stats),
      hash_(static_cast<HashKind>(config.hash), config.slices),
      lrc_(config) {}

// Sends a line or a part of one through the response port of SM `sm`: at once if the port is free, else in order.
// Returns true if something may be due sooner than was known.
[[gnu::always_inline]] inline bool MemoryPort::deliver(int sm, const Waiter& waiter, bool other, Cycle now) {
    Port& port = ports_[sm];
    Cycle leaves = port.cycle;
    std::int32_t used = port.used;
    if (used == port_lines_per_cycle_) {
        leaves += port.cycles;
        used = 0;
    }
    if (leaves < now) {
        leaves = now;
        used = 0;
    }
    port.cycle = leaves;
    port.used = used + 1;
    if (slow_port_) port.cycles = static_cast<std::int32_t>(port_cycles_.of(waiter.sectors));
    const std::uint64_t number = ++port.number;
    TmaEngine& tma = *tma_[waiter.owner];
    if (!tma.arrive(waiter.op, other, leaves, number, now)) [[likely]]
        return tma.blocked();
    return finish_at({leaves, number, waiter.op, waiter.owner, other}, port, now);
}

inline bool MemoryPort::deliver_all(const Waiter& waiter, Cycle now) {
    bool sooner = false;
    if (waiter.target != Target::other) sooner |= deliver(waiter.owner, waiter, false, now);
    if (waiter.target != Target::own) sooner |= deliver(waiter.owner ^ 1, waiter, true, now);
    return sooner;
}

void MemoryPort::request(std::uint32_t line, bool write, const Waiter& waiter, Cycle now) {
    if (ideal_latency_ > 0) {
        ideal_.push({now + ideal_latency_, waiter});
        return;
    }
    if (!write) {
        const Lrc::Found found = lrc_.join(line, waiter, now);
        if (found != Lrc::Found::none) {
            ++stats_.lrc_merges;
            if (found == Lrc::Found::answered) deliver_all(waiter, now);
            return;
        }
    }
    if (!write) ++stats_.l2_read_requests;
    if (waiter.sectors != all_) [[unlikely]]
        note_part(write, waiter.sectors);
    lrc_.open(line, write, waiter);
    Message request = request_of(write, waiter);
    request.line = line;
    post(request, now);
}

bool MemoryPort::answer(const Message& message, Cycle now) {
    const bool write = message.kind == write_ack;
    const Waiter waiter{message.tag, static_cast<std::uint8_t>(message.flags & 1), target_of(message),
                        static_cast<std::uint8_t>(sectors_of(message))};
    const std::span<const Waiter> joined = lrc_.close(message.line, write, waiter, now);
    bool sooner = write;
    if (write)
        tma_[waiter.owner]->answer(waiter.op, false, now);
    else
        sooner |= deliver_all(waiter, now);
    for (const Waiter& other : joined) sooner |= deliver_all(other, now);
    sooner |= tma_[0]->unblock(now);
    sooner |= tma_[1]->unblock(now);
    return sooner;
}

[[gnu::noinline]] bool MemoryPort::finish_at(const Finish& finish, Port& port, Cycle now) {
    if (finish.cycle == now)
        tma_[finish.owner]->finish(finish.op, finish.other, now);
    else
        port.finishes.push(finish);
    return true;
}

// Operations end in the order in which their last lines came.
void MemoryPort::finish_later(int sm, std::uint16_t op, bool other, Cycle cycle, std::uint64_t number) {
    RingBuffer<Finish>& finishes = ports_[other ? sm ^ 1 : sm].finishes;
    const Finish finish{cycle, number, op, static_cast<std::uint8_t>(sm), other};
    finishes.push(finish);
    for (std::size_t i = finishes.size() - 1; i > 0 && finishes[i - 1].number > number; --i) {
        finishes[i] = finishes[i - 1];
        finishes[i - 1] = finish;
    }
}

void MemoryPort::run(Cycle now) {
    while (!ideal_.empty() && ideal_.front().cycle == now) {
        const Waiter waiter = ideal_.front().waiter;
        ideal_.pop();
        tma_[waiter.owner]->answer(waiter.op, false, now);
        if (waiter.target == Target::both) tma_[waiter.owner]->answer(waiter.op, true, now);
    }
    for (Port& port : ports_) {
        while (!port.finishes.empty() && port.finishes.front().cycle == now) {
            const Finish finish = port.finishes.front();
            port.finishes.pop();
            tma_[finish.owner]->finish(finish.op, finish.other, now);
        }
    }
}

}  // namespace simfa
