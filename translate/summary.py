"""What a translation did, for people and for machines."""

from simfa.isa import Repeat
from simfa.translate.log_translation import Translation


def summary_of(translation: Translation, trace_bytes: int) -> dict[str, object]:
    """Return the facts of a translation: sizes of the trace, its origin, and what had to be done to the log."""
    trace = translation.trace
    schedule = trace.schedule
    lines = sum(
        len(item.body) if isinstance(item, Repeat) else 1 for program in trace.programs for item in program.body
    )
    return {
        "shape": trace.shape.describe() if trace.shape is not None else None,
        "log_source": trace.origin.log_source,
        "event_level": trace.origin.event_level,
        "rules": trace.origin.rules,
        "reconstructed": trace.origin.reconstructed,
        "schedule": schedule.mode,
        "ctas": schedule.ctas,
        "cluster": schedule.cluster,
        "tiles": sum(len(tiles) for tiles in schedule.tiles),
        "tile_kinds": len(trace.tile_kinds),
        "programs": len(trace.programs),
        "instructions": lines,
        "outvoted_warps": translation.outvoted_warps,
        "cut_tiles": translation.cut_tiles,
        "borrowed_tiles": translation.borrowed_tiles,
        "trace_bytes": trace_bytes,
    }


_NOTES = {
    "reconstructed": "the log lacks events of level 2; they were put where the FA3 source has them",
    "outvoted_warps": "warps whose rows disagreed with the majority of their warpgroup were ignored",
    "cut_tiles": "tiles that the truncated log holds in part were left out",
    "borrowed_tiles": "tiles that were not logged took the events of a logged one with as many K/V blocks",
}


def summary_text(summary: dict[str, object]) -> str:
    """Return the summary as a table, with a line for everything a reader should not overlook."""
    width = max(map(len, summary))
    lines = [f"{name.replace('_', ' '):<{width}}  {_shown(value)}" for name, value in summary.items()]
    notes = [f"note: {text}" for name, text in _NOTES.items() if summary[name]]
    return "\n".join([*lines, *notes])


def _shown(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
