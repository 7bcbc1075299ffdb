#include "dram_controller.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <string>

namespace simfa {

namespace {

constexpr std::int64_t kMillion = 1000000;
constexpr Tick kActivateLead = 2;  // from the first edge of an activate to its last

Tick rising_edge(Tick tick) { return (tick + 1) & ~Tick{1}; }

std::uint64_t bit_of(int bank) { return std::uint64_t{1} << bank; }

template <typename Body>
void for_each_bank(std::uint64_t mask, const Body& body) {
    for (; mask != 0; mask &= mask - 1) body(std::countr_zero(mask));
}

void require(bool holds, const std::string& rule) {
    if (!holds) throw std::invalid_argument(rule);
}

void check(const DramOrganisation& organisation, const DramTiming& timing, const DramControl& control) {
    require(organisation.bank_count() <= 64, "DRAM organisation: expected up to 64 banks a pseudo channel");
    require(timing.burst >= 1, "DRAM timing: a burst takes one clock or more");
    require(timing.activate_to_activate >= timing.activate_to_precharge, "DRAM timing: nRC is below nRAS");
    require(control.read_queue_entries >= 1 && control.write_queue_entries >= 1,
            "memory.dram queue entries: expected one entry or more");
    require(control.opened_entries >= 0, "memory.dram.opened_entries: expected 0 or more");
    require(control.drain_below_percent >= 0 && control.drain_below_percent <= control.drain_above_percent &&
                control.drain_above_percent <= 100,
            "memory.dram.drain_below and drain_above: expected 0 <= below <= above <= 1");
    require(control.ecc_overhead_ppm >= 0 && control.ecc_overhead_ppm <= kMillion,
            "memory.dram.ecc_overhead: expected between 0 and 1");
    require(control.row_hit_cap >= 0, "memory.dram.row_hit_cap: expected 0 or more");
    require(control.channel >= 0 && control.channel < control.channels,
            "DRAM channel: expected an index below the count");
    if (control.refresh == Refresh::all_bank)
        require(timing.refresh_interval > timing.refresh_all, "DRAM timing: nREFI is not above nRFC");
    if (control.refresh == Refresh::per_bank)
        require(timing.refresh_bank_interval > timing.refresh_to_activate, "DRAM timing: nREFIpb is not above nRREFD");
}

}  // namespace

DramController::DramController(const DramOrganisation& organisation, const DramTiming& timing,
                               const DramControl& control)
    : organisation_(organisation),
      timing_(timing),
      control_(control),
      queue_entries_{control.read_queue_entries, control.write_queue_entries},
      simple_rows_(control.row_policy == RowPolicy::open && control.row_hit_cap == 0) {
    check(organisation, timing, control);
    entries_.resize(
        static_cast<std::size_t>(control.read_queue_entries + control.write_queue_entries + control.opened_entries));
    for (auto entry = static_cast<std::int32_t>(entries_.size()); entry-- > 0; free_entry_ = entry)
        entries_[entry].next = free_entry_;
    refresh_interval_ =
        Tick{2} * (control.refresh == Refresh::all_bank ? timing.refresh_interval : timing.refresh_bank_interval);
    for (int index = 0; index < organisation.pseudo_channels; ++index) {
        halves_.push_back({.dram = PseudoChannel(organisation, timing)});
        if (control.refresh == Refresh::none) continue;
        halves_.back().refresh_due = refresh_interval_ * control.channel / control.channels;
        next_refresh(halves_.back());
    }
}

void DramController::push(const AddressMap::Place& place, bool write, Tick tick, std::uint32_t id) {
    Half& half = halves_[place.pseudo_channel];
    const int bank = static_cast<int>(place.bank);
    if (find_burst(half, bank, place) != kNone) {
        if (write)
            ++stats_.absorbed_writes;
        else
            done_.push_back({tick + timing_.controller_ticks, id});
        stats_.forwarded_reads += write ? 0 : 1;
        return;
    }
    const std::int32_t entry = free_entry_;
    free_entry_ = entries_[entry].next;
    Waiting& waiting = half.banks[place.bank].waiting[write];
    if (waiting.first == kNone) half.banks[bank].first_age[write] = next_age_;
    entries_[entry] = {static_cast<std::int32_t>(place.row), place.column, id, kNone, waiting.last, false, next_age_++};
    (waiting.last == kNone ? waiting.first : entries_[waiting.last].next) = entry;
    waiting.last = entry;
    const bool first = waiting.first == entry;
    half.pending[write] |= bit_of(bank);
    if (waiting.hit == kNone && half.dram.open_row(bank) == entries_[entry].row) {
        waiting.hit = entry;
        half.banks[bank].hit_age[write] = entries_[entry].age;
        half.hits[write] |= bit_of(bank);
        if (half.precharge.bank == bank) half.precharge_known = false;
    }
    ++queued_[write];
    ++bursts_[write];
    turn_direction();
    if (write == writing_ && (first || waiting.hit == entry)) offer_new(half, bank);
    best_known_ = false;
    next_ = std::min(next_, tick);
    now_ = std::max(now_, tick);
}

// A write of the burst that waits, or kNone.
std::int32_t DramController::find_burst(const Half& half, int bank, const AddressMap::Place& place) const {
    std::int32_t entry = half.banks[bank].waiting[1].first;
    while (entry != kNone &&
           (entries_[entry].row != static_cast<std::int32_t>(place.row) || entries_[entry].column != place.column))
        entry = entries_[entry].next;
    return entry;
}

void DramController::turn_direction() {
    const bool before = writing_;
    const int writes = 100 * queued_[1];
    if (!writing_) {
        const bool full = writes > control_.drain_above_percent * control_.write_queue_entries;
        writing_ = full || (bursts_[0] == 0 && bursts_[1] > 0);
        stats_.drains += writing_ ? 1 : 0;
    } else {
        writing_ = bursts_[0] == 0 || writes >= control_.drain_below_percent * control_.write_queue_entries;
    }
    if (writing_ == before) return;
    for (Half& half : halves_) half.forget();
}

// Finds the next command of all.
void DramController::choose() {
    best_ = {};
    for (Half& half : halves_) {
        if (!half.column_known || half.column.tick < column_slot()) choose_column(half);
        choose_rows(half);
        for (const Choice* choice : {&half.column, &half.activate, &half.precharge})
            if (choice->before(best_)) {
                best_ = *choice;
                best_half_ = &half;
            }
        if (half.refresh_banks == 0 || half.refresh_due > best_.tick) continue;
        const Choice refresh = refresh_of(half);
        if (refresh.before(best_)) {
            best_ = refresh;
            best_half_ = &half;
        }
    }
    best_known_ = true;
}

void DramController::advance(Tick until) {
    if (empty()) skip_refreshes(until);
    for (;;) {
        if (!best_known_) choose();
        if (best_.tick > until) break;
        best_known_ = false;
        issue(*best_half_, best_);
    }
    now_ = std::max(now_, until);
    next_ = best_.tick;
    if (!empty()) return;
    // Only closing rows is worth waking up for.
    next_ = kNeverTick;
    for (const Half& half : halves_) next_ = std::min(next_, half.precharge.tick);
}

// After more than three turns without work all rows are closed and all turns but the last ones have no trace.
void DramController::skip_refreshes(Tick until) {
    if (control_.refresh == Refresh::none) return;
    const Tick turn =
        control_.refresh == Refresh::all_bank ? refresh_interval_ : refresh_interval_ * organisation_.bank_count();
    for (Half& half : halves_) {
        if (until - half.refresh_due <= 3 * turn) continue;
        for_each_bank(half.open, [&](int bank) { close(half, bank, half.refresh_due); });
        const Tick turns = (until - half.refresh_due) / turn - 1;
        half.refresh_due += turns * turn;
        best_known_ = false;
        stats_.refreshes += turns * (turn / refresh_interval_);
    }
}

// An older burst waits for another row of a bank whose row has had its share.
bool DramController::is_capped(const Half& half, int bank) const {
    if (control_.row_hit_cap == 0 || half.dram.bursts_of_row(bank) < control_.row_hit_cap) return false;
    return entries_[half.banks[bank].waiting[writing_].first].row != half.dram.open_row(bank);
}

// Finds the earliest command, and the oldest of several, without branches: the bank with the smallest (delay, age).
class DramController::Best {
  public:
    explicit Best(Tick slot) : slot_(slot) {}

