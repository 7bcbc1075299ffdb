// Generated from simfa.events by simfa.instrument.event_header; edit neither the numbers nor this file by hand.
#pragma once

#include <cstdint>

namespace simfa {

enum class Event : std::uint16_t {
    TMA_Q_ISSUE = 1,
    TMA_K_ISSUE = 2,
    TMA_V_ISSUE = 3,
    WAIT_K_START = 4,
    GEMM_QK_ISSUE = 5,
    WAIT_V_START = 6,
    GEMM_PV_ISSUE = 7,
    WAIT_WG_1 = 8,
    WAIT_WG_0 = 9,
    TILE = 16,
    ACQUIRE_K_START = 17,
    ACQUIRE_V_START = 18,
    WAIT_Q_START = 19,
    WAIT_Q_END = 20,
    QUERY_EMPTY_WAIT = 21,
    QUERY_EMPTY_ARRIVE = 22,
    WAIT_O_START = 23,
    WAIT_K_END = 24,
    WAIT_V_END = 25,
    BAR_SYNC_START = 26,
    BAR_SYNC_END = 27,
    BAR_ARRIVE = 28,
    WAIT_WG_1_END = 29,
    WAIT_WG_0_END = 30,
    RELEASE_K = 31,
    RELEASE_V = 32,
    SOFTMAX_END = 33,
    EPILOGUE_START = 34,
    TMA_O_ISSUE = 35,
    TMA_O_WAIT_END = 36,
    KERNEL_BEGIN = 37,
    KERNEL_END = 38,
};

constexpr std::uint16_t LAST_LEVEL_1_EVENT = 9;
constexpr std::uint16_t PRODUCER_ROLE = 0;
constexpr unsigned RECORD_BYTES = 16;

}  // namespace simfa
