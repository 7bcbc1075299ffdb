// What the engine runs: instructions, rings, tensor maps and the schedule of one kernel launch (docs/isa.md).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "types.hpp"

namespace simfa {

enum class Op : std::uint8_t {
    tma_tensor,
    tma_bulk,
    mb_wait,
    acquire_stage,
    release_stage,
    tma_store,
    tma_commit,
    tma_wait,
    wgmma,
    wgmma_commit,
    wgmma_wait,
    bar_arrive,
    bar_wait,
    bubbles,
    repeat,  // `count` times the instructions up to the matching `end`
    end,
    finish,  // sentinel after a program's last instruction
};

// Flag bits of an instruction; each opcode uses at most one.
inline constexpr std::uint8_t kMulticast = 1;
inline constexpr std::uint8_t kRemote = 1;
inline constexpr std::uint8_t kRead = 1;
inline constexpr std::uint8_t kRegisterA = 1;

// What a BUBBLES instruction stands for; decides the stall reason.
enum class Work : std::uint8_t { cycles, softmax, epilogue };

// One decoded instruction. Operands with a `_step` advance by it each iteration of the enclosing repeat.
struct Instruction {
    Op op = Op::finish;
    std::uint8_t flags = 0;
    std::uint8_t ring = 0;   // ring, or named barrier
    std::uint8_t label = 0;  // Work of BUBBLES; accumulator number of WGMMA, for timelines
    std::int32_t map = 0;
    std::int32_t index = 0;  // fill ordinal within the tile
    std::int32_t index_step = 0;
    std::int32_t x = 0;  // first column of a box
    std::int32_t y = 0;  // first row of a box
    std::int32_t y_step = 0;
    std::int32_t group = 0;
    std::int32_t group_step = 0;
    std::int32_t count = 0;        // WGMMAs, repeats, barrier arrivals, groups left outstanding, bytes of a bulk copy
    std::int32_t work_cycles = 0;  // pipe occupancy of one WGMMA; CUDA-core cycles of BUBBLES
    std::int32_t flat = 0;         // number in the program's text, for messages
    std::int64_t address = 0;
    std::int64_t address_step = 0;
};

struct Program {
    std::vector<Instruction> code;  // ends with `finish`

    // The ACQUIRE_STAGE that comes last, if there is one.
    const Instruction* last_acquire() const {
        for (auto instruction = code.rbegin(); instruction != code.rend(); ++instruction)
            if (instruction->op == Op::acquire_stage) return &*instruction;
        return nullptr;
    }
};

struct Ring {
    std::int32_t stages = 1;
    std::int32_t releases = 1;
    std::int64_t bytes = 0;
    bool named = false;  // the empty barrier is a named barrier
};

// Which coordinates a tile adds to a map's box.
enum class Origin : std::uint8_t { none, query, kv };

struct TensorMap {
    std::uint64_t base = 0;
    std::int32_t rank = 1;
    std::int32_t element_bytes = 1;
    std::array<std::int64_t, kMaxTensorRank> dims{1, 1, 1, 1, 1};
    std::array<std::int64_t, kMaxTensorRank> strides{1, 0, 0, 0, 0};  // bytes; [0] is unused
    std::array<std::int64_t, kMaxTensorRank> box{1, 1, 1, 1, 1};
    Origin origin = Origin::none;

    std::int64_t box_bytes() const {
        std::int64_t bytes = element_bytes;
        for (std::int64_t extent : box) bytes *= extent;
        return bytes;
    }
};

// Programs of one kind of tile by role, and how many fills of each ring it uses.
struct TileKind {
    std::array<std::int32_t, kMaxRoles> programs{};
    std::array<std::int64_t, kMaxRings> fills{};
};

struct Kernel {
    std::int32_t roles = 0;
    std::int32_t ctas = 0;
    std::int32_t cluster = 1;
    bool dynamic = false;
    std::int32_t tile_m = 1;
    std::int32_t group_size = 1;
    std::vector<Program> programs;
    std::vector<Ring> rings;
    std::vector<TensorMap> maps;
    std::vector<TileKind> kinds;
    bool has_prologue = false;
    TileKind prologue;                     // program -1: the role has none
    std::vector<Tile> tiles;               // static: CTA after CTA; dynamic: the queue
    std::vector<std::int64_t> first_tile;  // static: ctas + 1 offsets into `tiles`
};

}  // namespace simfa
