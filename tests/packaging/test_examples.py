"""The scripts of `examples/` do what their first lines promise."""

import runpy
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from simfa.kernel import kernel_for
from simfa.pipeline import predict
from simfa.workload import model_shape


def function(root_folder: Path, script: str, name: str) -> Callable[[], pd.DataFrame]:
    """Return a function of an example, whose main part is not run."""
    return runpy.run_path(str(root_folder / "examples" / script))[name]


def test_fewer_mshrs_or_lines_are_never_faster(root_folder: Path) -> None:
    table = function(root_folder, "mshrs_and_lines.py", "what_if")()
    assert table.index.is_monotonic_increasing
    assert table.columns.is_monotonic_increasing
    # 1 %: fewer requests under way may also queue less.
    assert (table.diff().dropna() <= 0.01 * table.iloc[0, 0]).all(axis=None)
    assert (table.T.diff().dropna() < 0).all(axis=None)
    shipped = predict(model_shape("llama3-8b", 512)).latency_us
    assert table.iloc[-1, -1] == pytest.approx(shipped)


def test_tile_and_stages(root_folder: Path) -> None:
    table = function(root_folder, "tile_and_stages.py", "compare")()
    shape = model_shape("llama3-8b", 1024)
    kernel = kernel_for(shape)
    (shipped,) = table[table.shipped].to_dict("records")
    assert (shipped["tile_n"], shipped["stages"]) == (kernel.tile_n, kernel.stages)
    assert shipped["latency_us"] == pytest.approx(predict(shape).latency_us)
    assert table.latency_us.is_monotonic_increasing
    assert not table.duplicated(["tile_n", "stages"]).any()
    # One stage: nothing is loaded while the last fill is read.
    assert table[table.stages == 1].latency_us.min() > table[table.stages > 1].latency_us.max()
    # 208 rows of K and V fit once in 227 KiB beside Q, not twice; 176 rows do so twice.
    assert sorted(table[table.tile_n == 208].stages) == [1]
    assert sorted(table[table.tile_n == 176].stages) == [1, 2]
