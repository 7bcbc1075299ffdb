// The grid: hands the tile queue of a dynamic schedule to the CTAs that ask, in order of (cycle, CTA).
#pragma once

#include <cstdint>
#include <span>

#include "config.hpp"
#include "mailbox.hpp"
#include "program.hpp"
#include "types.hpp"

namespace simfa {

inline constexpr std::uint16_t tile_grant = 32;  // MessageKind of the grid's answers
inline constexpr std::uint32_t kNoTile = 0xFFFFFFFF;

class Grid {
  public:
    Grid(const Config& config, const Kernel& kernel) : config_(config), kernel_(kernel), next_(kernel.ctas) {}

    void run(Cycle begin, std::span<const Message> inbox, Outbox& outbox) {
        for (const Message& request : inbox) {
            const Cycle now = begin + static_cast<Cycle>(request.offset);
            Message grant;
            grant.kind = tile_grant;
            grant.tag = request.source;
            grant.line =
                next_ < static_cast<std::int64_t>(kernel_.tiles.size()) ? static_cast<std::uint32_t>(next_) : kNoTile;
            ++next_;
            outbox.to_pair(request.source / 2, now + config_.tile_fetch_cycles - config_.tile_fetch_cycles / 2, grant);
        }
    }

  private:
    const Config& config_;
    const Kernel& kernel_;
    std::int64_t next_;
};

}  // namespace simfa
