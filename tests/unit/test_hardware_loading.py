"""Presets: what loads, what is refused and how the message reads."""

from pathlib import Path

import pytest

from simfa.errors import HardwareError
from simfa.hardware import load_preset, overlay_names, preset_names, value_at
from simfa.units import unit_of


@pytest.mark.parametrize("name", preset_names())
def test_every_value_has_status_source_and_place(name: str) -> None:
    preset = load_preset(name)
    assert len(preset.provenance) > 60
    for path, provenance in preset.provenance.items():
        assert provenance.source.strip()
        assert value_at(preset.spec, path) is not None
        if provenance.range is not None:
            low, high = provenance.range
            assert low <= value_at(preset.spec, path) <= high, path


def test_paper_preset_is_table_2() -> None:
    spec = load_preset("h800-sxm-paper").spec
    assert (spec.gpu.sm_clock_hz, spec.gpu.sm_count, spec.l2.slices) == (1.83e9, 132, 80)
    assert spec.l2.capacity_bytes == 50 * 2**20
    assert round(spec.tensor_flop_per_s / 1e12) == 989
    assert (spec.tensor_core.wgmma_window_ss, spec.tma.max_lines_in_flight) == (16, 64)
    assert spec.tma.issue_bytes_per_cycle == 2 * spec.l2.line_bytes
    assert (spec.crossbar.near_latency_cycles, spec.crossbar.far_latency_cycles) == (258, 414)
    assert (spec.l2.response_queue_entries, spec.l2.request_queue_entries) == (128, 32)
    # 80 channels of 64 bits at 5.2 Gb/s.
    assert spec.memory.peak_bytes_per_s == pytest.approx(80 * 8 * 5.2e9)
    assert (spec.tma.launch_cycles, spec.tma.tensor_map_cycles) == (40, 130)


@pytest.mark.parametrize("name", overlay_names())
def test_overlays_change_something(name: str, tmp_path: Path) -> None:
    # No shipped preset slows CUDA cores down beside WGMMAs.
    pressed = tmp_path / "pressed.toml"
    value = '{ value = 0.2, status = "assumed", source = "test" }'
    pressed.write_text(f'extends = "h100-sxm"\n[cuda_core]\nregister_pressure = {value}\n')
    changed = {base: load_preset(base, [name]) for base in ("h100-sxm", "h800-pcie", str(pressed))}
    assert changed["h100-sxm"].name == f"h100-sxm+{name}"
    assert any(preset.spec.sha256() != load_preset(base).spec.sha256() for base, preset in changed.items())


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("l2.mshr_entries", r"expected path=value"),
        ("l2.mshr_entry=3", r"no such value; did you mean l2\.mshr_entries\?"),
        ("l2.mshr_entries=many", r"Expected `int`, got `str` - at `l2\.mshr_entries`"),
        ("mbarrier.wake_cycles=-1", r"Expected `int` >= 0 - at `mbarrier\.wake_cycles`"),
        ("gpu.sm_count=131", "gpu.sm_count 131 is odd; SMs come in pairs"),
        ("l2.ways=19", "not a whole number of sets"),
        ("l2.mshr_entries=0", r"Expected `int` >= 1 - at `l2\.mshr_entries`"),
        ("l2.mshr_merges=0", r"Expected `int` >= 1 - at `l2\.mshr_merges`"),
        ("l2.hash=ipoly", r"Invalid enum value 'ipoly' - at `l2\.hash`"),
        ("crossbar.far_latency_cycles=100", "far_latency_cycles is below near_latency_cycles"),
        ("tma.request_bytes=96", "tma.request_bytes 96 does not divide a 128-byte line"),
        ("tma.request_bytes=256", "tma.request_bytes 256 does not divide a 128-byte line"),
        ("l2.sector_bytes=48", "l2.sector_bytes 48 does not divide a 128-byte line into 1 to 8 sectors"),
        ("l2.sector_bytes=8", "l2.sector_bytes 8 does not divide a 128-byte line into 1 to 8 sectors"),
        ("l2.fetch_bytes=16", "l2.fetch_bytes 16 is no part of a 128-byte line in whole sectors of 32 bytes"),
        ("l2.fetch_bytes=256", "l2.fetch_bytes 256 is no part of a 128-byte line in whole sectors of 32 bytes"),
        (
            "l2.bytes_per_cycle_per_slice=48",
            "l2.bytes_per_cycle_per_slice 48 neither divides nor is a multiple of a 128-byte line",
        ),
        ("memory.write_queue_entries=0", r"Expected `int` >= 1 - at `memory\.write_queue_entries`"),
        ("memory.efficiency=1.5", r"<= 1\.0 - at `memory\.efficiency`"),
        ("memory.efficiency=nan", r"at `memory\.efficiency`"),
        ("tma.max_lines_in_flight=1\nb=2", "expected one value; give --set once for each"),
    ],
)
def test_wrong_overrides(override: str, message: str) -> None:
    with pytest.raises(HardwareError, match=message):
        load_preset("h100-sxm", overrides=[override])


def test_override_is_marked_as_assumed() -> None:
    preset = load_preset("h100-sxm", overrides=["l2.hash=modulo", "memory.efficiency=0.9"])
    assert (preset.spec.l2.hash, preset.spec.memory.efficiency) == ("modulo", 0.9)
    assert preset.provenance["l2.hash"].status == "assumed"
    assert preset.provenance["l2.hash"].source == "command line"


