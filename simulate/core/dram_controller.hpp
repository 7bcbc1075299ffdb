// Memory controller of one DRAM channel: queues, FR-FCFS, write drain, refresh.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "address_map.hpp"
#include "dram_config.hpp"
#include "dram_stats.hpp"
#include "pseudo_channel.hpp"

namespace simfa {

// First ready, first come first served: on each command bus, of the commands that can go out first the one for the
// oldest burst. A row stays open while bursts of the present direction wait for it (up to the cap). A burst for which a
// row is opened gives its place in the queue back, as long as `opened_entries` are not exceeded. The direction turns to
// writes above the upper mark of the write queue or when no read waits, and back below the lower mark if one does.
//
// All-bank refresh: from its due tick on a pseudo channel only closes its rows and refreshes. Per-bank refresh goes
// round the banks; only the bank whose turn it is stops. A channel without work does not wake up for refreshes; they
// are caught up with when work comes.
class DramController {
  public:
    static constexpr Tick kNeverTick = std::numeric_limits<Tick>::max();

    struct Done {
        Tick tick;  // the requester has the data
        std::uint32_t id;
    };

    // Throws `std::invalid_argument` naming the value that cannot be.
    DramController(const DramOrganisation& organisation, const DramTiming& timing, const DramControl& control);
    DramController(const DramController&) = delete;
    DramController& operator=(const DramController&) = delete;

    // True if the queue of reads (writes) has room for `bursts` more.
    bool accepts(bool write, int bursts) const { return queue_entries_[write] - queued_[write] >= bursts; }

    // Takes one burst at `tick`, to which the controller has been advanced. A read's completion is reported under `id`;
    // a write is done when it is taken.
    void push(const AddressMap::Place& place, bool write, Tick tick, std::uint32_t id);

    // Issues all commands up to and including `until`.
    void advance(Tick until);

    // Tick from which `advance` may issue a command; `kNeverTick` without work.
    Tick next_event() const { return next_; }

    // Completions that have become known, in no order; the caller empties the list.
    std::vector<Done>& done() { return done_; }

    int reads_waiting() const { return bursts_[0]; }  // whose command has not been issued
    Tick last_data() const { return last_data_; }     // the tick after the last data on the bus
    const DramStats& stats() const { return stats_; }

  private:
    enum class Command : std::uint8_t { none, column, activate, precharge, precharge_all, refresh_all, refresh_bank };
    struct Choice {
        Tick tick = kNeverTick;
        std::uint64_t age = 0;  // of the burst it is for; refreshes go first, closing idle rows last
        Command command = Command::none;
        int bank = 0;

        bool before(const Choice& other) const { return tick < other.tick || (tick == other.tick && age < other.age); }
        void offer(const Choice& other) {
            if (other.before(*this)) *this = other;
        }
    };

    static constexpr std::int32_t kNone = -1;
    static constexpr int kMostBanks = PseudoChannel::kMostBanks;
    static constexpr int kAgeBits = 44;
    static constexpr std::uint64_t kLastAge = (std::uint64_t{1} << kAgeBits) - 1;
    struct alignas(32) Entry {
        std::int32_t row;
        std::uint32_t column;
        std::uint32_t id;
        std::int32_t next;
        std::int32_t previous;
        bool opened;  // a row was opened for it
        std::uint64_t age;
    };
    // Bursts of one direction that wait for one bank, oldest first, and the first of them that hits the open row.
    struct Waiting {
        std::int32_t first = kNone;
        std::int32_t last = kNone;
        std::int32_t hit = kNone;
    };
    // What waits for one bank, by direction; one cache line of the machine that simulates.
    struct alignas(64) Queues {
        std::array<Waiting, 2> waiting{};
        std::array<std::uint64_t, 2> first_age{kLastAge, kLastAge};
        std::array<std::uint64_t, 2> hit_age{};
    };
    // A pseudo channel and what waits for it. Masks have one bit a bank.
    struct Half {
        PseudoChannel dram;
        std::array<Queues, kMostBanks> banks{};
        std::array<std::uint64_t, 2> pending{};
        std::array<std::uint64_t, 2> hits{};
        std::uint64_t open = 0;
        Tick refresh_due = kNeverTick;
        std::uint64_t refresh_banks = 0;  // that the next refresh is for
        int refresh_turn = 0;             // per-bank refresh: how many banks have had theirs
        std::int64_t ecc_ppm = 0;         // part of a burst owed to ECC
        // The best commands, without refreshes. A choice stays the best one until the bus is free only later than it,
        // or until something else than a new candidate comes up.
        Choice column{};
        Choice activate{};
        Choice precharge{};
        bool column_known = false;
        bool activate_known = false;
        bool precharge_known = false;

        void forget() { column_known = activate_known = precharge_known = false; }
    };

    class Best;

    bool empty() const { return bursts_[0] + bursts_[1] == 0; }
    void turn_direction();
    void skip_refreshes(Tick until);

    Tick column_slot() const { return std::max(now_, column_bus_free_); }
    Tick row_slot() const { return std::max(now_, row_bus_free_); }
    void choose_column(Half& half);
    void choose_rows(Half& half);
    void choose();
    template <typename Find>
    static Choice before_refresh(const Half& half, std::uint64_t mask, const Find& find);
    Choice best_column(const Half& half, std::uint64_t mask) const;
    Choice best_activate(const Half& half, std::uint64_t mask) const;
    Choice best_precharge(const Half& half, std::uint64_t mask) const;
    std::uint64_t capped_banks(const Half& half) const;
    Choice refresh_of(const Half& half) const;
    void offer_new(Half& half, int bank);
    void next_refresh(Half& half);
    bool is_capped(const Half& half, int bank) const;

    void issue(Half& half, const Choice& choice);
    void issue_column(Half& half, int bank, Tick tick);
    void issue_activate(Half& half, int bank, Tick tick);
    void close(Half& half, int bank, Tick tick);
    void find_hit(Half& half, int direction, int bank, std::int32_t from);
    std::int32_t remove(Half& half, int direction, int bank, std::int32_t entry);
    std::int32_t find_burst(const Half& half, int bank, const AddressMap::Place& place) const;

    DramOrganisation organisation_;
    DramTiming timing_;
    DramControl control_;
    std::vector<Half> halves_;
    std::vector<Entry> entries_;
    std::int32_t free_entry_ = kNone;
    std::array<int, 2> queue_entries_;
    std::array<int, 2> queued_{};  // places taken in the queues, and bursts in all
    std::array<int, 2> bursts_{};
    int opened_ = 0;
    bool writing_ = false;
    bool simple_rows_;  // open policy without a cap: columns and new bursts change few choices of rows
    std::uint64_t next_age_ = 1;
    Tick now_ = 0;
    Tick column_bus_free_ = 0;
    Tick row_bus_free_ = 0;
    Tick next_ = kNeverTick;
    Choice best_{};  // the next command of all, while nothing new comes
    Half* best_half_ = nullptr;
    bool best_known_ = false;
    Tick last_data_ = 0;
    Tick refresh_interval_ = 0;  // between two refreshes of a pseudo channel
    std::vector<Done> done_;
    DramStats stats_;
};

}  // namespace simfa
