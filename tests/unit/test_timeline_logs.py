"""Logs as timelines, and a log beside the run of its trace: matched tile by tile, with the difference per phase."""

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from click.testing import CliRunner

from simfa.cli import simfa
from simfa.errors import ReportError
from simfa.events import RECORD_DTYPE, Event
from simfa.report.log_timeline import log_timeline
from simfa.report.matched import PHASES, Matched, check_same_kernel, differences, match, side_by_side
from simfa.salog import ROW_HEADER_DTYPE, open_log
from simfa.timeline import read_timeline
from tests.unit import trace_reader
from tests.unit.test_timeline_files import small

LOGS = Path(__file__).parents[2] / "data" / "logs"
FULL = LOGS / "synthetic-d128-full.salog"


class HandLog:
    """One warp of each given role of block 7 on SM 3, with the records of a test: (time, event, stage, payload)."""

    ctas = 8
    row_bytes = 1024

    def __init__(self, *roles, level=2):
        self.metadata = msgspec.structs.replace(open_log(FULL).metadata, level=level)
        self._records = [np.zeros(len(rows), RECORD_DTYPE) for _, rows, _ in roles]
        self.rows = np.zeros(len(roles), ROW_HEADER_DTYPE)
        for index, (role, rows, end) in enumerate(roles):
            header = self.rows[index]
            header["role"], header["block"], header["smid"], header["records"] = role, 7, 3, len(rows)
            header["clock_end"] = end
            for record, (time, event, stage, payload) in zip(self._records[index], rows, strict=True):
                record["timestamp"], record["event"], record["stage"], record["payload"] = time, event, stage, payload

    def records(self, row):
        return self._records[row]


CONSUMER = (
    1,
    [
        (1000, Event.KERNEL_BEGIN, 0, 0),
        (1010, Event.TILE, 5, 2),
        (1010, Event.WAIT_K_START, 0, 0),
        (1050, Event.WAIT_K_END, 0, 0),
        (1052, Event.GEMM_QK_ISSUE, 0, 0),
        (1060, Event.WAIT_WG_0, 0, 0),
        (1100, Event.WAIT_WG_0_END, 0, 0),
        (1101, Event.RELEASE_K, 0, 0),
        (1301, Event.SOFTMAX_END, 0, 0),
        (1305, Event.TILE, 6, 2),
        (1305, Event.BAR_SYNC_START, 0, 9),
        (1405, Event.KERNEL_END, 0, 0),
    ],
    1410,
)


def clock(smid, values):
    """Cycles are the clock of SM 3, less 1000."""
    assert smid == 3
    return values.astype(np.float64) - 1000


def test_slices_of_a_log_by_hand() -> None:
    timeline = log_timeline(HandLog(CONSUMER), clock, 1e9)
    assert timeline.track_name == ["cta7/consumer1"]
    found = list(
        zip(
            timeline.start_cycle.tolist(),
            timeline.end_cycle.tolist(),
            timeline.labels(),
            timeline.arg.tolist(),
            strict=True,
        )
    )
    assert found == [
        (0, 10, "launch", -1),
        (10, 50, "wait_k", 0),
        (50, 52, "issue", 0),
        (52, 60, "wgmma_issue", 0),
        (60, 100, "wgmma_wait", 0),
        (100, 101, "issue", 0),
        (101, 301, "softmax", 0),
        (301, 305, "issue", 0),
        (305, 405, "barrier", 1),
        (405, 410, "tail", 1),
    ]
    assert timeline.tile_m_block.tolist() == [5, 6] and timeline.tile_head.tolist() == [2, 2]
    assert timeline.tile_sm.tolist() == [7, 7] and timeline.tile_begin_cycle.tolist() == [10, 305]


def test_level_1_tiles_begin_with_a_block_that_is_not_below_the_last() -> None:
    rows = [
        (1000, Event.WAIT_K_START, 0, 1),
        (1010, Event.GEMM_QK_ISSUE, 0, 1),
        (1020, Event.WAIT_WG_0, 0, 1),
        (1030, Event.GEMM_QK_ISSUE, 1, 0),
        (1040, Event.WAIT_K_START, 0, 0),  # a tile of one block
        (1050, Event.GEMM_QK_ISSUE, 0, 0),
    ]
    timeline = log_timeline(HandLog((1, rows, 1060), level=1), clock, 1e9)
    assert list(zip(timeline.labels(), timeline.arg.tolist(), strict=True)) == [
        ("wait_k or barrier", 0),
        ("wgmma_issue", 0),
        ("wgmma_wait and rest", 0),
        ("wgmma_issue", 0),
        ("wait_k or barrier", 1),
        ("wgmma_issue", 1),
    ]


