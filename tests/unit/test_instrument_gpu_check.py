"""The script for a GPU node, against a GPU that is not there."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from simfa.files import json_bytes, sha256_of
from simfa.instrument import gpu_check
from simfa.instrument.gpu import open_gpu
from simfa.instrument.gpu_check import Session, run_checks
from simfa.instrument.instantiation import parse_kernel
from simfa.workload import AttentionShape
from tests.unit.fake_gpu import FakeGpu, FakeLauncher

SHAPE = AttentionShape(batch=1, seqlen_q=512, seqlen_kv=512, heads_q=4, heads_kv=2, head_dim=128)
KERNELS = [parse_kernel("hdim128-fp16-full-cluster2")]


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Return a function that makes a session with made-up kernels on a small shape."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gpu_check, "MODELS", {"small": None})
    monkeypatch.setattr(gpu_check, "PAPER_SEQLENS", (512,))
    monkeypatch.setattr(gpu_check, "model_shape", lambda model, seqlen: SHAPE)
    library = tmp_path / "libsimfa_fa3.so"
    library.write_bytes(b"library")
    facts = {"source_sha256": "ab", "source": "made up", "nvcc": "13.0.88", "library_sha256": sha256_of(library)}
    library.with_name(library.name + ".manifest.json").write_bytes(json_bytes(facts))

    def make(spoil=None, wrong_by: float = 0.0) -> Session:
        gpu = FakeGpu(itertools.cycle([50.0, 51.0]))
        plain = FakeLauncher(gpu, 0, KERNELS, wrong_by=wrong_by)
        probed = FakeLauncher(gpu, 2, KERNELS, path=library, spoil=spoil)
        return Session(gpu, plain, probed, tmp_path)

    return make


def outcomes(session: Session) -> dict[str, str]:
    return {found.name: found.result for found in run_checks(session, lambda line: None)}


def test_sound_kernels_pass_and_the_rest_says_why_it_did_not_run(session) -> None:
    results = {found.name: found for found in run_checks(session(), lambda line: None)}
    passed = {name for name, found in results.items() if found.result == "passed"}
    assert passed == {"results are right", "records are complete", "placement", "clocks", "paper latencies"}
    not_run = {name: found.reason for name, found in results.items() if found.result == "not run"}
    assert set(not_run) == {"profiler bytes", "packaged kernel"}
    assert all(not_run.values())
    assert results["paper latencies"].facts["small 512"]["plain_us"] > 0


def test_a_wrong_result_fails_and_the_other_checks_still_run(session) -> None:
    found = outcomes(session(wrong_by=1.0))
    assert found["results are right"] == "failed"
    assert len(found) == len(gpu_check.CHECKS)


def test_two_ctas_on_one_sm_fail(session) -> None:
    def spoil(rows: np.ndarray, _: int) -> None:
        rows[:, 8] = 7  # low byte of smid

    assert outcomes(session(spoil))["placement"] == "failed"


def test_a_slower_global_timer_fails(session) -> None:
    def spoil(rows: np.ndarray, _: int) -> None:
        for offset in (32, 48):
            timer = rows[:, offset : offset + 8].copy().view(np.uint64)
            rows[:, offset : offset + 8] = (timer // 1024 * 1024).view(np.uint8)

    assert outcomes(session(spoil))["clocks"] == "failed"


def test_nothing_starts_after_the_time_limit(session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_check, "TIME_LIMIT_SECONDS", -1)
    assert set(outcomes(session()).values()) == {"not run"}


def test_without_a_gpu_library_the_script_ends_with_one_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simfa.instrument.gpu.importlib.util.find_spec", lambda name: None)
    done = CliRunner().invoke(gpu_check.main, ["--library", str(tmp_path), "-o", str(tmp_path / "x.json")])
    assert done.exit_code == 1
    assert "no GPU library installed" in done.output
    assert not (tmp_path / "x.json").exists()


def test_an_unknown_backend_is_refused() -> None:
    with pytest.raises(Exception, match="expected one of cupy, pycuda, torch"):
        open_gpu("opencl")