def own(tmp_path: Path, text: str) -> str:
    """Write a preset file of the user's own."""
    path = tmp_path / "mine.toml"
    path.write_text(text)
    return str(path)


def test_own_preset_extends_another(tmp_path: Path) -> None:
    text = 'extends = "h20"\n[l2]\nways = { value = 10, status = "assumed", source = "what if" }\n'
    preset = load_preset(own(tmp_path, text))
    assert (preset.name, preset.spec.l2.ways, preset.spec.gpu.sm_count) == ("mine", 10, 78)


def test_a_file_extends_one_beside_it(tmp_path: Path) -> None:
    own(tmp_path, 'extends = "h20"\n')
    (tmp_path / "child.toml").write_text('extends = "mine.toml"\n')
    assert load_preset(str(tmp_path / "child.toml")).spec == load_preset("h20").spec
    (tmp_path / "mine.toml").write_text('extends = "child.toml"\n')
    with pytest.raises(HardwareError, match=r"child\.toml: extends itself through"):
        load_preset(str(tmp_path / "child.toml"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('extends = "h100-sxm"\n[l2]\nways = 10\n', r"l2\.ways has no provenance; write \{ value"),
        (
            'extends = "h100-sxm"\n[l2]\nmshr = { value = 1, status = "paper", source = "x" }\n',
            "unknown field `mshr` - at `l2`",
        ),
        (
            'extends = "h100-sxm"\n[mbarrier]\nwake_cycles = { value = -3, status = "paper", source = "x" }\n',
            r"Expected `int` >= 0 - at `mbarrier\.wake_cycles`",
        ),
        (
            'extends = "h100-sxm"\n[l2]\nways = { value = 10, status = "guess", source = "x" }\n',
            r"l2\.ways: Invalid enum",
        ),
        ("not toml", "not valid TOML"),
        ("[gpu]\n", "missing required field"),
        ("extends = 3\n", r"mine\.toml: extends is 3; expected the name of a preset"),
        (
            'extends = "h100-sxm"\n[l2.ways]\nx = { value = 1, status = "paper", source = "x" }\n',
            r"l2\.ways\.x: ways is a value, not a group of values",
        ),
        (
            'extends = "h100-sxm"\n[l2]\nways = { value = 10, status = "paper", source = "x", rnage = [1, 2] }\n',
            r"l2\.ways: Object contains unknown field `rnage`",
        ),
    ],
)
def test_wrong_preset_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(HardwareError, match=message):
        load_preset(own(tmp_path, text))


def test_presets_are_utf_8(tmp_path: Path) -> None:
    path = tmp_path / "latin.toml"
    path.write_bytes(b"# \xb5s\n")
    with pytest.raises(HardwareError, match=r"latin\.toml: offset 2: expected UTF-8 text"):
        load_preset(str(path))


def test_overlays_extend_nothing(tmp_path: Path) -> None:
    with pytest.raises(HardwareError, match=r"extends has no meaning in an overlay; give a whole preset as --gpu"):
        load_preset("h100-sxm", [own(tmp_path, 'extends = "h20"\n')])


def test_circle_of_presets(tmp_path: Path) -> None:
    path = own(tmp_path, "")
    Path(path).write_text(f'extends = "{path}"\n')
    with pytest.raises(HardwareError, match="extends itself"):
        load_preset(path)


def test_unknown_names_suggest() -> None:
    with pytest.raises(HardwareError, match="preset 'h100-smx' is unknown; did you mean h100-sxm"):
        load_preset("h100-smx")
    with pytest.raises(HardwareError, match="overlay 'no-lcr' is unknown; did you mean no-lrc"):
        load_preset("h100-sxm", ["no-lcr"])
    with pytest.raises(HardwareError, match="cannot be read: No such file"):
        load_preset("absent.toml")


@pytest.mark.parametrize(
    ("path", "unit"),
    [
        ("l2.bytes_per_cycle_per_slice", "B/cycle"),
        ("memory.latency_ns", "ns"),
        ("gpu.sm_clock_hz", "Hz"),
        ("cuda_core.exp_per_cycle", "1/cycle"),
        ("tensor_core.flop_per_cycle", "FLOP/cycle"),
        ("l2.ways", ""),
    ],
)
def test_units_come_from_names(path: str, unit: str) -> None:
    assert unit_of(path) == unit


def test_the_side_hash_is_known_for_lines_of_128_bytes_only() -> None:
    overrides = ["l2.line_bytes=64", "tma.issue_bytes_per_cycle=64"]
    with pytest.raises(HardwareError, match=r"l2\.hash side is known for lines of 128 bytes; l2\.line_bytes is 64"):
        load_preset("h800-pcie", overrides=overrides)


def test_h800_pcie_is_the_part_of_the_curves() -> None:
    spec = load_preset("h800-pcie").spec
    assert (spec.gpu.sm_count, spec.gpu.sm_clock_hz, spec.memory.dram.standard) == (114, 1.755e9, "hbm2e")
    assert (spec.crossbar.near_latency_cycles, spec.crossbar.far_latency_cycles) == (258, 414)
