"""Faults on purpose: what each changes, and that a reader refuses what it must."""

import numpy as np
import pytest

from simfa.errors import LogError
from simfa.events import Event
from simfa.hardware import load_preset
from simfa.instrument.perturb import Perturbation, PerturbedLog, parse_perturbation
from simfa.instrument.synthetic import synthesize
from simfa.kernel import kernel_for
from simfa.salog import open_log, write_log
from simfa.workload import AttentionShape

SHAPE = AttentionShape(batch=1, seqlen_q=512, seqlen_kv=512, heads_q=2, heads_kv=2, head_dim=128)
CLEAN = synthesize(SHAPE, kernel_for(SHAPE), load_preset("h100-sxm"), one_warp=False)
FIELDS = ["event", "stage", "payload", "aux"]


def written(tmp_path, text, seed=0, **how):
    write_log(tmp_path / "run.salog", PerturbedLog(CLEAN, parse_perturbation(text), seed))
    return open_log(tmp_path / "run.salog", **how)


def test_skew_moves_warps_and_nothing_else(tmp_path):
    log = written(tmp_path, "skew=5000")
    shifts = set()
    for row in range(len(log.rows)):
        clean, skewed = CLEAN.records(row), log.records(row)
        assert skewed[FIELDS].tolist() == clean[FIELDS].tolist()
        shift = np.unique(skewed["timestamp"] - clean["timestamp"])
        assert len(shift) == 1
        shifts.add(int(shift[0]))
        assert skewed["timestamp"][-1] <= log.rows["clock_end"][row]
    assert len(shifts) > len(log.rows) // 2
    assert 2500 < max(shifts) <= 5000


def test_dropped_records_are_counted_and_refused(tmp_path):
    with pytest.raises(LogError, match="dropped is 3; expected no dropped records"):
        written(tmp_path, "drop=3")
    log = written(tmp_path, "drop=3", allow_truncated=True)
    assert sorted(set(log.rows["dropped"].tolist())) == [0, 3]
    assert (log.rows["dropped"] == 3).sum() == 1
    victim = int(np.argmax(log.rows["dropped"]))
    clean = CLEAN.records(victim)["timestamp"].tolist()
    kept = log.records(victim)["timestamp"].tolist()
    assert len(kept) == len(clean) - 3
    assert set(kept) < set(clean)


def test_overflow_drops_the_newest(tmp_path):
    with pytest.raises(LogError, match="expected no dropped records"):
        written(tmp_path, "overflow=20")
    log = written(tmp_path, "overflow=20", allow_truncated=True)
    assert log.row_bytes == 512
    assert log.rows["records"].max() == 28
    assert (log.rows["records"] + log.rows["dropped"] == CLEAN.rows["records"]).all()
    for row in range(len(log.rows)):
        assert log.records(row).tobytes() == CLEAN.records(row)[:28].tobytes()


def test_one_warp_disagrees_with_its_warpgroup(tmp_path):
    log = written(tmp_path, "disagree")
    differing = [row for row in range(len(log.rows)) if log.records(row).tobytes() != CLEAN.records(row).tobytes()]
    assert len(differing) == 1
    header = log.rows[differing[0]]
    assert header["role"] > 0
    assert header["warp"] % 4 != 3
    changed, clean = log.records(differing[0]), CLEAN.records(differing[0])
    assert (changed["timestamp"] == clean["timestamp"]).all()
    places = np.flatnonzero(changed[FIELDS] != clean[FIELDS])
    assert len(places) == 2
    assert changed[FIELDS][places].tolist() == clean[FIELDS][places[::-1]].tolist()
    assert Event(changed["event"][places[0]]) != Event(changed["event"][places[1]])


@pytest.mark.parametrize("text", ["drop=3", "disagree", "skew=9"])
def test_victims_depend_on_the_seed_alone(text):
    def bytes_of(seed):
        log = PerturbedLog(CLEAN, parse_perturbation(text), seed)
        return [log.records(row).tobytes() for row in range(len(log.rows))]

    assert bytes_of(1) == bytes_of(1)
    assert len({tuple(bytes_of(seed)) for seed in range(4)}) > 1


def test_faults_are_noted_in_the_metadata():
    log = PerturbedLog(PerturbedLog(CLEAN, parse_perturbation("disagree"), 0), parse_perturbation("drop=2"), 0)
    assert log.metadata.perturbations == ("disagree", "drop=2")
    assert CLEAN.metadata.perturbations == ()


@pytest.mark.parametrize("text", ["drop=2", "skew=7", "overflow=9", "disagree", "truncate=100"])
def test_faults_read_back_as_written(text):
    assert str(parse_perturbation(text)) == text


@pytest.mark.parametrize("text", ["", "drop", "drop=", "drop=0", "drop=-1", "drop=x", "disagree=1", "flood=3"])
def test_unknown_faults_are_refused(text):
    with pytest.raises(ValueError, match="drop=COUNT"):
        parse_perturbation(text)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Perturbation("drop", 10**6), "expected a row of more than 1000000 records"),
        (Perturbation("truncate", 10**9), "the whole file has"),
    ],
)
def test_faults_too_large_for_the_log_are_refused(fault, message):
    with pytest.raises(LogError, match=message):
        PerturbedLog(CLEAN, fault, 0)


def test_one_warp_cannot_disagree_with_itself():
    alone = synthesize(SHAPE, kernel_for(SHAPE), load_preset("h100-sxm"))
    with pytest.raises(LogError, match="leave out --one-warp"):
        PerturbedLog(alone, Perturbation("disagree"), 0)


@pytest.mark.parametrize("kind", ["drop", "skew", "overflow", "truncate"])
def test_faults_beyond_what_a_log_holds_are_refused(kind):
    with pytest.raises(ValueError, match=f"'{kind}=16777217': expected at most 16777216"):
        parse_perturbation(f"{kind}=16777217")
    assert parse_perturbation(f"{kind}=16777216").size == 1 << 24
