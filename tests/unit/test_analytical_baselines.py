"""The ideal-cache baseline and GenZ."""

import importlib.metadata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simfa.analytical import baselines, traffic
from simfa.analytical.baselines import genz, ideal_cache
from simfa.errors import AnalyticalError
from simfa.workload import MODELS, model_shape
from tests.unit.analytical_cases import call, repeatable


def installed() -> bool:
    try:
        return importlib.metadata.version("genz-llm") == baselines.GENZ_VERSION
    except importlib.metadata.PackageNotFoundError:
        return False


needs_genz = pytest.mark.skipif(not installed(), reason="needs genz-llm (pip install 'simfa[baselines]')")


def test_ideal_cache_is_eq_1_and_3_under_two_roofs() -> None:
    found = ideal_cache(model_shape("llama3.1-405b", 65536), "h800-sxm")
    assert (found.flops, found.dram_bytes) == (281_474_976_710_656, 4_563_402_752)
    assert found.latency_us == pytest.approx(281_474_976_710_656 / (132 * 4096 * 1830))
    decode = ideal_cache(call(65536, seqlen_q=1), "h800-sxm")
    assert decode.latency_us == pytest.approx(decode.dram_bytes / 3.352e6)


@repeatable
@given(st.integers(1, 100_000), st.booleans())
def test_ideal_cache_is_never_above_the_model(seqlen: int, causal: bool) -> None:
    attention = call(seqlen, causal=causal)
    answer, ideal = traffic(attention), ideal_cache(attention)
    assert ideal.dram_bytes == answer.dram_ideal_bytes <= answer.dram_bytes
    assert ideal.latency_us <= answer.latency_bound_us


@needs_genz
@pytest.mark.parametrize("gpu", ["h800-sxm", "gb10"])
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("seqlen", [512, 16384, 65536])
@pytest.mark.parametrize("model", list(MODELS))
def test_genz_is_eq_3_to_the_byte(model: str, seqlen: int, batch: int, gpu: str) -> None:
    shape = model_shape(model, seqlen, batch=batch)
    found, answer = genz(shape, gpu), traffic(shape, gpu, "paper")
    assert (found.flops, found.dram_bytes) == (answer.flops, answer.dram_ideal_bytes)


@needs_genz
def test_genz_misses_refetches_and_keeps_the_time() -> None:
    """405B at 64K on GB10: 21 times too few bytes, while both models are compute bound."""
    shape = model_shape("llama3.1-405b", 65536)
    found, answer = genz(shape, "gb10"), traffic(shape, "gb10", "paper")
    assert answer.dram_bytes / found.dram_bytes == pytest.approx(21, abs=0.1)
    assert found.latency_us == pytest.approx(ideal_cache(shape, "gb10").latency_us)
    assert answer.bound_by == "tensor"


@needs_genz
def test_genz_leaves_no_files_and_no_output(
    tmp_path: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    genz(model_shape("llama3-8b", 1024), "h100-sxm")
    assert not list(tmp_path.iterdir()) and capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "changes", [{"causal": True}, {"seqlen_q": 64}, {"value_dim": 64}, {"qk_bytes": 1, "v_bytes": 1}]
)
def test_genz_prices_square_unmasked_16_bit_prefill_only(changes: dict[str, object]) -> None:
    with pytest.raises(AnalyticalError, match="GenZ prices square, unmasked prefill"):
        genz(call(1024, **changes))


@pytest.mark.parametrize(
    ("version", "message"), [(None, "pip install 'simfa"), ("0.1.0", r"genz-llm 0.1.0 is installed")]
)
def test_genz_missing_or_of_another_version(version: str | None, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def look_up(name: str) -> str:
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(baselines.importlib.metadata, "version", look_up)
    with pytest.raises(AnalyticalError, match=message):
        genz(call(1024))
