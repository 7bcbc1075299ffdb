"""Command-line flags that mean the same in every command: the attention shape, the GPU preset, the kernel version."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import click

from simfa.hardware import Preset, load_preset, overlay_names, preset_names
from simfa.outputs import OutputFile, OutputFolder
from simfa.recording import recording_options
from simfa.workload import MODELS, AttentionShape, model_shape

_SHAPE_FLAGS = ("model", "seqlen", *AttentionShape.__struct_fields__)


def shape_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the SHAPE flags to a command and pass it one `shape: AttentionShape` in their place.

    Either `--model` with `--seqlen`, or the sizes one by one; sizes given beside `--model` change that model's shape.
    Wrong combinations are usage errors (exit code 2); impossible sizes raise `ShapeError` (exit code 1).
    """
    return _shape_options(function, optional=False)


def optional_shape_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the SHAPE flags as `shape_options` does; without any of them `shape` is None."""
    return _shape_options(function, optional=True)


def _shape_options(function: Callable[..., Any], *, optional: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        flags = {name: kwargs.pop(name) for name in _SHAPE_FLAGS}
        absent = all(flags[name] is None for name in _SHAPE_FLAGS if name not in ("causal", "dtype"))
        return function(*args, shape=None if optional and absent else shape_from_flags(**flags), **kwargs)

    for option in reversed(
        [
            click.option(
                "--model", type=click.Choice(list(MODELS)), help="Heads of a Llama-3 model (batch 1, full mask)."
            ),
            click.option("--seqlen", type=int, help="Length of Q and of K/V."),
            click.option("--batch", type=int, help="Batch size [default: 1]."),
            click.option("--seqlen-q", type=int, help="Length of Q."),
            click.option("--seqlen-kv", type=int, help="Length of K and V."),
            click.option("--heads-q", type=int, help="Query heads."),
            click.option("--heads-kv", type=int, help="K/V heads [default: as query heads]."),
            click.option("--head-dim", type=int, help="Head dimension [default: 128]."),
            click.option("--causal/--full", default=False, help="Mask [default: full]."),
            click.option("--dtype", default="fp16", help="fp16, bf16 or fp8 [default: fp16]."),
        ]
    ):
        wrapper = option(wrapper)
    return wrapper


def shape_from_flags(
    *,
    model: str | None,
    seqlen: int | None,
    batch: int | None,
    seqlen_q: int | None,
    seqlen_kv: int | None,
    heads_q: int | None,
    heads_kv: int | None,
    head_dim: int | None,
    causal: bool,
    dtype: str,
) -> AttentionShape:
    """Return the shape that SHAPE flags describe; raises `click.UsageError` when something is missing or said twice."""
    if seqlen is not None and (seqlen_q is not None or seqlen_kv is not None):
        raise click.UsageError("--seqlen sets both lengths; give it alone, or --seqlen-q and --seqlen-kv")
    length_q = seqlen if seqlen is not None else seqlen_q
    length_kv = seqlen if seqlen is not None else (seqlen_kv if seqlen_kv is not None else seqlen_q)
    if length_q is None or length_kv is None:
        raise click.UsageError("the shape has no length; give --seqlen, or --seqlen-q and --seqlen-kv")
    given = {"batch": batch, "heads_q": heads_q, "heads_kv": heads_kv, "head_dim": head_dim}
    sizes = {name: value for name, value in given.items() if value is not None}
    if model is not None:
        return model_shape(model, length_q, **({"seqlen_kv": length_kv, "causal": causal, "dtype": dtype} | sizes))
    if heads_q is None:
        raise click.UsageError("the shape has no heads; give --heads-q, or --model")
    defaults = {"batch": 1, "heads_kv": heads_q, "head_dim": 128}
    return AttentionShape(seqlen_q=length_q, seqlen_kv=length_kv, causal=causal, dtype=dtype, **(defaults | sizes))


def _complete(names: Callable[[], list[str]]) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return what completes a shipped name on the command line; a file's name is the shell's to complete."""
    return lambda _, __, typed: [name for name in names() if name.startswith(typed)]


def gpu_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--gpu`, `--overlay`, `--set` and `--sm-clock-mhz`; a command passes them on to `load_gpu`."""
    for option in reversed(
        [
            click.option(
                "--gpu",
                default="h100-sxm",
                show_default=True,
                shell_complete=_complete(preset_names),
                help="Preset name or a .toml file.",
            ),
            click.option(
                "--overlay",
                "overlays",
                multiple=True,
                shell_complete=_complete(overlay_names),
                help="Named change over the preset, e.g. no-lrc.",
            ),
            click.option("--set", "overrides", multiple=True, metavar="PATH=VALUE", help="Change one preset value."),
            click.option("--sm-clock-mhz", type=float, help="SM clock; values of other clocks stay in ns."),
        ]
    ):
        function = option(function)
    return function


def load_gpu(gpu: str, overlays: Sequence[str], overrides: Sequence[str], sm_clock_mhz: float | None) -> Preset:
    """Return the preset that the flags of `gpu_options` describe; raises `HardwareError`."""
    clock = [] if sm_clock_mhz is None else [f"gpu.sm_clock_hz={sm_clock_mhz * 1e6!r}"]
    return load_preset(gpu, overlays, [*overrides, *clock])


def run_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags of a simulation run: `--threads`, `--max-cycles`, `--timeline` and its like, `--quiet`."""
    function = recording_options(function)
    for option in reversed(
        [
            click.option("--threads", type=click.IntRange(1), default=1, help="Host threads; never changes a result."),
            click.option("--max-cycles", type=click.IntRange(1), help="Stop there; the statistics are marked partial."),
            click.option("--quiet", is_flag=True, help="No progress line."),
        ]
    ):
        function = option(function)
    return function


def study_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the flags of a study of many runs: `--jobs`, `-o`, `--figures`, `--quiet`, `--json`."""
    for option in reversed(
        [
            click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Simulations at a time."),
            click.option(
                "-o",
                "--output",
                "outputs",
                multiple=True,
                type=OutputFile(),
                help="Write every single figure as .csv, or the whole study as .json (repeatable).",
            ),
            click.option(
                "--figures", type=OutputFolder("figures.json"), help="Write the folder that `simfa report` shows."
            ),
            click.option("--quiet", is_flag=True, help="No progress line."),
            click.option("--json", "as_json", is_flag=True, help="Print the study as JSON."),
        ]
    ):
        function = option(function)
    return function
