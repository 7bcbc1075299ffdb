"""Four warps to one warpgroup: equal rows merge, others are reported or outvoted."""

from typing import Any

import numpy as np
import pytest

from simfa.errors import LogError
from simfa.events import RECORD_DTYPE, Event
from simfa.instrument.event_order import tile_events
from simfa.kernel import kernel_for
from simfa.translate.dedup import merge_warps
from simfa.translate.events import Records
from simfa.workload import AttentionShape

KERNEL = kernel_for(AttentionShape(batch=1, seqlen_q=256, seqlen_kv=704, heads_q=1, heads_kv=1, head_dim=128))


def rows(role: int) -> dict[int, Records]:
    """What the four warps of a role log for one tile of four blocks, each with its own timestamps."""
    result = {}
    for place in range(4):
        records = tile_events(KERNEL, role, 4, 2, warp=place)
        records["timestamp"] = np.arange(len(records)) * 10 + place
        result[4 * role + place] = records
    return result


def events(records: Records) -> list[Any]:
    return [tuple(record)[1:] for record in records.tolist()]


def test_equal_warps_become_one_stream() -> None:
    merged = merge_warps(rows(1), 1, "block 0")
    assert merged.warp == 4
    assert merged.outvoted == ()
    assert events(merged.records) == events(tile_events(KERNEL, 1, 4, 2, warp=0))


def test_the_store_of_the_elected_warp_is_kept() -> None:
    merged = merge_warps(rows(2), 2, "block 0")
    assert merged.warp == 11
    assert events(merged.records) == events(tile_events(KERNEL, 2, 4, 2, warp=3))
    assert Event.TMA_O_ISSUE in merged.records["event"]


@pytest.mark.parametrize("kept", [[4], [5, 7], [6]])
def test_missing_rows_are_fine(kept: list[int]) -> None:
    warps = {warp: records for warp, records in rows(1).items() if warp in kept}
    assert merge_warps(warps, 1, "block 0").warp == kept[0]


def test_idle_warps_of_the_producer_have_no_say() -> None:
    frame = np.zeros(2, RECORD_DTYPE)
    frame["event"] = [Event.KERNEL_BEGIN, Event.KERNEL_END]
    loads = tile_events(KERNEL, 0, 4, 2)
    merged = merge_warps({0: loads, 1: frame, 2: frame, 3: frame[:0]}, 0, "block 0")
    assert merged.warp == 0
    assert events(merged.records) == events(loads)


def test_a_warp_that_disagrees_is_reported_with_its_record() -> None:
    warps = rows(1)
    warps[6]["event"][7] = Event.WAIT_WG_1
    with pytest.raises(LogError) as error:
        merge_warps(warps, 1, "block 3")
    expected = Event(int(warps[4]["event"][7])).name
    assert str(error.value).startswith("block 3: warps of role 1 disagree: record 7 of warp 6 is WAIT_WG_1 (stage ")
    assert f"warp 4 has {expected} (stage" in str(error.value)
    assert "--allow-disagreement" in str(error.value)


@pytest.mark.parametrize("field", ["event", "stage", "payload", "aux"])
def test_every_field_counts(field: str) -> None:
    warps = rows(1)
    warps[5][field][3] += 1
    with pytest.raises(LogError, match="record 3 of warp 5"):
        merge_warps(warps, 1, "block 0")


def test_a_missing_last_record_is_a_disagreement() -> None:
    warps = rows(1)
    last = len(warps[5]) - 1
    warps[5] = warps[5][:-1]
    with pytest.raises(LogError, match=f"record {last} of warp 5 is missing, warp 4 has EPILOGUE_START"):
        merge_warps(warps, 1, "block 0")


def test_records_are_counted_as_they_stand_in_the_row() -> None:
    """The elected events that only one warp logs are left out of the comparison, not of the numbering."""
    warps = rows(2)
    longer = np.concatenate([warps[11], warps[11][:1]])
    longer["event"][-1] = Event.WAIT_WG_1
    warps[11] = longer
    with pytest.raises(LogError, match=f"record {len(longer) - 1} of warp 11 is WAIT_WG_1"):
        merge_warps(warps, 2, "block 0")


def test_the_majority_wins_when_allowed() -> None:
    warps = rows(1)
    warps[4]["payload"][5] += 1
    merged = merge_warps(warps, 1, "block 0", allow_disagreement=True)
    assert merged.warp == 5
    assert [(lost.warp, lost.record) for lost in merged.outvoted] == [(4, 5)]


def test_at_equal_votes_the_lowest_warp_wins() -> None:
    warps = {warp: records for warp, records in rows(1).items() if warp in (5, 6)}
    warps[6]["payload"][5] += 1
    merged = merge_warps(warps, 1, "block 0", allow_disagreement=True)
    assert merged.warp == 5
    assert [lost.warp for lost in merged.outvoted] == [6]


def test_a_row_of_a_truncated_log_that_stops_early_has_no_vote() -> None:
    cut = rows(1)
    cut[7] = cut[7][:9]
    merged = merge_warps(cut, 1, "block 0", truncated=True)
    assert (merged.warp, merged.outvoted) == (4, ())
    assert events(merged.records) == events(rows(1)[4])
    with pytest.raises(LogError, match="record 9 of warp 7 is missing"):
        merge_warps(cut, 1, "block 0")
    cut[7]["payload"][8] += 1
    with pytest.raises(LogError, match="warps of role 1 disagree: record 8 of warp 7"):
        merge_warps(cut, 1, "block 0", truncated=True)
