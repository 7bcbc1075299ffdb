"""The model's figures as a folder of SVG files with an index: Figures 8 and 9 of arXiv:2605.00555, and a roofline."""

from pathlib import Path

from simfa import __version__
from simfa.analytical import figures
from simfa.analytical.baselines import genz_installed
from simfa.extras import need
from simfa.figure_files import FigureFile, FigureIndex, index_path
from simfa.files import sha256_of, write_json
from simfa.outputs import make_folder
from simfa.progress import watched

GPUS = ("gb10", "h800-sxm")
ROOFLINE_GPU = "h800-sxm"
ROOFLINE_LENGTHS = (4096, 16384, 65536)


def write_figures(folder: Path, *, quiet: bool = True) -> list[Path]:
    """Write every figure as SVG and `figures.json` last; return the paths.

    GenZ's curve is drawn where the package is installed. Raises `SimfaError` without Matplotlib.
    """
    need("matplotlib", "a figure", "report")
    make_folder(folder)
    drawings = (_llc_traffic, _dram_traffic, _roofline)
    entries = [draw(folder) for draw in watched(drawings, "drawing", quiet=quiet)]
    index = index_path(folder)
    write_json(index, FigureIndex(tool_version=__version__, figures=entries))
    return [*(folder / entry.file for entry in entries), index]


def _llc_traffic(folder: Path) -> FigureFile:
    points = [point for gpu in GPUS for point in figures.llc_traffic(gpu)]
    title = "L2 traffic against sequence length"
    figures.draw_traffic(points, folder / "llc_traffic.svg", title, "L2 traffic")
    caption = (
        "Figure 8 of arXiv:2605.00555: bytes that SMs ask of L2 (Eq. 2), Llama-3 attention, batch 1, full mask. "
        "The kernels differ: 64-row tiles on gb10, FA3's 128 rows on h800-sxm."
    )
    return _entry(folder / "llc_traffic.svg", title, caption)


def _dram_traffic(folder: Path) -> FigureFile:
    with_genz = genz_installed()
    points = [*figures.dram_traffic(GPUS, with_genz=with_genz), *figures.cutile_traffic()]
    title = "DRAM traffic by model"
    figures.draw_traffic(points, folder / "dram_traffic.svg", title, "DRAM traffic")
    caption = (
        "Figure 9 of arXiv:2605.00555: DRAM bytes of Llama-3.1 405B by cache policy, beside an ideal cache"
        f"{' and GenZ, which coincide' if with_genz else ' (GenZ, not installed here, coincides with it)'}. "
        "No reading is published for these shapes; the right panel has the kernel with published readings, of which "
        "the sawtooth one has calibrated the effective L2."
    )
    return _entry(folder / "dram_traffic.svg", title, caption)


def _roofline(folder: Path) -> FigureFile:
    roofs, points = figures.roofline(ROOFLINE_GPU, ROOFLINE_LENGTHS)
    figures.draw_roofline(roofs, points, folder / "roofline.svg")
    caption = (
        f"Rates that the latency bound allows on {ROOFLINE_GPU}, for three Llama-3 models at "
        f"{', '.join(f'{length // 1024}K' for length in ROOFLINE_LENGTHS)} tokens and for decode of 16 sequences, "
        "by FLOP per L2 byte and per DRAM byte."
    )
    return _entry(folder / "roofline.svg", "Roofline with L2 and DRAM roofs", caption)


def _entry(path: Path, title: str, caption: str) -> FigureFile:
    return FigureFile(file=path.name, sha256=sha256_of(path), title=title, caption=caption)
