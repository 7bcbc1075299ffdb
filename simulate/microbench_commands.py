"""`simfa microbench`: small programs on parts of the engine."""

from functools import partial

import click

from simfa.options import gpu_options, load_gpu
from simfa.simulate.curve_commands import l2, tma_bandwidth, tma_latency

_PATTERNS = ("stream-read", "stream-write", "read-write-2to1", "random-read-64", "stride-2048-read")


@click.group()
def microbench() -> None:
    """Small programs on the engine against known curves."""


for _curve in (tma_latency, tma_bandwidth, l2):
    microbench.add_command(_curve)


@microbench.command()
@gpu_options
@click.option("--pattern", type=click.Choice(_PATTERNS), required=True, help="Order of addresses and directions.")
@click.option("--mapping", help="Address mapping [default: of the preset].")
@click.option("--read-queue", type=click.IntRange(min=1), help="Bursts in the read queue [default: of the preset].")
@click.option("--write-queue", type=click.IntRange(min=1), help="Bursts in the write queue [default: of the preset].")
@click.option(
    "--refresh", type=click.Choice(["none", "all-bank", "per-bank"]), help="Refresh mode [default: of the preset]."
)
@click.option(
    "--data-rate-mbps", type=click.FloatRange(min=1), default=5200.0, show_default=True, help="Mb/s of a data pin."
)
@click.option("--transfers", type=click.IntRange(min=1), default=200_000, show_default=True, help="Bursts of 32 bytes.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON for machines.")
@click.option("--quiet", is_flag=True, help="No progress line.")
def hbm3(
    gpu: str,
    overlays: tuple[str, ...],
    overrides: tuple[str, ...],
    sm_clock_mhz: float | None,
    pattern: str,
    mapping: str | None,
    read_queue: int | None,
    write_queue: int | None,
    refresh: str | None,
    data_rate_mbps: float,
    transfers: int,
    as_json: bool,
    quiet: bool,
) -> None:
    """Drive one DRAM channel as fast as its queues accept."""
    import msgspec

    from simfa.files import json_bytes
    from simfa.progress import waited_for
    from simfa.simulate.hbm3_bench import run_bench
    from simfa.tables import text_table

    given = {
        "mapping": mapping,
        "read_queue_entries": read_queue,
        "write_queue_entries": write_queue,
        "refresh": refresh,
    }
    changes = [f"memory.dram.{name}={value}" for name, value in given.items() if value is not None]
    dram = load_gpu(gpu, overlays, [*overrides, *changes], sm_clock_mhz).spec.memory.dram
    drive = partial(run_bench, dram, pattern=pattern, data_rate_bits_per_s=data_rate_mbps * 1e6, transfers=transfers)
    result = waited_for(drive, "hbm3", quiet=quiet)
    if as_json:
        values = {**msgspec.to_builtins(result), "dram": msgspec.to_builtins(dram), "data_rate_mbps": data_rate_mbps}
        click.echo(json_bytes(values).decode(), nl=False)
        return
    none = "no reads"
    latency, offer = result.mean_read_latency_ns, result.mean_read_latency_from_offer_ns
    rows = [
        ["fraction of peak", f"{result.fraction_of_peak:.3f}"],
        ["mean read latency from acceptance, ns", none if latency is None else f"{latency:.1f}"],
        ["mean read latency from offer, ns", none if offer is None else f"{offer:.1f}"],
        ["row hit rate", f"{result.row_hit_rate:.3f}"],
        ["requests per host second", f"{result.requests_per_host_second:,.0f}"],
    ]
    click.echo(text_table(["", f"{pattern}, {transfers} transfers"], rows))
