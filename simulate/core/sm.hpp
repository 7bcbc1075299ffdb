// One SM: the frontend of Algorithm 1, its roles, and the CTA that lives on it (docs/isa.md sections 2, 3, 7).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "barriers.hpp"
#include "config.hpp"
#include "cuda_core.hpp"
#include "groups.hpp"
#include "program.hpp"
#include "stats.hpp"
#include "tensor_core.hpp"
#include "timeline.hpp"
#include "tma.hpp"
#include "types.hpp"

namespace simfa {

// One issued instruction, kept for comparison with the reference engine.
struct Issue {
    Cycle cycle;
    std::int32_t cta;
    std::int32_t role;
    std::int32_t program;
    std::int32_t flat;
};

// A logical thread (warpgroup) and where it stands in its program.
struct Role {
    enum class State : std::uint8_t { running, blocked, needs_tile, ended };
    enum class Wait : std::uint8_t { none, fill, stage, barrier, stores, tile };

    State state = State::running;
    Wait wait = Wait::none;
    Reason reason = Reason::launch;  // of the cycles from `accounted` on
    std::uint8_t ring = 0;           // ring or barrier waited for
    std::int32_t wait_count = 0;     // barrier arrivals; 1 for a store wait that asks for reads only
    std::int64_t wait_target = 0;    // absolute fill, or store group
    const Instruction* code = nullptr;
    const Instruction* pc = nullptr;
    const Instruction* body = nullptr;  // first instruction of the repeat being run
    std::int32_t program = 0;
    std::int32_t iteration = 0;
    std::int32_t wgmmas_left = 0;  // of the WGMMA at `pc`
    std::int64_t tiles = 0;        // tiles begun; -1 in the prologue
    bool edge_due = false;         // the edge of the last tile is not paid yet
    const TileKind* kind = nullptr;
    Tile tile;
    Cycle ready = 0;
    Cycle accounted = 0;
    std::int64_t accounted_tile = -1;  // tile in which the cycles from `accounted` on begin
    std::int64_t group_base = 0;
    std::int64_t store_base = 0;
    std::array<std::int64_t, kMaxRings> base{};
    WgmmaGroups groups;
    StoreGroups stores;

    // The last stretches of accounted cycles: what the tensor pipe waited for.
    struct Stretch {
        Cycle begin = 0;
        Cycle end = 0;
        Reason reason = Reason::launch;
    };
    static constexpr std::uint32_t kRecent = 64;
    std::array<Stretch, kRecent> recent{};
    std::uint32_t stretches = 0;
};

// What the pair offers its SMs: events in the future, the grid, recording.
class SmHost {
  public:
    virtual ~SmHost() = default;
    virtual void release_later(int sm, int ring, std::int64_t fill, Cycle cycle) = 0;
    virtual void signal_later(int sm, int barrier, Cycle cycle) = 0;
    virtual void read_later(int sm, int role, std::int64_t group, Cycle cycle) = 0;
    virtual void complete_later(int sm, std::uint16_t op, Cycle cycle) = 0;
    virtual void request_tile(int sm, Cycle cycle) = 0;
};

class Sm {
  public:
    Sm(const Config& config, const Kernel& kernel, int index, SmHost& host, PairStats& stats, Timeline& timeline);

    void connect(Sm* peer) { peer_ = peer; }

    // Phase 3.
    void run_cuda_core(Cycle now);
    // Phase 4.
    void run_frontend(Cycle now);

    // Arrivals (phase 1 and 2).
    void credit(int ring, std::int64_t fill, std::int64_t bytes, Cycle now);
    void release(int ring, std::int64_t fill, Cycle now);
    void signal(int barrier, Cycle now);
    void store_read(int role, std::int64_t group, Cycle now);
    void store_answered(int role, std::int64_t group, Cycle now);
    // A tile for the CTA, or (tile.kind -1) word that none is left.
    void grant(const Tile& tile, Cycle now);

