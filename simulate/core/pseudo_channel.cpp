#include "pseudo_channel.hpp"

namespace simfa {

namespace {

constexpr Tick kLongAgo = -(Tick{1} << 40);

// Clocks to half clocks, for all values that count clocks.
DramTiming in_ticks(DramTiming timing) {
    for (std::int32_t* value : {&timing.burst,
                                &timing.read_latency,
                                &timing.write_latency,
                                &timing.activate_to_read,
                                &timing.activate_to_write,
                                &timing.precharge_to_activate,
                                &timing.activate_to_precharge,
                                &timing.activate_to_activate,
                                &timing.write_recovery,
                                &timing.read_to_precharge,
                                &timing.column_short,
                                &timing.column_long,
                                &timing.column_sid,
                                &timing.activate_short,
                                &timing.activate_long,
                                &timing.four_activates,
                                &timing.write_to_read_short,
                                &timing.write_to_read_long,
                                &timing.read_to_write,
                                &timing.precharge_to_precharge,
                                &timing.refresh_all,
                                &timing.refresh_bank,
                                &timing.refresh_to_activate,
                                &timing.refresh_interval,
                                &timing.refresh_bank_interval})
        *value *= 2;
    return timing;
}

}  // namespace

PseudoChannel::PseudoChannel(const DramOrganisation& organisation, const DramTiming& clocks)
    : ticks_(in_ticks(clocks)),
      banks_(static_cast<std::size_t>(organisation.bank_count())),
      groups_(static_cast<std::size_t>(organisation.sids * organisation.bank_groups)),
      sids_(static_cast<std::size_t>(organisation.sids)) {
    activates_.fill(kLongAgo);
    for (int bank = 0; bank < banks(); ++bank) {
        banks_[bank].group = bank / organisation.banks;
        banks_[bank].sid = banks_[bank].group / organisation.bank_groups;
    }
}

Tick PseudoChannel::column(int bank, bool write, Tick tick) {
    Bank& state = banks_[bank];
    Group& group = groups_[state.group];
    ++state.bursts;
    raise(group.column_ready[write], tick + ticks_.column_long);
    for (Sid& sid : sids_) {
        const bool same = &sid == &sids_[state.sid];
        raise(sid.column_ready[write], tick + (same ? ticks_.column_short : ticks_.column_sid));
    }
    if (!write) {
        for (Sid& sid : sids_) raise(sid.column_ready[1], tick + ticks_.read_to_write);
        hold_open(state, tick + ticks_.read_to_precharge);
        return tick + ticks_.read_latency + ticks_.burst;
    }
    const Tick end = tick + ticks_.write_latency + ticks_.burst;
    raise(group.column_ready[0], end + ticks_.write_to_read_long);
    for (Sid& sid : sids_) raise(sid.column_ready[0], end + ticks_.write_to_read_short);
    hold_open(state, end + ticks_.write_recovery);
    return end;
}

void PseudoChannel::activate(int bank, std::int32_t row, Tick tick) {
    Bank& state = banks_[bank];
    state.row = row;
    state.bursts = 0;
    state.column_ready = {tick + ticks_.activate_to_read, tick + ticks_.activate_to_write};
    hold_open(state, tick + ticks_.activate_to_precharge);
    raise(state.activate_ready, tick + ticks_.activate_to_activate);
    raise(groups_[state.group].activate_ready, tick + ticks_.activate_long);
    raise(activate_ready_, tick + ticks_.activate_short);
    raise(refresh_ready_, tick + ticks_.activate_short);
    activates_[next_activate_] = tick;
    next_activate_ = (next_activate_ + 1) % activates_.size();
}

void PseudoChannel::precharge(int bank, Tick tick) {
    Bank& state = banks_[bank];
    state.row = kClosed;
    raise(state.activate_ready, tick + ticks_.precharge_to_activate);
    raise(precharge_ready_, tick + ticks_.precharge_to_precharge);
    raise(all_closed_, tick + ticks_.precharge_to_activate);
}

void PseudoChannel::precharge_all(Tick tick) {
    for (int bank = 0; bank < banks(); ++bank)
        if (banks_[bank].row != kClosed) precharge(bank, tick);
}

void PseudoChannel::refresh_all(Tick tick) {
    for (Bank& bank : banks_) raise(bank.activate_ready, tick + ticks_.refresh_all);
    raise(refresh_ready_, tick + ticks_.refresh_all);
}

void PseudoChannel::refresh_bank(int bank, Tick tick) {
    raise(banks_[bank].activate_ready, tick + ticks_.refresh_bank);
    raise(activate_ready_, tick + ticks_.refresh_to_activate);
    raise(refresh_ready_, tick + ticks_.refresh_to_activate);
}

void PseudoChannel::extra_burst() {
    for (Sid& sid : sids_)
        for (Tick& ready : sid.column_ready) ready += ticks_.burst;
}

}  // namespace simfa
