"""Rules that tie lines of L2, their parts, and what moves them together: checked for every preset, and nowhere else."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from simfa.hardware import HardwareSpec

MOST_SECTORS = 8


def check_lines(hardware: "HardwareSpec") -> None:
    """Raise `ValueError` for sizes that do not divide a line, and for rates that the engine would round."""
    l2, line = hardware.l2, hardware.l2.line_bytes
    per_way = l2.slices * l2.ways * line
    if l2.capacity_bytes % per_way:
        raise ValueError(
            f"l2.capacity_bytes {l2.capacity_bytes} is not a whole number of sets: expected a multiple of "
            f"slices x ways x line_bytes = {per_way}"
        )
    if l2.hash == "side" and line != 128:
        raise ValueError(f"l2.hash side is known for lines of 128 bytes; l2.line_bytes is {line}")
    # A line takes whole cycles, or a cycle whole lines.
    rates = {
        "tma.issue_bytes_per_cycle": hardware.tma.issue_bytes_per_cycle,
        "crossbar.sm_port_bytes_per_cycle": hardware.crossbar.sm_port_bytes_per_cycle,
        "l2.bytes_per_cycle_per_slice": l2.bytes_per_cycle_per_slice,
    }
    for path, rate in rates.items():
        if line % rate and rate % line:
            raise ValueError(f"{path} {rate} neither divides nor is a multiple of a {line}-byte line")
    if line % hardware.tma.request_bytes:
        raise ValueError(f"tma.request_bytes {hardware.tma.request_bytes} does not divide a {line}-byte line")
    if line % l2.sector_bytes or line // l2.sector_bytes > MOST_SECTORS:
        raise ValueError(
            f"l2.sector_bytes {l2.sector_bytes} does not divide a {line}-byte line into 1 to {MOST_SECTORS} sectors"
        )
    if line % l2.fetch_bytes or l2.fetch_bytes % l2.sector_bytes:
        raise ValueError(
            f"l2.fetch_bytes {l2.fetch_bytes} is no part of a {line}-byte line in whole sectors of "
            f"{l2.sector_bytes} bytes"
        )
