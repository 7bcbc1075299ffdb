// One L2 slice with the memory channel behind it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "line_hash.hpp"
#include "mailbox.hpp"
#include "memory_channel.hpp"
#include "messages.hpp"
#include "mshr.hpp"
#include "request_queue.hpp"
#include "response_port.hpp"
#include "ring_buffer.hpp"
#include "sectors.hpp"
#include "tag_array.hpp"
#include "timeline.hpp"
#include "types.hpp"

namespace simfa {

struct SliceConfig {
    int index = 0;
    int slices = 2;
    int pairs = 1;
    HashKind hash = HashKind::xor_shift;
    int sets = 1;
    int ways = 1;
    int sectors = 1;                    // of a line
    int fetch_sectors = 1;              // aligned groups of so many are read from memory
    Cycle service_interval_cycles = 1;  // between two requests, and two responses, of whole lines; of parts, less
    int request_queue_entries = 1;
    int response_queue_entries = 1;
    int mshr_entries = 1;
    int mshr_merges = 1;            // requests that may join one entry, the first included
    Cycle near_latency_cycles = 2;  // round trip of a hit from a pair of the slice's side
    Cycle far_latency_cycles = 2;   // and of the other side
    bool remote_copy = false;
    std::int32_t remote_copy_probability_ppm = 0;  // of inserting a shadow
    std::int32_t remote_copy_threshold_ppm = 0;    // share of a set's ways below which shadows are inserted
    std::uint64_t seed = 0;
    Sampler sampler = {};

    // Half round trips, rounded so that the two halves (and the two hops) add up.
    Cycle request_cycles(bool near) const { return (near ? near_latency_cycles : far_latency_cycles) / 2; }
    Cycle response_cycles(bool near) const {
        return (near ? near_latency_cycles : far_latency_cycles) - request_cycles(near);
    }
    Cycle hop_request_cycles() const { return (far_latency_cycles - near_latency_cycles) / 2; }
    Cycle hop_response_cycles() const { return far_latency_cycles - near_latency_cycles - hop_request_cycles(); }

    // Longest time from the posting of a message to or from a slice to its arrival, which a mailbox must hold:
    // responses are posted when they enter the response queue.
    Cycle longest_message_cycles() const { return response_cycles(false) + response_queue_cycles(); }
    Cycle response_queue_cycles() const { return service_interval_cycles * Cycle{response_queue_entries}; }

    // Throws `std::invalid_argument` naming the value that cannot be.
    void check() const;
};

// Why the oldest request could not be served.
enum class Blocked : std::uint8_t { none, response_queue, mshr_entries, mshr_merges, write_backs };
inline constexpr int kBlockedReasons = 5;

struct SliceStats {
    std::int64_t read_requests = 0;  // from pairs, before a hop
    std::int64_t write_requests = 0;
    std::int64_t read_hits = 0;
    std::int64_t read_misses = 0;  // read from memory
    std::int64_t read_merges = 0;  // waited for what was already on its way
    std::int64_t shadow_hits = 0;  // answered by a copy of a far line
    std::int64_t hops = 0;         // far reads passed on to their home slice
    std::int64_t shadow_inserts = 0;
    std::int64_t responses = 0;     // to pairs: reads and acknowledgements
    std::int64_t memory_reads = 0;  // of a line or sectors of it
    std::int64_t memory_writes = 0;
    std::int64_t memory_read_sectors = 0;
    std::int64_t memory_write_sectors = 0;
    std::array<std::int64_t, kBlockedReasons> blocked_cycles{};  // by `Blocked`
    std::int64_t staging_cycles = 0;         // summed over requests: waiting ahead of the request queue
    std::int64_t request_queue_cycles = 0;   // and in it
    std::int64_t response_queue_cycles = 0;  // summed over responses
    std::int64_t mshr_cycles = 0;            // summed over entries, from the miss to the last answer
    std::int64_t staging_longest_cycles = 0;
    std::int64_t requests_peak = 0;  // of one slice: reads and writes of pairs
    std::int64_t request_queue_peak = 0;
    std::int64_t response_queue_peak = 0;
    std::int64_t mshr_peak = 0;

    SliceStats& operator+=(const SliceStats& other);
    friend bool operator==(const SliceStats&, const SliceStats&) = default;
};

// A slice at a cycle: counts since the kernel's start, and what waits.
struct SliceSample {
    Cycle cycle = 0;
    std::int64_t hits = 0;  // reads that needed no read of memory, merged ones included
    std::int64_t misses = 0;
    std::int64_t memory_sectors = 0;  // of reads that have come, and of writes
    std::int32_t mshr_entries = 0;
    std::int32_t requests = 0;  // in the request queue and the staging area
    std::int32_t responses = 0;
};

// Requests are for sectors of one line. They are served one an interval, in order of arrival. The first
// `request_queue_entries` of them are in the request queue, the rest in the staging area, which the lines in flight
// bound. Behind the tags:
//
// * read hit: the response enters the response queue, which a port empties, one response an interval. When it will
//   leave, and so arrive, is known and posted at once;
// * read miss: takes an MSHR entry and reads the aligned groups of sectors that lack something nobody has asked memory
//   for yet; they are put in when they come (allocate on fill), and the requests that then have all they need are
//   answered in order; the entry is free when the last has entered the response queue;
// * write: written into the set at once, without a fetch, and acknowledged like a hit. If the line is not there but
//   sectors of it are on their way the write waits in their MSHR entry with the reads, in order, and what it writes is
//   dirty from the fill on;
// * the dirty sectors of a line that is replaced go to memory.
//
// The oldest request waits, and holds all others back, while the response queue is full, while it needs an MSHR entry
// or a place in one and there is none, and while it needs memory and an earlier dirty line still waits for the channel.
//
// With `remote_copy` a far pair sends its reads to the near twin of the home slice. The twin answers from a shadow copy
// or passes the request on (hop), and may keep a shadow when the answer comes back. Hops of the same line are not
// merged at the twin; hop messages take effect when they arrive, without a turn in the request queue.
class Slice {
  public:
    Slice(const SliceConfig& config, std::unique_ptr<MemoryChannel> channel);

