// Shorthand for kernels of a few instructions, written as the engine takes them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "config.hpp"
#include "program.hpp"

namespace simfa::test {

using Code = std::vector<Instruction>;

// Joins pieces of a program.
inline Code operator+(Code first, const Code& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
}

inline Code acquire(int fill, int ring = 0, int step = 0) {
    return {{.op = Op::acquire_stage, .ring = static_cast<std::uint8_t>(ring), .index = fill, .index_step = step}};
}
inline Code await_fill(int fill, int ring = 0, int step = 0) {
    return {{.op = Op::mb_wait, .ring = static_cast<std::uint8_t>(ring), .index = fill, .index_step = step}};
}
inline Code release(int fill, int ring = 0, int step = 0, bool remote = false) {
    return {{.op = Op::release_stage,
             .flags = remote ? kRemote : std::uint8_t{0},
             .ring = static_cast<std::uint8_t>(ring),
             .index = fill,
             .index_step = step}};
}
inline Code bulk(int fill, std::int64_t address, int bytes, int step = 0, std::int64_t address_step = 0) {
    return {{.op = Op::tma_bulk,
             .index = fill,
             .index_step = step,
             .count = bytes,
             .address = address,
             .address_step = address_step}};
}
inline Code load(int fill, int map = 0, int y = 0, bool multicast = false) {
    return {
        {.op = Op::tma_tensor, .flags = multicast ? kMulticast : std::uint8_t{0}, .map = map, .index = fill, .y = y}};
}
inline Code store(int map = 0, int y = 0) { return {{.op = Op::tma_store, .map = map, .y = y}}; }
inline Code store_commit() { return {{.op = Op::tma_commit}}; }
inline Code store_wait(int group, bool read = false) {
    return {{.op = Op::tma_wait, .flags = read ? kRead : std::uint8_t{0}, .group = group}};
}
// `count` WGMMAs that take `cycles` each.
inline Code wgmma(int count, int cycles, bool register_a = false) {
    return {
        {.op = Op::wgmma, .flags = register_a ? kRegisterA : std::uint8_t{0}, .count = count, .work_cycles = cycles}};
}
inline Code wgmma_commit() { return {{.op = Op::wgmma_commit}}; }
inline Code wgmma_wait(int group, int outstanding = 0, int step = 0) {
    return {{.op = Op::wgmma_wait, .group = group, .group_step = step, .count = outstanding}};
}
inline Code arrive(int barrier) { return {{.op = Op::bar_arrive, .ring = static_cast<std::uint8_t>(barrier)}}; }
inline Code await_barrier(int barrier, int arrivals = 1) {
    return {{.op = Op::bar_wait, .ring = static_cast<std::uint8_t>(barrier), .count = arrivals}};
}
inline Code work(int cycles, Work kind = Work::cycles) {
    return {{.op = Op::bubbles, .label = static_cast<std::uint8_t>(kind), .work_cycles = cycles}};
}
inline Code repeat(int count, const Code& body) {
    return Code{{.op = Op::repeat, .count = count}} + body + Code{{.op = Op::end}};
}

inline Program program(const Code& code) {
    Program made{code + Code{{.op = Op::finish}}};
    std::int32_t flat = 0;
    for (Instruction& instruction : made.code) {
        instruction.flat = flat;
        flat += instruction.op != Op::repeat && instruction.op != Op::end ? 1 : 0;
    }
    return made;
}

// A static kernel whose CTAs all run `tiles` tiles of the roles' programs.
inline Kernel kernel_of(const std::vector<Code>& roles, int ctas = 1, int cluster = 1, int tiles = 1) {
    Kernel kernel;
    kernel.roles = static_cast<std::int32_t>(roles.size());
    kernel.ctas = ctas;
    kernel.cluster = cluster;
    TileKind kind;
    for (std::size_t role = 0; role < roles.size(); ++role) {
        kernel.programs.push_back(program(roles[role]));
        kind.programs[role] = static_cast<std::int32_t>(role);
        std::int32_t times = 1;
        for (const Instruction& instruction : roles[role]) {
            if (instruction.op == Op::repeat || instruction.op == Op::end) times = std::max(1, instruction.count);
            if (instruction.op != Op::acquire_stage) continue;
            const std::int64_t fills = instruction.index + instruction.index_step * (times - 1) + 1;
            kind.fills[instruction.ring] = std::max(kind.fills[instruction.ring], fills);
        }
    }
    kernel.kinds = {kind};
    kernel.first_tile = {0};
    for (int cta = 0; cta < ctas; ++cta) {
        for (int tile = 0; tile < tiles; ++tile) kernel.tiles.push_back({0, 0, 0, 0});
        kernel.first_tile.push_back(static_cast<std::int64_t>(kernel.tiles.size()));
    }
    return kernel;
}

// The same with a queue of tiles for all CTAs.
inline Kernel dynamic_kernel(const std::vector<Code>& roles, int ctas, int tiles) {
    Kernel kernel = kernel_of(roles, ctas, 1, 0);
    kernel.dynamic = true;
    for (int tile = 0; tile < tiles; ++tile) kernel.tiles.push_back({0, tile, 0, 0});
    return kernel;
}

inline Ring ring(std::int64_t bytes = 128, int stages = 1, int releases = 1, bool named = false) {
    return {.stages = stages, .releases = releases, .bytes = bytes, .named = named};
}

// Rows of 128 bytes, one after the other; a box is `rows` of them.
inline TensorMap row_map(int rows = 1, std::uint64_t base = 0, std::int64_t all_rows = 1024) {
    return {.base = base,
            .rank = 2,
            .element_bytes = 2,
            .dims = {64, all_rows, 1, 1, 1},
            .strides = {2, 128, 0, 0, 0},
            .box = {64, rows, 1, 1, 1}};
}

// Everything free or at its smallest: one SM pair, one line of 128 bytes a cycle. Tests set what they are about.
inline Config bare(int ideal_latency_cycles = 0) {
    Config config;
    config.sms = 2;
    config.scheduler = static_cast<std::int32_t>(Scheduler::oldest);
    config.cuda_shared = false;
    config.ideal_latency_cycles = ideal_latency_cycles;
    return config;
}

}  // namespace simfa::test