def test_time_that_goes_backwards_is_refused() -> None:
    role, rows, end = CONSUMER
    rows = [*rows[:3], (1009, *rows[3][1:]), *rows[4:]]
    with pytest.raises(ReportError, match="log: block 7 role 1: the clock goes backwards at record 3"):
        log_timeline(HandLog((role, rows, end)), clock, 1e9)


def test_cta_that_did_not_log() -> None:
    with pytest.raises(ReportError, match="CTA 5 logged nothing; the log has rows of 1 CTAs"):
        log_timeline(HandLog(CONSUMER), clock, 1e9, ctas=(5,))


def tiled(place, slices, tiles, labels):
    """Return a timeline of one consumer and the tiles (ordinal, m_block, begin) of a place."""
    ordinal, m_block, begin = np.array(tiles).T
    zeros = np.zeros(len(tiles), np.int32)
    return small(
        slices,
        tracks=(f"{place}/consumer1",),
        names=labels,
        tile_sm=np.full(len(tiles), int(place.lstrip("smcta"))),
        tile_ordinal=ordinal,
        tile_m_block=m_block,
        tile_head=zeros,
        tile_batch=zeros,
        tile_begin_cycle=begin,
    )


# The log ran tiles 4 and 5 on CTA 7, the run tiles 5, 4 and 6 on SM 2.
LOGGED = tiled(
    "cta7",
    [(0, 0, 10, 50, 0), (0, 1, 50, 60, 0), (0, 0, 100, 120, 1), (0, 1, 120, 130, 1)],
    [(0, 4, 10), (1, 5, 100)],
    ("wait_k", "softmax"),
)
SIMULATED = tiled(
    "sm2",
    [(0, 1, 500, 530, 0), (0, 0, 530, 560, 1), (0, 2, 560, 565, 1), (0, 1, 565, 570, 1), (0, 0, 600, 700, 2)],
    [(0, 5, 500), (1, 4, 530), (2, 6, 600)],
    ("wait_k", "softmax", "cuda_contention"),
)


def test_tiles_are_matched_by_their_coordinates() -> None:
    tiles = match(LOGGED, SIMULATED)
    assert (tiles.logged.tolist(), tiles.simulated.tolist()) == ([0, 1], [1, 0])
    # The first matched tile begins at 10 in the log and at 500 in the run.
    assert tiles.shift_cycles(LOGGED, SIMULATED) == 490


def test_differences_by_hand() -> None:
    rows = {row.phase: row for row in differences(LOGGED, SIMULATED, match(LOGGED, SIMULATED))}
    # Logged: K waits of 40 and 20, softmax of 10 and 10. Simulated: 0 and 30; 30, and 5 with 5 of contention.
    assert (rows["K wait"].logged_cycles, rows["K wait"].simulated_cycles) == (30, 15)
    assert rows["K wait"].difference_cycles == -15
    assert (rows["softmax and rescale"].logged_cycles, rows["softmax and rescale"].simulated_cycles) == (10, 20)
    assert (rows["tile"].logged_cycles, rows["tile"].simulated_cycles) == (40, 35)
    assert set(rows) == {"K wait", "softmax and rescale", "tile"}


def test_side_by_side_by_hand() -> None:
    both = side_by_side(LOGGED, SIMULATED, match(LOGGED, SIMULATED))
    assert both.track_name == ["cta7/logged consumer1", "cta7/simulated consumer1 on SM 2"]
    logged, simulated = both.of_track(both.track_name[0]), both.of_track(both.track_name[1])
    assert logged.start_cycle.tolist() == [500, 540, 590, 610]
    assert simulated.end_cycle.tolist() == [530, 560, 565, 570]  # not the tile that the log lacks
    assert simulated.labels() == ["softmax", "wait_k", "cuda_contention", "softmax"]


def test_nothing_in_common() -> None:
    other = tiled("sm2", [(0, 0, 0, 1, 0)], [(0, 9, 0)], ("wait_k",))
    with pytest.raises(ReportError, match="no tile is in both: the log holds 2 tiles, the run recorded 1"):
        match(LOGGED, other)


def test_every_reason_of_a_role_is_in_one_phase() -> None:
    from simfa.simulate import _core

    placed = [reason for reasons in PHASES.values() for reason in reasons]
    assert len(placed) == len(set(placed))
    # Before its first tile and after its last one a role is in no phase; other rings are no part of FA3.
    assert set(_core.REASONS) - set(placed) == {"launch", "tail", "wait_other"}


