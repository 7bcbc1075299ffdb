"""SHAPE and preset flags that all commands share."""

import click
import pytest
from click.testing import CliRunner

from simfa.options import gpu_options, load_gpu, shape_options


@click.command()
@shape_options
@gpu_options
def probe(shape, **gpu) -> None:
    preset = load_gpu(**gpu)
    click.echo(f"{shape.describe()} | {preset.name} {preset.spec.gpu.sm_clock_hz:.0f} {preset.spec.l2.ways}")


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(probe, arguments)
    return done.exit_code, done.output.strip()


@pytest.mark.parametrize(
    ("flags", "described"),
    [
        ("--model llama3-8b --seqlen 512", "B1 L512 S512 H32/8 D128 full fp16"),
        ("--model llama3-8b --seqlen 512 --causal --batch 4", "B4 L512 S512 H32/8 D128 causal fp16"),
        ("--seqlen-q 1 --seqlen-kv 4096 --heads-q 8 --heads-kv 2", "B1 L1 S4096 H8/2 D128 full fp16"),
        ("--seqlen-q 256 --heads-q 8 --head-dim 64 --dtype bf16", "B1 L256 S256 H8/8 D64 full bf16"),
    ],
)
def test_shapes(flags: str, described: str) -> None:
    assert run(*flags.split()) == (0, f"{described} | h100-sxm 1830000000 20")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--model llama3-8b", "the shape has no length"),
        ("--seqlen 512", "the shape has no heads"),
        ("--seqlen 512 --seqlen-kv 256 --heads-q 8", "--seqlen sets both lengths"),
    ],
)
def test_usage_errors(flags: str, message: str) -> None:
    code, output = run(*flags.split())
    assert code == 2
    assert message in output


def test_clock_flag_changes_the_sm_clock_only() -> None:
    flags = "--model llama3-8b --seqlen 512 --gpu h20 --sm-clock-mhz 1500 --set l2.ways=10"
    assert run(*flags.split())[1].endswith("| h20 1500000000 10")
