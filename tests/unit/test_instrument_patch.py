"""The patcher on made-up trees: exact hits, refusal of everything else, originals untouched."""

import re

import pytest

from simfa.errors import InstrumentError
from simfa.events import LEVEL_1_EVENTS, Event
from simfa.instrument.patch import patch_sources, unified_diff
from simfa.instrument.rules import EPILOGUE, KERNEL, MAINLOOP, RULES
from tests.unit import fa3_skeleton

STAMPED_IN_PROBE = {Event.KERNEL_BEGIN, Event.KERNEL_END}


def stamped(texts: dict[str, str]) -> list[str]:
    return re.findall(r"simfa::Event::(\w+)", "".join(texts.values()))


def without_stamps(text: str) -> str:
    """Cut out every call of the probe, whatever its arguments hold."""
    while found := re.search(r"(?:mainloop\.)?simfa_probe\.record\w*\(", text):
        depth, end = 1, found.end()
        while depth:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + text[end + 1 :]
    return text


def test_level_0_changes_nothing() -> None:
    sources = fa3_skeleton.sources()
    patch = patch_sources(sources, 0)
    assert patch.texts == sources
    assert patch.hits == []
    assert unified_diff(sources, patch.texts) == ""


@pytest.mark.parametrize(
    ("level", "events"), [(1, LEVEL_1_EVENTS), (2, frozenset(Event) - STAMPED_IN_PROBE)], ids=["level 1", "level 2"]
)
def test_every_event_of_the_level_is_stamped_and_no_other(level: int, events: frozenset[Event]) -> None:
    patch = patch_sources(fa3_skeleton.sources(), level)
    assert set(stamped(patch.texts)) == {event.name for event in events}


def test_level_1_touches_the_main_loop_alone() -> None:
    sources = fa3_skeleton.sources()
    patch = patch_sources(sources, 1)
    assert patch.texts[KERNEL] == sources[KERNEL]
    assert patch.texts[EPILOGUE] == sources[EPILOGUE]


def test_removing_the_insertions_gives_the_original_back() -> None:
    sources = fa3_skeleton.sources()
    patched = patch_sources(sources, 2).texts
    for name, text in patched.items():
        text = without_stamps(text)
        text = text.replace('#include "simfa_probe.cuh"\n', "").replace("\n    simfa::Probe simfa_probe;", "")
        text = text.replace("simfa::Probe& simfa_probe, ", "").replace("mainloop.simfa_probe, ", "")
        assert text.split() == sources[name].split()


def test_stamps_stand_directly_beside_their_calls() -> None:
    text = patch_sources(fa3_skeleton.sources(), 1).texts[MAINLOOP]
    assert re.search(r"Event::TMA_K_ISSUE, smem_pipe_write\.index\(\), n_block\); copy\(params\.tma_load_K\.with", text)
    assert re.search(r"Event::WAIT_WG_1, smem_pipe_read\.index\(\), n_block\); warpgroup_wait<1>", text)
    # V trails K by a block in the loop that issues the next QK first.
    block = re.escape("n_block + (IntraWGOverlap ? 1 : 0)")
    assert re.search(rf"Event::GEMM_PV_ISSUE, smem_pipe_read_v\.index\(\), {block}\); flash::gemm", text)


def test_diff_names_both_sides_and_holds_every_insertion() -> None:
    sources = fa3_skeleton.sources()
    patch = patch_sources(sources, 2)
    diff = unified_diff(sources, patch.texts)
    assert f"--- a/hopper/{MAINLOOP}" in diff
    assert f"+++ b/hopper/{EPILOGUE}" in diff
    added = [line for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert sum(line.count("simfa::Event::") for line in added) == len(stamped(patch.texts))


def test_patching_twice_is_refused() -> None:
    once = patch_sources(fa3_skeleton.sources(), 1).texts
    with pytest.raises(InstrumentError, match="already patched"):
        patch_sources(once, 1)


@pytest.mark.parametrize("rule", RULES, ids=[f"{rule.name} in {rule.region.start}" for rule in RULES])
def test_a_missing_call_site_is_refused_by_the_rule_s_name(rule) -> None:
    sources = fa3_skeleton.sources()
    text = sources[rule.file]
    code = re.sub(r"//[^\n]*", lambda found: " " * len(found[0]), text)
    start = 0 if rule.region.start is None else re.search(rule.region.start, code).start()
    found = re.compile(rule.pattern).search(code, start)
    assert found is not None
    sources[rule.file] = text[: found.start()] + text[found.end() :]
    with pytest.raises(InstrumentError) as error:
        patch_sources(sources, 2)
    assert rule.file in str(error.value)
    assert "v2.8.0 to v2.8.3" in str(error.value)


def test_one_site_too_many_is_refused_with_both_counts() -> None:
    sources = fa3_skeleton.sources()
    sources[EPILOGUE] = sources[EPILOGUE].replace("tma_store_wait<0>();", "tma_store_wait<0>(); tma_store_wait<0>();")
    with pytest.raises(InstrumentError, match=r"'TMA_O_WAIT_END': 2 call-sites .* expected 1"):
        patch_sources(sources, 2)


def test_an_older_tree_with_other_names_is_refused() -> None:
    sources = fa3_skeleton.sources()
    sources[MAINLOOP] = sources[MAINLOOP].replace("tiled_mma_qk", "tiled_mma0").replace("tiled_mma_pv", "tiled_mma1")
    with pytest.raises(InstrumentError, match="GEMM_QK_ISSUE"):
        patch_sources(sources, 1)


def test_a_call_under_an_if_without_braces_is_refused() -> None:
    sources = fa3_skeleton.sources()
    sources[MAINLOOP] = sources[MAINLOOP].replace(
        "if (wg == 0) { consumer_wait(pipeline_k, smem_pipe_read); }",
        "if (wg == 0) consumer_wait(pipeline_k, smem_pipe_read);",
    )
    with pytest.raises(InstrumentError, match=r"'WAIT_K_START': line \d+: the call does not begin a statement"):
        patch_sources(sources, 1)


def test_a_file_that_is_not_there_is_refused() -> None:
    sources = fa3_skeleton.sources()
    del sources[EPILOGUE]
    with pytest.raises(InstrumentError, match=f"{EPILOGUE}: not found"):
        patch_sources(sources, 2)


def test_an_empty_file_is_refused_by_what_it_lacks() -> None:
    with pytest.raises(InstrumentError, match=r"'include in the epilogue': 0 call-sites match .* expected 1"):
        patch_sources(fa3_skeleton.sources() | {EPILOGUE: ""}, 2)


def test_unknown_level_is_refused() -> None:
    with pytest.raises(InstrumentError, match="event level 3"):
        patch_sources(fa3_skeleton.sources(), 3)