def test_phases_of_level_1_are_refused() -> None:
    timeline = log_timeline(HandLog((1, CONSUMER[1][2:8], 1400), level=1), clock, 1e9)
    with pytest.raises(ReportError, match="level 1 stamps starts only; compare a log of level 2"):
        differences(timeline, SIMULATED, Matched(np.array([0]), np.array([0])))


def test_log_of_another_shape() -> None:
    metadata = open_log(FULL).metadata
    meta = {"shape": msgspec.to_builtins(metadata.shape), "kernel": msgspec.to_builtins(metadata.kernel)}
    check_same_kernel(meta, metadata.shape, metadata.kernel, "x.salog")
    meta["shape"] = meta["shape"] | {"seqlen_q": 4096}
    with pytest.raises(
        ReportError, match=r"x\.salog: the log is of another shape: the simulated run has seqlen_q 4096"
    ):
        check_same_kernel(meta, metadata.shape, metadata.kernel, "x.salog")
    with pytest.raises(ReportError, match="does not say its run's shape"):
        check_same_kernel({}, metadata.shape, metadata.kernel, "x.salog")


def invoke(*arguments):
    done = CliRunner().invoke(simfa, [str(argument) for argument in arguments], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """The folder of a run of the bundled log's trace, with all tiles of its sixteen CTAs."""
    folder = tmp_path_factory.mktemp("run")
    invoke("translate", FULL, "-o", folder / "t.satrace")
    invoke("simulate", folder / "t.satrace", "--timeline", 16, "--quiet", "-o", folder / "run")
    return folder / "run"


def test_log_becomes_a_trace_of_its_own(tmp_path) -> None:
    invoke("timeline", FULL, "--cta", "0,5", "-o", tmp_path / "log.pftrace")
    slices, _ = trace_reader.read((tmp_path / "log.pftrace").read_bytes())
    assert {s.rows for s in slices} == {
        (cta, role) for cta in ("CTA 0", "CTA 5") for role in ("producer", "consumer1", "consumer2")
    }
    # Every cycle that a warp logged is in a slice: the sum is the time from its first record to its end.
    log = open_log(FULL)
    (row,) = [r for r, header in enumerate(log.rows) if (header["block"], header["warp"]) == (5, 7)]
    stamped = int(log.rows["clock_end"][row]) - int(log.records(row)["timestamp"][0])
    total = sum(s.arguments["cycles"] for s in slices if s.rows == ("CTA 5", "consumer1"))
    assert total == pytest.approx(stamped, abs=2)  # the fit of clocks rounds


def test_log_beside_its_run(simulated, tmp_path) -> None:
    done = invoke("timeline", simulated, "--log", FULL, "--json", "-o", tmp_path / "both.pftrace")
    rows = json.loads(done.stdout)
    assert "16 tiles of a synthetic log at 1,830 MHz" in done.stderr
    by_name = {(row["role"], row["phase"]): row for row in rows}
    # The run's side is what its timeline says, summed by hand.
    run = read_timeline(simulated / "timeline.npz")
    waits = 0
    for cta in range(16):
        part = run.of_track(f"sm{cta}/consumer2")
        waits += sum(
            end - start
            for start, end, label in zip(part.start_cycle, part.end_cycle, part.labels(), strict=True)
            if label == "barrier"
        )
    assert by_name["consumer2", "ping-pong wait"]["simulated_cycles"] == pytest.approx(waits / 16)
    # A role's phases sum to its tile on both sides.
    for side in ("logged_cycles", "simulated_cycles"):
        for role in ("producer", "consumer1", "consumer2"):
            parts = sum(row[side] for (who, phase), row in by_name.items() if who == role and phase != "tile")
            assert by_name[role, "tile"][side] == pytest.approx(parts)
    slices, _ = trace_reader.read((tmp_path / "both.pftrace").read_bytes())
    units = [unit for _, unit in dict.fromkeys(s.rows for s in slices if s.rows[0] == "CTA 3")]
    assert {"logged consumer1", "simulated consumer1", "simulated tensor", "simulated K stage 0"} <= set(units)
    assert json.loads((tmp_path / "both.pftrace.manifest.json").read_text())["inputs"].keys() == {"timeline", "log"}


def test_log_beside_the_run_of_another_shape(simulated) -> None:
    with pytest.raises(ReportError, match=r"synthetic-d64-full\.salog: the log is of another shape: .* head_dim 128"):
        invoke("timeline", simulated, "--log", LOGS / "synthetic-d64-full.salog")
