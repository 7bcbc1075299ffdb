#include "slice.hpp"

#include <stdexcept>
#include <string>
#include <utility>

namespace simfa {

namespace {

constexpr std::uint64_t kMillion = 1000000;

void require(bool holds, const char* rule) {
    if (!holds) throw std::invalid_argument(rule);
}

// A number below one million from (seed, slice, sequence): the finalizer of SplitMix64 (public domain).
std::uint64_t draw_millionths(std::uint64_t seed, std::uint64_t slice, std::uint64_t sequence) {
    std::uint64_t value = seed + 0x9E3779B97F4A7C15U * (sequence * 65536 + slice + 1);
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9U;
    value = (value ^ (value >> 27)) * 0x94D049BB133111EBU;
    value ^= value >> 31;
    return ((value >> 32) * kMillion) >> 32;
}

}  // namespace

void SliceConfig::check() const {
    require(slices >= 1 && slices <= 65535 && pairs >= 1 && pairs <= 65535, "slices and SM pairs: expected 1 to 65535");
    require(index >= 0 && index < slices, "slice index: expected a number below the count of slices");
    require(sets >= 1 && sets <= 65535, "l2.capacity_bytes: expected 1 to 65535 sets a slice");
    require(ways >= 1, "l2.ways: expected 1 or more");
    require(service_interval_cycles >= 1, "l2.bytes_per_cycle_per_slice: expected one line a cycle at most");
    require(request_queue_entries >= 1, "l2.request_queue_entries: expected 1 or more");
    require(response_queue_entries >= 1, "l2.response_queue_entries: expected 1 or more");
    require(mshr_entries >= 1, "l2.mshr_entries: expected 1 or more");
    require(mshr_merges >= 1, "l2.mshr_merges: expected 1 or more; the first request of a line counts");
    require(sectors >= 1 && sectors <= kMostSectors, "l2.sector_bytes: expected 1 to 8 sectors a line");
    require(fetch_sectors >= 1 && sectors % fetch_sectors == 0, "l2.fetch_bytes: expected whole sectors of a line");
    require(near_latency_cycles >= 2, "crossbar.near_latency_cycles: expected 2 or more, one each way");
    require(far_latency_cycles >= near_latency_cycles,
            "crossbar.far_latency_cycles: expected near_latency_cycles or more");
    if (!remote_copy) return;
    require(slices % 2 == 0, "l2.remote_copy: expected an even count of slices, half on each side");
    require(hop_request_cycles() >= 1,
            "l2.remote_copy: expected far_latency_cycles 2 or more above near_latency_cycles");
}

SliceStats& SliceStats::operator+=(const SliceStats& other) {
    read_requests += other.read_requests;
    write_requests += other.write_requests;
    read_hits += other.read_hits;
    read_misses += other.read_misses;
    read_merges += other.read_merges;
    shadow_hits += other.shadow_hits;
    hops += other.hops;
    shadow_inserts += other.shadow_inserts;
    responses += other.responses;
    memory_reads += other.memory_reads;
    memory_writes += other.memory_writes;
    memory_read_sectors += other.memory_read_sectors;
    memory_write_sectors += other.memory_write_sectors;
    for (std::size_t i = 0; i < blocked_cycles.size(); ++i) blocked_cycles[i] += other.blocked_cycles[i];
    staging_cycles += other.staging_cycles;
    request_queue_cycles += other.request_queue_cycles;
    response_queue_cycles += other.response_queue_cycles;
    mshr_cycles += other.mshr_cycles;
    staging_longest_cycles = std::max(staging_longest_cycles, other.staging_longest_cycles);
    requests_peak = std::max(requests_peak, other.requests_peak);
    request_queue_peak = std::max(request_queue_peak, other.request_queue_peak);
    response_queue_peak = std::max(response_queue_peak, other.response_queue_peak);
    mshr_peak = std::max(mshr_peak, other.mshr_peak);
    return *this;
}

Slice::Slice(const SliceConfig& config, std::unique_ptr<MemoryChannel> channel)
    : config_((config.check(), config)),
      all_(all_sectors(config.sectors)),
      service_(config.service_interval_cycles, config.sectors),
      hash_(config.hash, config.slices),
      sets_(static_cast<std::uint64_t>(config.sets)),
      tags_(config.sets, config.ways, config.sectors),
      mshr_(config.mshr_entries, config.mshr_merges),
      channel_(std::move(channel)),
      twin_((config.index + config.slices / 2) % config.slices),
      first_far_pair_((config.pairs + 1) / 2),
      response_cycles_{config.response_cycles(side_of(config.index, config.slices) == 0),
                       config.response_cycles(side_of(config.index, config.slices) == 1)},
      port_(config.response_queue_entries, config.service_interval_cycles),
      service_cycles_(static_cast<std::size_t>(config.request_queue_entries)),
      sampler_(config.sampler) {}

SliceStats Slice::stats(Cycle end) const {
    SliceStats stats = stats_;
    stats.requests_peak = stats.read_requests + stats.write_requests;
    stats.request_queue_peak = static_cast<std::int64_t>(request_peak_);
    // Not all answers that have not left yet go to pairs.
    stats.responses -= port_.waiting(end);
    for (std::size_t i = 0; i < hop_departures_.size(); ++i) stats.responses += hop_departures_[i] >= end;
    stats.response_queue_cycles = port_.waited_cycles();
    stats.response_queue_peak = port_.peak();
    return stats;
}

// Puts the answer to `request` into the response queue. The cycle at which the port sends it is known at once. The
// request goes back as the answer, changed where it lies: building it elsewhere first would cost more than the rest.
void Slice::respond(const Message& request, Cycle now, Outbox& out) {
    const Cycle departure = port_.send(now, service_.of(sectors_of(request)));
    if (request.kind == hop_request) [[unlikely]] {
        respond_hop(request, departure, out);
        return;
    }
    ++stats_.responses;
    const bool side = request.source >= first_far_pair_;
    Message& answer = out.to_pair(request.source, departure + response_cycles_[side], request);
    answer.source = static_cast<std::uint16_t>(config_.index);
    answer.kind = request.kind == write_request ? write_ack : read_response;
}

void Slice::respond_hop(const Message& request, Cycle departure, Outbox& out) {
    Message& answer = out.to_slice(request.source, departure + config_.hop_response_cycles(), request);
    answer.source = static_cast<std::uint16_t>(config_.index);
    answer.kind = hop_response;
    hop_departures_.push(departure);
}

// Request i enters the request queue when request i - (entries) leaves it. Its arrival makes `peak` + 1 requests wait
// if request i - peak is served later, and that number rises by one at most from one arrival to the next.
void Slice::count_service(Cycle now) {
    const Cycle arrival = requests_.front().arrival;
    const std::size_t entries = service_cycles_.size();
    Cycle* const cycles = service_cycles_.data();
    Cycle entered = arrival;
    if (cycles[service_slot_] > arrival) {
        entered = cycles[service_slot_];
        stats_.staging_cycles += entered - arrival;
        stats_.staging_longest_cycles = std::max(stats_.staging_longest_cycles, entered - arrival);
    }
    stats_.request_queue_cycles += now - entered;
    cycles[service_slot_] = now;
    if (request_peak_ < entries && cycles[peak_slot_] > arrival)
        ++request_peak_;  // and the slot stays, one further back
    else if (++peak_slot_ == entries)
        peak_slot_ = 0;
    if (++service_slot_ == entries) service_slot_ = 0;
}

Blocked Slice::try_miss(const SliceRequest& request, Cycle now, Outbox& out) {
    const bool write = request.message.kind == write_request;
    const SectorMask sectors = sectors_of(request.message);
    // Until a line is there in part a miss lacks all it asks for.
    const SectorMask missing = write || !tags_.sectored() ? sectors : sectors & ~tags_.valid(request.place);
    const MshrFile::Outstanding found = mshr_.find(request.message.line, write ? all_ : missing);
    if (found.entry >= 0 && (write || (missing & ~found.sectors) == 0))
        return wait_in(found.entry, request, write ? mshr_.sectors(found.entry) : missing);
    if (!write_backs_.empty()) return Blocked::write_backs;
    if (write) {
        if (!response_room(now)) return Blocked::response_queue;
        insert(request.place, 0, sectors, sectors);
        respond(request.message, now, out);
    } else {
        if (mshr_.full()) return Blocked::mshr_entries;
        count_mshr(now);
        const SectorMask fetched = whole_groups(missing & ~found.sectors, config_.fetch_sectors);
        const auto token = static_cast<std::uint32_t>(mshr_.allocate(request, fetched, missing));
        channel_->read(hash_.place(request.message.line).local, fetched, now, token);
        ++stats_.memory_reads;
        stats_.memory_read_sectors += sector_count(fetched);
        stats_.mshr_peak = std::max<std::int64_t>(stats_.mshr_peak, mshr_.used());
        ++stats_.read_misses;
    }
    write_back(now);
    schedule(now);
    return Blocked::none;
}

Blocked Slice::wait_in(int entry, const SliceRequest& request, SectorMask missing) {
    if (mshr_.merge_full(entry)) return Blocked::mshr_merges;
    mshr_.merge(entry, request, missing);
    stats_.read_merges += request.message.kind != write_request ? 1 : 0;
    return Blocked::none;
}

Blocked Slice::try_serve(const SliceRequest& request, Cycle now, Outbox& out) {
    if (config_.remote_copy && request.message.kind == read_request &&
        static_cast<int>(hash_.slice_of(request.message.line)) != config_.index)
        return try_far_read(request, now, out);
    const Message& message = request.message;
    const bool write = message.kind == write_request;
    const bool room = response_room(now);
    const SectorMask sectors = sectors_of(message);
    const bool hit = write ? try_write(request.place, sectors, room) : tags_.read(request.place, 0, sectors);
    if (!hit) {
        const Blocked reason = try_miss(request, now, out);
        if (reason != Blocked::none) return reason;
    } else {
        if (!room) return Blocked::response_queue;
        respond(message, now, out);
    }
    if (write) {
        ++stats_.write_requests;
        if (config_.remote_copy)
            out.to_slice(
                twin_, now + config_.hop_request_cycles(),
                {.line = message.line, .source = static_cast<std::uint16_t>(config_.index), .kind = hop_invalidate});
        return Blocked::none;
    }
    stats_.read_hits += hit ? 1 : 0;
    stats_.read_requests += message.kind == read_request ? 1 : 0;
    return Blocked::none;
}

// A write only needs the line to be there, and waits if there is no room for its acknowledgement.
[[gnu::noinline]] bool Slice::try_write(const TagPlace& place, SectorMask sectors, bool room) {
    return room ? tags_.write(place, sectors) : tags_.read(place, 0, 0);
}

// The turn of the oldest request.
void Slice::serve(Cycle now, Outbox& out) {
    const Blocked reason = try_serve(requests_.front(), now, out);
    if (reason != blocked_) {
        stats_.blocked_cycles[static_cast<std::size_t>(blocked_)] += now - blocked_since_;
        blocked_ = reason;
        blocked_since_ = now;
    }
    if (reason == Blocked::none) {
        count_service(now);
        service_free_ = now + service_.of(sectors_of(requests_.front().message));
        requests_.pop();
    } else {
        retry_ = reason == Blocked::response_queue ? port_.room_cycle() : kNever;
    }
}

void Slice::run(Cycle window_start, Cycle window_end, std::span<const Message> inbox, Outbox& out) {
    if (!inbox.empty()) admit(window_start, inbox);
    for (;;) {
        const Cycle service = next_service();
        const Cycle now = std::min(service, next_internal_);
        if (now >= window_end) break;
        if (sampler_.due(now)) sample(now);
        if (next_internal_ <= service)
            run_internal(now, out);
        else
            serve(now, out);
    }
    while (!hop_departures_.empty() && hop_departures_.front() < window_end) hop_departures_.pop();
}

void Slice::admit(Cycle window_start, std::span<const Message> inbox) {
    SliceRequest* const first = requests_.room(inbox.size());
    SliceRequest* next = first;
    for (const Message& message : inbox) {
        const LineHash::Place place = hash_.place(message.line);
        if (static_cast<int>(place.slice) != config_.index) check_twin(message, place);
        next->arrival = window_start + message.offset;
        next->message = message;
        next->place = place_of(place);
        tags_.prefetch(next->place.set);
        if (message.kind == hop_response || message.kind == hop_invalidate) {
            hops_.push(*next);
            next_internal_ = std::min(next_internal_, next->arrival);
        } else {
            ++next;
        }
    }
    requests_.put(static_cast<std::size_t>(next - first));
}

// Of other slices' lines, only those of the twin may come here.
void Slice::check_twin(const Message& message, const LineHash::Place& place) const {
    if (config_.remote_copy && static_cast<int>(place.slice) == twin_) return;
    throw std::logic_error("line " + std::to_string(message.line) + " of slice " + std::to_string(place.slice) +
                           " was sent to slice " + std::to_string(config_.index));
}

// A far read at the near twin of its home: answered from a shadow, or passed on.
Blocked Slice::try_far_read(const SliceRequest& request, Cycle now, Outbox& out) {
    if (tags_.read(request.place, kShadow, sectors_of(request.message))) {
        if (!response_room(now)) return Blocked::response_queue;
        ++stats_.shadow_hits;
        respond(request.message, now, out);
    } else {
        ++stats_.hops;
        out.to_slice(twin_, now + config_.hop_request_cycles(),
                     {.line = request.message.line,
                      .source = static_cast<std::uint16_t>(config_.index),
                      .tag = request.message.tag,
                      .kind = hop_request,
                      .flags = request.message.flags,
                      .extra = request.message.source});
    }
    ++stats_.read_requests;
    return Blocked::none;
}

// What happens apart from requests, in this order within a cycle: sectors come from memory, hops arrive, replaced lines
// go to memory, answers enter the response queue. Requests have their turn afterwards.
void Slice::run_internal(Cycle now, Outbox& out) {
    if (channel_->next_event() <= now) channel_->advance(now);
    std::uint32_t token = 0;
    while (channel_->pop_completion(now, token)) fill(static_cast<int>(token), now);
    for (; !hops_.empty() && hops_.front().arrival <= now; hops_.pop()) receive_hop(hops_.front());
    write_back(now);
    answer_waiting(now, out);
    schedule(now);
    retry_ = std::min(retry_, now);
}

// A whole line that comes was not there at all. After a part all may be there that a request in another entry of the
// line lacks, and a request of this one may lack what another brings.
void Slice::fill(int entry, Cycle now) {
    const TagPlace& place = mshr_.place(entry);
    const SectorMask came = mshr_.sectors(entry);
    const SectorMask dirty = mshr_.dirty(entry);
    mshr_.filled(entry);
    filled_ += sector_count(came);
    const bool in_part = came != all_ || tags_.sectored();
    if (!in_part || !tags_.add(place, 0, came | dirty, dirty)) insert(place, 0, came | dirty, dirty);
    if (came != all_) mshr_.settle(entry);
    if (mshr_.empty(entry)) {
        count_mshr(now);
        mshr_.release(entry);
    } else {
        answers_.push({entry, {}});
    }
}

void Slice::receive_hop(const SliceRequest& hop) {
    if (hop.message.kind == hop_invalidate) {
        tags_.erase(hop.place, kShadow);
        return;
    }
    if (insert_shadow(hop.place, sectors_of(hop.message))) ++stats_.shadow_inserts;
    SliceRequest read = hop;
    read.message.kind = read_request;
    read.message.source = hop.message.extra;
    read.message.extra = 0;
    answers_.push({-1, read});
}

// Puts a copy of a far line in by chance and if the set has not too many; true if it did.
bool Slice::insert_shadow(const TagPlace& place, SectorMask sectors) {
    if (tags_.add(place, kShadow, sectors, 0)) return false;
    const std::int64_t share = std::int64_t{tags_.shadows(place.set)} * static_cast<std::int64_t>(kMillion);
    if (share >= std::int64_t{config_.remote_copy_threshold_ppm} * config_.ways) return false;
    const std::uint64_t draw = draw_millionths(config_.seed, static_cast<std::uint64_t>(config_.index), draws_++);
    if (draw >= static_cast<std::uint64_t>(config_.remote_copy_probability_ppm)) return false;
    insert(place, kShadow, sectors, 0);
    return true;
}

void Slice::warm(std::uint32_t line) {
    const TagPlace place = place_of(hash_.place(line));
    if (!tags_.read(place, 0, all_)) insert(place, 0, all_, 0);
}

bool Slice::warm_far(std::uint32_t line) { return tags_.read(place_of(hash_.place(line)), kShadow, all_); }

void Slice::warm_copy(std::uint32_t line) { insert_shadow(place_of(hash_.place(line)), all_); }

void Slice::answer_waiting(Cycle now, Outbox& out) {
    while (!answers_.empty() && response_room(now)) {
        const Answer& answer = answers_.front();
        if (answer.entry < 0) {
            respond(answer.request.message, now, out);
            answers_.pop();
            continue;
        }
        respond(mshr_.front(answer.entry).message, now, out);
        mshr_.pop(answer.entry);
        if (!mshr_.empty(answer.entry)) continue;
        count_mshr(now);
        mshr_.release(answer.entry);
        answers_.pop();
    }
}

void Slice::write_back(Cycle now) {
    for (; !write_backs_.empty() && channel_->earliest_write(now) <= now; write_backs_.pop()) {
        const WriteBack& back = write_backs_.front();
        channel_->write(back.local, back.sectors, now);
        ++stats_.memory_writes;
        stats_.memory_write_sectors += sector_count(back.sectors);
    }
}

void Slice::schedule(Cycle now) {
    Cycle next = channel_->next_event();
    if (!hops_.empty()) next = std::min(next, hops_.front().arrival);
    if (!answers_.empty()) next = std::min(next, port_.room_cycle());
    if (!write_backs_.empty()) next = std::min(next, channel_->earliest_write(now));
    next_internal_ = next;
}

void Slice::insert(const TagPlace& place, std::uint32_t shadow, SectorMask valid, SectorMask dirty) {
    const Victim victim = tags_.insert(place, shadow, valid, dirty);
    if (victim.valid && victim.dirty != 0)
        write_backs_.push({victim.tag * static_cast<std::uint32_t>(sets_.divisor()) + place.set, victim.dirty});
}

// The state before what happens at `now`, for all samples due by then. The port empties the response queue by itself.
void Slice::sample(Cycle now) {
    while (sampler_.due(now)) sample_at(sampler_.take());
}

void Slice::sample_at(Cycle cycle) {
    SliceSample taken;
    taken.cycle = cycle;
    taken.hits = stats_.read_hits + stats_.shadow_hits + stats_.read_merges;
    taken.misses = stats_.read_misses;
    taken.memory_sectors = filled_ + stats_.memory_write_sectors;
    taken.mshr_entries = mshr_.used();
    taken.requests = static_cast<std::int32_t>(requests_.arrived(cycle));
    taken.responses = static_cast<std::int32_t>(port_.waiting(cycle));
    samples_.push_back(taken);
}

void Slice::count_mshr(Cycle now) {
    stats_.mshr_cycles += mshr_.used() * (now - mshr_changed_);
    mshr_changed_ = now;
}

}  // namespace simfa
