"""Window length and threads change the host's time, never a figure or a slice of the timeline."""

from pathlib import Path

import pytest

from simfa.hardware import load_preset
from simfa.salog import open_log
from simfa.simulate.engine import run
from simfa.translate.log_translation import translate_log
from tests.oracle.cases import seeded_case
from tests.oracle.chooser import SeededChooser
from tests.oracle.full_memory import differing, draw_memory, everything

LOGS = sorted((Path(__file__).parents[2] / "data" / "logs").glob("*.salog"))
LONGEST = 0
FEW = [(1, 1), (LONGEST, 2), (7, 3)]
ALL = [(window, threads) for window in (LONGEST, 1, 7) for threads in (1, 2, 3)]


def _check(name, trace, hardware, settings, **options):
    first = everything(trace, hardware, **options)
    for window, threads in settings:
        other = everything(trace, hardware, window_cycles=window, threads=threads, **options)
        assert differing(first, other) == [], f"{name}: window {window}, {threads} threads"
    return first


def _check_random(seed, count, settings):
    """Compare random traces on random small chips, every third stopped on the way; return how many write to memory."""
    writing = 0
    for index in range(count):
        case = seeded_case(seed, index)
        chooser = SeededChooser(f"memory {seed} {index}")
        hardware = draw_memory(chooser, case.hardware)
        options = {"seed": index}
        if index % 3 == 0:
            options["max_cycles"] = chooser.integer(1, 2000)
        found = _check(f"case {index}", case.trace, hardware, settings, **options)
        writing += found["dram_write_bytes"] > 0
    return writing


def test_random_traces_on_small_chips():
    assert _check_random(seed=3, count=60, settings=FEW) > 5


@pytest.mark.slow
def test_many_random_traces_on_small_chips():
    assert _check_random(seed=4, count=400, settings=ALL) > 50


def test_logs_are_there():
    assert len(LOGS) >= 9


@pytest.mark.parametrize("memory", ["channel", "hbm3"])
@pytest.mark.parametrize("log", [path for path in LOGS if path.stat().st_size < 100_000], ids=lambda path: path.stem)
def test_small_logs(log, memory):
    hardware = load_preset("h100-sxm", overrides=[f"memory.model={memory}"]).spec
    assert not _check(log.name, translate_log(open_log(log)).trace, hardware, FEW)["partial"]


# A preset with RemoteCopy (a window of 78), one without; a cache that does not hold K and V, so that lines go back to
# memory; memory with banks; runs that are stopped.
VARIANTS = {
    "h100": ("h100-sxm", [], {}),
    "paper": ("h800-sxm-paper", [], {}),
    "small cache": ("h100-sxm", ["l2.capacity_bytes=1638400", "l2.mshr_entries=8"], {}),
    "hbm3": ("h100-sxm", ["memory.model=hbm3", "l2.capacity_bytes=1638400"], {}),
    "stopped hbm3": ("h100-sxm", ["memory.model=hbm3"], {"max_cycles": 12_345}),
    "stopped": ("h100-sxm", [], {"max_cycles": 12_345}),
}


@pytest.mark.slow
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("log", LOGS, ids=lambda path: path.stem)
def test_all_logs(log, variant):
    preset, overrides, options = VARIANTS[variant]
    hardware = load_preset(preset, overrides=overrides).spec
    found = _check(log.name, translate_log(open_log(log)).trace, hardware, ALL, **options)
    assert found["partial"] == (variant.startswith("stopped"))
    if variant in ("small cache", "hbm3") and "persistent" in log.name:
        assert found["dram_write_bytes"] > 0


def test_a_seed_matters_with_remote_copy():
    """Other random numbers do change something, so the tests above compare what they should."""
    log = next(path for path in LOGS if path.stem == "synthetic-d256-causal")
    trace, hardware = translate_log(open_log(log)).trace, load_preset("h800-sxm-paper").spec
    first, second = (run(trace, hardware, seed=seed).counters["l2_shadow_inserts"] for seed in (0, 1))
    assert first != second