    Cycle frontend_next() const { return frontend_next_; }
    bool done() const { return !has_cta_ || ended_ == kernel_.roles; }
    Cycle end_cycle() const { return end_cycle_; }
    void note_end(Cycle cycle) { end_cycle_ = std::max(end_cycle_, cycle); }
    void close_accounts(Cycle end);

    int index() const { return index_; }
    bool has_cta() const { return has_cta_; }
    int cluster_rank() const { return kernel_.cluster == 2 ? index_ & 1 : 0; }
    Sm* peer() const { return kernel_.cluster == 2 ? peer_ : nullptr; }
    TmaEngine& tma() { return tma_; }
    const TmaEngine& tma() const { return tma_; }
    const TensorCore& tensor_core() const { return tensor_core_; }
    const CudaCore& cuda_core() const { return cuda_core_; }
    const Role& role(int index) const { return roles_[index]; }
    Timeline& timeline() { return timeline_; }
    SmHost& host() { return host_; }
    const std::vector<Issue>& issues() const { return issues_; }
    Cycle role_end(int role) const { return role_end_[role]; }
    // Who waits for what, one line per role that has not ended.
    std::string describe_waits() const;

  private:
    // What issuing did: done, the thread blocked, or it was refused without taking a slot.
    enum class Outcome : std::uint8_t { issued, blocked, refused };

    void start_cta();
    bool begin_tile(int role, Cycle now);
    void set_program(Role& role, int program);
    int pick(Cycle now, std::uint32_t refused) const;
    Outcome issue(int index, Cycle now);
    Outcome issue_wgmma(Role& role, const Instruction& instruction, Cycle now);
    void issue_copy(int index, Role& role, const Instruction& instruction, Cycle now);
    Outcome issue_bubbles(int index, Role& role, const Instruction& instruction, Cycle now);
    void advance(Role& role);
    void settle(Role& role);
    void wake(Role& role, Cycle ready);
    void block(Role& role, Role::Wait wait, Reason reason, int ring, std::int64_t target, std::int32_t count);
    void account(int index, Cycle now, Reason next);
    void charge(int index, Cycle from, Cycle until, Reason reason);
    void charge_idle_pipe(const Role& role, Cycle until);
    void end_role(int index, Cycle now);
    void show_stage(int ring, std::int64_t fill, Cycle now);
    void show_barrier(int barrier, Cycle now);
    void wake_fill(int ring, std::int64_t fill, Cycle now, Cycle least = 0);
    void refresh(Cycle now);
    Reason acquire_reason(int ring) const { return ring < 4 ? kAcquireReasons[ring] : Reason::acquire_other; }
    Reason fill_reason(int ring) const { return ring < 3 ? kFillReasons[ring] : Reason::wait_other; }

    // Rings are numbered K, V, Q, O first (simulate/encode.py).
    static constexpr std::array<Reason, 4> kAcquireReasons = {Reason::acquire_stage, Reason::acquire_stage,
                                                              Reason::acquire_q, Reason::acquire_o};
    static constexpr std::array<Reason, 3> kFillReasons = {Reason::wait_k, Reason::wait_v, Reason::wait_q};

    const Config& config_;
    const Kernel& kernel_;
    int index_;
    SmHost& host_;
    PairStats& stats_;
    Timeline& timeline_;
    Sm* peer_ = nullptr;
    bool has_cta_;
    CtaBarriers barriers_;
    TensorCore tensor_core_;
    CudaCore cuda_core_;
    TmaEngine tma_;
    std::array<Role, kMaxRoles> roles_;
    std::array<Cycle, kMaxRoles> role_end_{};
    std::vector<Tile> granted_;             // dynamic: tiles in order; a kind of -1 ends the list
    const Instruction* asks_at_ = nullptr;  // dynamic: where role 0 asks for the next tile
    int last_issued_ = -1;
    int ended_ = 0;
    Cycle end_cycle_ = 0;
    Cycle frontend_next_ = kNever;
    std::vector<Issue> issues_;
};

}  // namespace simfa
