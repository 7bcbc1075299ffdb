"""The CUDA header `cuda/simfa_events.cuh`, generated from `simfa.events` so that kernel and host agree on numbers."""

from simfa.events import LEVEL_1_EVENTS, PRODUCER, RECORD_DTYPE, Event


def event_header() -> str:
    """Return the text of `cuda/simfa_events.cuh`; the committed file must equal it."""
    values = "\n".join(f"    {event.name} = {event.value}," for event in Event)
    return f"""\
// Generated from simfa.events by simfa.instrument.event_header; edit neither the numbers nor this file by hand.
#pragma once

#include <cstdint>

namespace simfa {{

enum class Event : std::uint16_t {{
{values}
}};

constexpr std::uint16_t LAST_LEVEL_1_EVENT = {max(LEVEL_1_EVENTS).value};
constexpr std::uint16_t PRODUCER_ROLE = {PRODUCER};
constexpr unsigned RECORD_BYTES = {RECORD_DTYPE.itemsize};

}}  // namespace simfa
"""
