#include "pair.hpp"

#include <algorithm>

#include "grid.hpp"

namespace simfa {

Pair::Pair(const Config& config, const Kernel& kernel, int index, int pairs)
    : config_(config),
      kernel_(kernel),
      index_(index),
      timeline_(config.timeline, index, kernel.roles),
      sampler_(config.timeline),
      port_(config, index, pairs, stats_),
      sms_{Sm(config, kernel, 2 * index, *this, stats_, timeline_),
           Sm(config, kernel, 2 * index + 1, *this, stats_, timeline_)} {
    sms_[0].connect(&sms_[1]);
    sms_[1].connect(&sms_[0]);
    pending_.reserve(64);
}

void Pair::connect(const Outbox& outbox, Mailboxes* grid) {
    outbox_ = outbox;
    grid_ = grid;
    port_.connect(outbox, &sms_[0].tma(), &sms_[1].tma());
}

Cycle Pair::next_internal() const {
    Cycle next = port_.next();
    if (!pending_.empty()) next = std::min(next, pending_.front().cycle);
    for (const Sm& sm : sms_) next = std::min({next, sm.tma().next(), sm.cuda_core().next(), sm.frontend_next()});
    return next;
}

void Pair::run(Cycle begin, Cycle end, std::span<const Message> inbox) {
    port_.prefetch(inbox);
    end_ = end;
    std::size_t at = 0;
    for (;;) {
        // Phase 1: arrivals. Most answers change nothing but counts and need no look at the rest of the pair.
        Cycle now = next_internal();
        for (; at < inbox.size(); ++at) {
            const Cycle arrival = begin + static_cast<Cycle>(inbox[at].offset);
            if (arrival > now || arrival >= end) break;  // a stopped run ends inside a window
            if (sampler_.due(arrival)) sample(arrival);
            if (on_message(inbox[at], arrival)) now = next_internal();
        }
        if (now >= end) return;
        if (sampler_.due(now)) sample(now);
        while (!pending_.empty() && pending_.front().cycle == now) {
            std::pop_heap(pending_.begin(), pending_.end(), std::greater<>{});
            const Pending pending = pending_.back();
            pending_.pop_back();
            on_pending(pending);
        }
        if (port_.next() == now) port_.run(now);
        // Phase 2: TMA engines.
        for (Sm& sm : sms_)
            if (sm.tma().next() <= now) sm.tma().run(now, port_, sampler_.before_next(end));
        // Phase 3: CUDA cores.
        for (Sm& sm : sms_)
            if (sm.cuda_core().next() <= now) sm.run_cuda_core(now);
        // Phase 4: frontends.
        for (Sm& sm : sms_)
            if (sm.frontend_next() <= now) sm.run_frontend(now);
    }
}

bool Pair::on_message(const Message& message, Cycle now) {
    if (message.kind == tile_grant) {
        Tile tile{-1, 0, 0, 0};
        if (message.line != kNoTile) tile = kernel_.tiles[message.line];
        sms_[message.tag & 1].grant(tile, now);
        return true;
    }
    return port_.answer(message, now);
}

void Pair::on_pending(const Pending& pending) {
    Sm& sm = sms_[pending.sm];
    switch (pending.kind) {
        case Kind::release:
            sm.release(pending.index, pending.value, pending.cycle);
            break;
        case Kind::signal:
            sm.signal(pending.index, pending.cycle);
            break;
        case Kind::read:
            sm.store_read(pending.index, pending.value, pending.cycle);
            break;
        case Kind::complete:
            sm.tma().complete(pending.index, pending.cycle);
            break;
    }
}

void Pair::push(Kind kind, int sm, int index, std::int64_t value, Cycle cycle) {
    pending_.push_back(
        {cycle, sequence_++, value, kind, static_cast<std::uint8_t>(sm & 1), static_cast<std::uint16_t>(index)});
    std::push_heap(pending_.begin(), pending_.end(), std::greater<>{});
}

void Pair::release_later(int sm, int ring, std::int64_t fill, Cycle cycle) {
    push(Kind::release, sm, ring, fill, cycle);
}

void Pair::signal_later(int sm, int barrier, Cycle cycle) { push(Kind::signal, sm, barrier, 0, cycle); }

void Pair::read_later(int sm, int role, std::int64_t group, Cycle cycle) { push(Kind::read, sm, role, group, cycle); }

void Pair::complete_later(int sm, std::uint16_t op, Cycle cycle) { push(Kind::complete, sm, op, 0, cycle); }

void Pair::request_tile(int sm, Cycle cycle) {
    Message message;
    message.source = static_cast<std::uint16_t>(sm);
    grid_->post(outbox_.thread, 0, cycle + config_.tile_fetch_cycles / 2, message);
}

bool Pair::quiet() const {
    return sms_[0].tma().quiet(end_) && sms_[1].tma().quiet(end_) && port_.quiet() && pending_.empty();
}

void Pair::sample(Cycle now) {
    while (sampler_.due(now)) sample_at(sampler_.take());
}

void Pair::sample_at(Cycle cycle) {
    samples_.push_back({cycle, {sms_[0].tma().in_flight(cycle), sms_[1].tma().in_flight(cycle)}});
}

void Pair::close_accounts(Cycle end) {
    sms_[0].close_accounts(end);
    sms_[1].close_accounts(end);
    timeline_.close(end);
    sample(end);
    if (sampler_.finish(end)) sample_at(end);
}

}  // namespace simfa
