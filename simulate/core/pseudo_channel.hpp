// One pseudo channel: its banks, and the earliest tick at which each command may be issued.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "dram_config.hpp"

namespace simfa {

// Knows timing only; which command to issue is the controller's business, and so are the command buses. An activate's
// tick is its last edge, from which its timing counts.
class PseudoChannel {
  public:
    static constexpr std::int32_t kClosed = -1;
    static constexpr int kMostBanks = 64;

    PseudoChannel(const DramOrganisation& organisation, const DramTiming& clocks);

    int banks() const { return static_cast<int>(banks_.size()); }
    std::int32_t open_row(int bank) const { return banks_[bank].row; }
    std::int32_t bursts_of_row(int bank) const { return banks_[bank].bursts; }  // since its activate

    // Earliest tick of a read or write of the open row, without the column bus.
    Tick column_ready(int bank, bool write) const {
        const Bank& state = banks_[bank];
        return std::max({state.column_ready[write], groups_[state.group].column_ready[write],
                         sids_[state.sid].column_ready[write]});
    }
    // Earliest tick of an activate: the later of what holds for all banks and what holds for one.
    Tick any_activate_ready() const {
        return std::max(activate_ready_, activates_[next_activate_] + ticks_.four_activates);
    }
    Tick bank_activate_ready(int bank) const {
        return std::max(banks_[bank].activate_ready, groups_[banks_[bank].group].activate_ready);
    }
    Tick precharge_ready(int bank) const { return std::max(banks_[bank].precharge_ready, precharge_ready_); }
    Tick refresh_ready(int bank) const { return std::max(banks_[bank].activate_ready, refresh_ready_); }
    Tick precharge_all_ready() const { return std::max(all_precharge_ready_, precharge_ready_); }
    Tick refresh_all_ready() const { return std::max(all_closed_, refresh_ready_); }

    // Issues a command at `tick`; a read or write returns the tick after its last data.
    Tick column(int bank, bool write, Tick tick);
    void activate(int bank, std::int32_t row, Tick tick);
    void precharge(int bank, Tick tick);
    void precharge_all(Tick tick);
    void refresh_all(Tick tick);  // once all banks are closed
    void refresh_bank(int bank, Tick tick);

    // Keeps the data bus busy for another burst.
    void extra_burst();

  private:
    using ByKind = std::array<Tick, 2>;  // read, write

    struct alignas(64) Bank {
        std::int32_t row = kClosed;
        std::int32_t bursts = 0;
        int group = 0;  // among all groups of all SIDs
        int sid = 0;
        ByKind column_ready{};
        Tick activate_ready = 0;
        Tick precharge_ready = 0;
    };
    struct Group {
        ByKind column_ready{};
        Tick activate_ready = 0;
    };
    struct Sid {
        ByKind column_ready{};
    };

    static void raise(Tick& value, Tick least) { value = std::max(value, least); }
    void hold_open(Bank& bank, Tick until) {
        raise(bank.precharge_ready, until);
        raise(all_precharge_ready_, until);
    }

    DramTiming ticks_;
    std::vector<Bank> banks_;
    std::vector<Group> groups_;
    std::vector<Sid> sids_;
    Tick activate_ready_ = 0;
    Tick precharge_ready_ = 0;
    Tick refresh_ready_ = 0;
    Tick all_precharge_ready_ = 0;   // the latest of all banks: those precharged since had theirs earlier
    Tick all_closed_ = 0;            // the last precharge is over
    std::array<Tick, 4> activates_;  // the last four
    std::size_t next_activate_ = 0;
};

}  // namespace simfa