    // Runs the cycles [window_start, window_end); `inbox` holds the messages that arrive in them, in order.
    void run(Cycle window_start, Cycle window_end, std::span<const Message> inbox, Outbox& out);

    // Functional warming, before the first window: leaves the tags as a read would that takes no time. The home slice
    // of a line, and for a far read the twin: true if it holds a copy; if not it may take one.
    void warm(std::uint32_t line);
    bool warm_far(std::uint32_t line);
    void warm_copy(std::uint32_t line);
    void prefetch(std::uint32_t line) const { tags_.prefetch(place_of(hash_.place(line)).set); }

    // First cycle at which anything happens if no message comes; `kNever` when idle.
    Cycle next_event() const { return std::min(next_service(), next_internal_); }
    bool idle() const { return next_event() == kNever; }

    // Takes the samples that are still due at `end`, the end of the run.
    void close_samples(Cycle end) {
        sample(end);
        if (sampler_.finish(end)) sample_at(end);
    }
    const std::vector<SliceSample>& samples() const { return samples_; }

    // Counts up to cycle `end`, not before the end of the last window.
    SliceStats stats(Cycle end = kNever) const;
    DramStats dram_stats() const { return channel_->dram_stats(); }

  private:
    // Something that waits for the response queue ahead of requests: an MSHR entry whose line has come, or (entry -1)
    // the answer to a hop.
    struct Answer {
        int entry;
        SliceRequest request;
    };
    // Dirty sectors that wait for the channel.
    struct WriteBack {
        std::uint32_t local;
        SectorMask sectors;
    };

    Cycle next_service() const {
        if (requests_.empty()) return kNever;
        return std::max({requests_.front().arrival, service_free_, retry_});
    }
    void admit(Cycle window_start, std::span<const Message> inbox);
    void check_twin(const Message& message, const LineHash::Place& place) const;
    [[gnu::always_inline]] inline void serve(Cycle now, Outbox& out);
    [[gnu::always_inline]] inline Blocked try_serve(const SliceRequest& request, Cycle now, Outbox& out);
    bool try_write(const TagPlace& place, SectorMask sectors, bool room);
    Blocked try_far_read(const SliceRequest& request, Cycle now, Outbox& out);
    [[gnu::always_inline]] inline Blocked try_miss(const SliceRequest& request, Cycle now, Outbox& out);
    Blocked wait_in(int entry, const SliceRequest& request, SectorMask missing);
    [[gnu::always_inline]] inline void count_service(Cycle now);
    void count_mshr(Cycle now);

    void run_internal(Cycle now, Outbox& out);
    void receive_hop(const SliceRequest& hop);
    bool insert_shadow(const TagPlace& place, SectorMask sectors);
    void fill(int entry, Cycle now);
    void answer_waiting(Cycle now, Outbox& out);
    void write_back(Cycle now);
    void schedule(Cycle now);
    void sample(Cycle now);
    void sample_at(Cycle cycle);

    void insert(const TagPlace& place, std::uint32_t shadow, SectorMask valid, SectorMask dirty);
    TagPlace place_of(const LineHash::Place& place) const {
        const auto tag = static_cast<std::uint32_t>(sets_.quotient(place.local));
        return {static_cast<std::uint32_t>(place.local - tag * sets_.divisor()), tag};
    }
    bool response_room(Cycle now) const { return port_.room_cycle() <= now; }
    [[gnu::always_inline]] inline void respond(const Message& request, Cycle now, Outbox& out);
    void respond_hop(const Message& request, Cycle departure, Outbox& out);

    SliceConfig config_;
    SectorMask all_;  // sectors of a line
    SectorCycles service_;
    LineHash hash_;
    Divider sets_;
    TagArray tags_;
    MshrFile mshr_;
    std::unique_ptr<MemoryChannel> channel_;
    int twin_;
    int first_far_pair_;                    // pairs from here on are on side 1
    std::array<Cycle, 2> response_cycles_;  // by the pair's side

    RequestQueue requests_;          // request queue and staging area
    RingBuffer<SliceRequest> hops_;  // hop answers and invalidations that have not arrived yet
    RingBuffer<Answer> answers_;
    RingBuffer<Cycle> hop_departures_;  // of answers to hops that are in the response queue
    RingBuffer<WriteBack> write_backs_;

    Cycle service_free_ = 0;        // the next request may be served from here on
    Cycle retry_ = 0;               // the oldest request need not be tried before
    Cycle next_internal_ = kNever;  // next cycle of the channel, the hops or the waiting answers
    ResponsePort port_;

    Blocked blocked_ = Blocked::none;  // why the oldest request waits
    Cycle blocked_since_ = 0;
    std::uint64_t draws_ = 0;            // random numbers used
    std::vector<Cycle> service_cycles_;  // of the last `request_queue_entries` requests
    std::size_t service_slot_ = 0;       // of the oldest of them
    std::size_t peak_slot_ = 0;          // of the request `request_peak_` before the next
    std::size_t request_peak_ = 0;       // most requests in the request queue at once
    Cycle mshr_changed_ = 0;
    std::int64_t filled_ = 0;  // sectors that have come from memory
    SliceStats stats_;
    Sampler sampler_;
    std::vector<SliceSample> samples_;
};

}  // namespace simfa