    void offer(int bank, Tick tick, std::uint64_t age) {
        const std::uint64_t key = static_cast<std::uint64_t>(std::max(tick, slot_) - slot_) << kAgeBits | age;
        bank_ = key < key_ ? bank : bank_;
        key_ = key < key_ ? key : key_;
    }

    Choice choice(Command command) const {
        if (key_ == kNoKey) return {};
        return {slot_ + static_cast<Tick>(key_ >> kAgeBits), key_ & kLastAge, command, bank_};
    }

  private:
    static constexpr std::uint64_t kNoKey = ~std::uint64_t{0};

    Tick slot_;
    std::uint64_t key_ = kNoKey;
    int bank_ = 0;
};

// The best of the banks in `mask`; those that the next refresh is for only count before it is due.
template <typename Find>
DramController::Choice DramController::before_refresh(const Half& half, std::uint64_t mask, const Find& find) {
    Choice best = find(mask & ~half.refresh_banks);
    if ((mask & half.refresh_banks) == 0) return best;
    const Choice other = find(mask & half.refresh_banks);
    if (other.tick < half.refresh_due) best.offer(other);
    return best;
}

// Banks of `mask`, whose open rows bursts wait for.
DramController::Choice DramController::best_column(const Half& half, std::uint64_t mask) const {
    // Banks are ready at rising edges, as activates and columns are issued there.
    return before_refresh(half, mask, [&](std::uint64_t banks) {
        Best best(rising_edge(column_slot()));
        for_each_bank(banks, [&](int bank) {
            best.offer(bank, half.dram.column_ready(bank, writing_), half.banks[bank].hit_age[writing_]);
        });
        return best.choice(Command::column);
    });
}

// Banks of `mask`, all of them closed.
DramController::Choice DramController::best_activate(const Half& half, std::uint64_t mask) const {
    return before_refresh(half, mask, [&](std::uint64_t banks) {
        Best best(rising_edge(std::max(row_slot(), half.dram.any_activate_ready() - kActivateLead)));
        for_each_bank(banks, [&](int bank) {
            const Tick tick = rising_edge(half.dram.bank_activate_ready(bank) - kActivateLead);
            best.offer(bank, tick, half.banks[bank].first_age[writing_]);
        });
        return best.choice(Command::activate);
    });
}

// Banks of `mask`, all of them open.
DramController::Choice DramController::best_precharge(const Half& half, std::uint64_t mask) const {
    return before_refresh(half, mask, [&](std::uint64_t banks) {
        Best best(row_slot());
        for_each_bank(banks, [&](int bank) {
            best.offer(bank, half.dram.precharge_ready(bank), half.banks[bank].first_age[writing_]);
        });
        return best.choice(Command::precharge);
    });
}

std::uint64_t DramController::capped_banks(const Half& half) const {
    std::uint64_t capped = 0;
    if (control_.row_hit_cap > 0)
        for_each_bank(half.hits[writing_], [&](int bank) { capped |= is_capped(half, bank) ? bit_of(bank) : 0; });
    return capped;
}

void DramController::choose_column(Half& half) {
    half.column = best_column(half, half.hits[writing_] & ~capped_banks(half));
    half.column_known = true;
}

// Rows that bursts of the present direction wait for, and rows that the closed policy closes.
void DramController::choose_rows(Half& half) {
    const Tick slot = row_slot();
    std::uint64_t wanted = half.pending[writing_] & ~half.hits[writing_];
    if (!simple_rows_) {
        wanted |= capped_banks(half);
        if (control_.row_policy == RowPolicy::closed) wanted |= half.open & ~(half.hits[0] | half.hits[1]);
    }
    if (!half.activate_known || half.activate.tick < slot) half.activate = best_activate(half, wanted & ~half.open);
    if (!half.precharge_known || half.precharge.tick < slot) half.precharge = best_precharge(half, wanted & half.open);
    half.activate_known = true;
    half.precharge_known = simple_rows_;
}

// After a burst of the present direction became the first for its bank, or the first that hits an open row.
void DramController::offer_new(Half& half, int bank) {
    if ((half.hits[writing_] & bit_of(bank)) == 0) {
        if ((half.open & bit_of(bank)) != 0)
            half.precharge.offer(best_precharge(half, bit_of(bank)));
        else
            half.activate.offer(best_activate(half, bit_of(bank)));
    } else if (!is_capped(half, bank))
        half.column.offer(best_column(half, bit_of(bank)));
}

DramController::Choice DramController::refresh_of(const Half& half) const {
    const Tick slot = std::max(row_slot(), half.refresh_due);
    if (control_.refresh == Refresh::all_bank) {
        if (half.open != 0) return {std::max(slot, half.dram.precharge_all_ready()), 0, Command::precharge_all, 0};
        return {std::max(slot, half.dram.refresh_all_ready()), 0, Command::refresh_all, 0};
    }
    const int bank = std::countr_zero(half.refresh_banks);
    if ((half.open & bit_of(bank)) != 0)
        return {std::max(slot, half.dram.precharge_ready(bank)), 0, Command::precharge, bank};
    return {std::max(slot, half.dram.refresh_ready(bank)), 0, Command::refresh_bank, bank};
}

// Neighbouring turns fall into different bank groups.
void DramController::next_refresh(Half& half) {
    half.refresh_due += refresh_interval_;
    half.forget();
    if (control_.refresh == Refresh::all_bank) {
        half.refresh_banks = ~std::uint64_t{0};
        return;
    }
    const int groups = organisation_.sids * organisation_.bank_groups;
    half.refresh_banks = bit_of(half.refresh_turn % groups * organisation_.banks + half.refresh_turn / groups);
    half.refresh_turn = (half.refresh_turn + 1) % organisation_.bank_count();
}

void DramController::issue(Half& half, const Choice& choice) {
    now_ = choice.tick;
    if (choice.command == Command::column) {
        column_bus_free_ = choice.tick + timing_.column_bus_ticks;
        issue_column(half, choice.bank, choice.tick);
        return;
    }
    if (choice.command == Command::activate) {
        half.activate_known = false;
        row_bus_free_ = choice.tick + timing_.activate_bus_ticks;
        issue_activate(half, choice.bank, choice.tick + kActivateLead);
        return;
    }
    half.precharge_known = false;
    row_bus_free_ = choice.tick + timing_.precharge_bus_ticks;
    if (choice.command == Command::precharge) {
        close(half, choice.bank, choice.tick);
    } else if (choice.command == Command::precharge_all) {
        for_each_bank(half.open, [&](int bank) { close(half, bank, choice.tick); });
    } else {
        ++stats_.refreshes;
        if (choice.command == Command::refresh_all)
            half.dram.refresh_all(choice.tick);
        else
            half.dram.refresh_bank(choice.bank, choice.tick);
        next_refresh(half);
    }
}

void DramController::issue_column(Half& half, int bank, Tick tick) {
    const int direction = writing_ ? 1 : 0;
    const std::int32_t entry = half.banks[bank].waiting[direction].hit;
    const Tick end = half.dram.column(bank, writing_, tick);
    last_data_ = std::max(last_data_, end);
    if (!writing_) done_.push_back({end + timing_.controller_ticks, entries_[entry].id});
    ++(writing_ ? stats_.writes : stats_.reads);
    half.ecc_ppm += control_.ecc_overhead_ppm;
    if (half.ecc_ppm >= kMillion) {
        half.ecc_ppm -= kMillion;
        half.dram.extra_burst();
    }
    find_hit(half, direction, bank, remove(half, direction, bank, entry));
    half.column_known = false;
    if ((half.pending[direction] & ~half.hits[direction] & bit_of(bank)) != 0) offer_new(half, bank);
    turn_direction();
}

void DramController::issue_activate(Half& half, int bank, Tick tick) {
    Entry& entry = entries_[half.banks[bank].waiting[writing_].first];
    half.dram.activate(bank, entry.row, tick);
    half.open |= bit_of(bank);
    for (int direction = 0; direction < 2; ++direction)
        find_hit(half, direction, bank, half.banks[bank].waiting[direction].first);
    ++stats_.activates;
    if (!entry.opened && opened_ < control_.opened_entries) {
        entry.opened = true;
        ++opened_;
        --queued_[writing_];
    }
    offer_new(half, bank);
    turn_direction();
}

void DramController::close(Half& half, int bank, Tick tick) {
    half.dram.precharge(bank, tick);
    half.open &= ~bit_of(bank);
    if ((half.hits[writing_] & bit_of(bank)) != 0) half.column_known = false;
    for (int direction = 0; direction < 2; ++direction) {
        half.banks[bank].waiting[direction].hit = kNone;
        half.hits[direction] &= ~bit_of(bank);
    }
    if ((half.pending[writing_] & bit_of(bank)) != 0) offer_new(half, bank);
}

// Looks for the next burst of the open row from entry `from` on.
void DramController::find_hit(Half& half, int direction, int bank, std::int32_t from) {
    const std::int32_t row = half.dram.open_row(bank);
    while (from != kNone && entries_[from].row != row) from = entries_[from].next;
    half.banks[bank].waiting[direction].hit = from;
    half.banks[bank].hit_age[direction] = from == kNone ? kLastAge : entries_[from].age;
    half.hits[direction] &= ~bit_of(bank);
    if (from != kNone) half.hits[direction] |= bit_of(bank);
}

// Takes an entry out of its queue; returns the one behind it.
std::int32_t DramController::remove(Half& half, int direction, int bank, std::int32_t entry) {
    Waiting& waiting = half.banks[bank].waiting[direction];
    const Entry gone = entries_[entry];
    (gone.previous == kNone ? waiting.first : entries_[gone.previous].next) = gone.next;
    (gone.next == kNone ? waiting.last : entries_[gone.next].previous) = gone.previous;
    half.banks[bank].first_age[direction] = waiting.first == kNone ? kLastAge : entries_[waiting.first].age;
    if (waiting.first == kNone) half.pending[direction] &= ~bit_of(bank);
    entries_[entry].next = free_entry_;
    free_entry_ = entry;
    --(gone.opened ? opened_ : queued_[direction]);
    --bursts_[direction];
    return gone.next;
}

}  // namespace simfa
