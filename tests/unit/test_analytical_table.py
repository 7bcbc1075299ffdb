"""Columns of calls: the same answers as one by one, defaults, and files with bad rows."""

import csv
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

from simfa.analytical import traffic
from simfa.analytical.machine import resolve
from simfa.analytical.table import OUTPUT_COLUMNS, evaluate
from simfa.analytical.table_files import price_table
from simfa.errors import AnalyticalError, SimfaError
from tests.unit.analytical_cases import call, plain_kernel

HEADER = "batch,seqlen_q,seqlen_kv,group_size,num_kv_heads,head_dim"
GPU = resolve("h800-sxm")


def columns(**changes: list[int]) -> dict[str, np.ndarray]:
    sizes = {"batch": [1, 2, 1], "seqlen_q": [16384, 300, 65536], "seqlen_kv": [16384, 9000, 65536]}
    sizes |= {"group_size": [16, 1, 16], "num_kv_heads": [8, 3, 8], "head_dim": [128, 64, 128]}
    return {name: np.array(values) for name, values in (sizes | changes).items()}


def written(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as handle:
        return list(csv.DictReader(handle, delimiter="\t" if path.suffix == ".tsv" else ","))


@pytest.mark.parametrize("policy", ["paper", "capacity", "lru", "random"])
@pytest.mark.parametrize("gpu", ["h800-sxm", "gb10"])
def test_rows_equal_single_calls(gpu: str, policy: str) -> None:
    found = evaluate(columns(), resolve(gpu), policy)
    assert tuple(found) == OUTPUT_COLUMNS
    for row, (batch, seqlen_q, seqlen_kv, group, heads, dim) in enumerate(
        zip(*(column.tolist() for column in columns().values()), strict=True)
    ):
        attention = call(seqlen_kv, seqlen_q=seqlen_q, batch=batch, heads_q=group * heads, heads_kv=heads, head_dim=dim)
        tile = 64 if gpu == "gb10" else 192 if dim == 64 else 128
        # A table has no cluster and knows no K/V tile.
        answer = traffic(attention, gpu, policy, plain_kernel(tile, 32))
        for name in ("flops", "l2_bytes", "dram_ideal_bytes", "dram_realistic_bytes", "kv_head_bytes", "waves"):
            assert found[name][row] == getattr(answer, name), name
        for name in ("l2_to_dram_ratio", "arithmetic_intensity", "latency_bound_us"):
            assert found[name][row] == pytest.approx(getattr(answer, name)), name
        assert found["dram_bytes"][row] == pytest.approx(answer.dram_bytes, rel=0 if policy != "lru" else 0.02)
        assert found["regime"][row] == answer.regime
        assert found["l2_fits"][row] == str(answer.l2_fits).lower()
        assert found["bound_by"][row] == answer.bound_by


def test_given_columns_replace_the_machines() -> None:
    extra = {"tile_m": [64] * 3, "element_bytes": [1] * 3, "num_sms": [48] * 3, "max_ctas_per_sm": [2] * 3}
    found = evaluate(columns(**extra, effective_l2_bytes=[10**9] * 3), GPU, "paper")
    assert found["waves"].tolist() == [43, 1, 171]
    assert found["kv_head_bytes"].tolist() == [2 * 16384 * 128, 2 * 9000 * 64, 2 * 65536 * 128]
    assert found["regime"].tolist() == ["ideal"] * 3


def test_heads_instead_of_groups() -> None:
    heads = columns(heads_q=[128, 3, 128], heads_kv=[8, 3, 8])
    del heads["group_size"], heads["num_kv_heads"]
    expected = evaluate(columns(), GPU, "capacity")
    found = evaluate(heads, GPU, "capacity")
    assert all(np.array_equal(found[name], expected[name]) for name in OUTPUT_COLUMNS)
    with pytest.raises(AnalyticalError, match="row 1: heads_q 4 is not a multiple of heads_kv 3"):
        evaluate(heads | {"heads_q": np.array([128, 4, 128])}, GPU, "capacity")


def test_values_beyond_64_bits_are_exact(tmp_path: Path) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(f"{HEADER}\n1,{2**40},{2**40 + 1},16,8,128\n1,128,128,1,1,128\n")
    price_table(source, target, GPU, "capacity")
    first, second = written(target)
    assert int(first["flops"]) == 4 * 128 * 2**40 * (2**40 + 1) * 128 > 2**63
    assert int(second["flops"]) == 4 * 128**3
    with pytest.raises(SimfaError, match=r"flops needs more than 64 bits in a row; write .csv or .tsv"):
        price_table(source, tmp_path / "out.parquet", GPU, "capacity")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.csv", "out.csv"]


@pytest.mark.parametrize("kind", [".csv", ".tsv", ".parquet"])
def test_formats_agree(tmp_path: Path, kind: str) -> None:
    source = tmp_path / f"in{kind}"
    names = HEADER.split(",")
    rows = [[1, 4096 * n, 4096 * n, 4, 8, 128] for n in range(1, 20)]
    if kind == ".parquet":
        table = {name: [row[index] for row in rows] for index, name in enumerate(names)}
        pyarrow.parquet.write_table(pyarrow.table(table), source)
    else:
        sign = "\t" if kind == ".tsv" else ","
        source.write_text("\n".join(sign.join(map(str, row)) for row in [names, *rows]) + "\n")
    results = {}
    for suffix in (".csv", ".tsv", ".parquet"):
        target = tmp_path / f"out{suffix}"
        assert price_table(source, target, GPU, "capacity").rows == 19
        if suffix == ".parquet":
            results[suffix] = pyarrow.parquet.read_table(target).to_pylist()
        else:
            results[suffix] = written(target)
    assert results[".csv"] == results[".tsv"]
    assert list(results[".csv"][0]) == list(results[".parquet"][0]) == [*names, *OUTPUT_COLUMNS]
    for text, typed in zip(results[".csv"], results[".parquet"], strict=True):
        for name, value in typed.items():
            assert text[name] == str(value) if isinstance(value, str) else float(text[name]) == value


def test_chunks_do_not_show(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("\n".join([HEADER, *(f"1,{100 * n},{200 * n},2,4,64" for n in range(1, 50))]) + "\n")
    outputs = []
    for rows in (1, 7, 1000):
        price_table(source, tmp_path / "out.csv", GPU, "random", chunk_rows=rows)
        outputs.append((tmp_path / "out.csv").read_bytes())
    assert outputs[0] == outputs[1] == outputs[2]


def test_an_empty_table_gives_a_header(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text(HEADER + "\n")
    assert price_table(tmp_path / "in.csv", tmp_path / "out.csv", GPU, "paper").rows == 0
    assert (tmp_path / "out.csv").read_text() == ",".join([HEADER, *OUTPUT_COLUMNS]) + "\n"


BAD_CELLS = [
    ("0", "is 0; expected a positive whole number"),
    ("-4", "is -4; expected a positive whole number"),
    ("1.5", "is 1.5; expected a positive whole number"),
    ("2.0", "is 2.0; expected a positive whole number"),
    ("nan", "is nan; expected a positive whole number"),
    ("", "is empty; expected a positive whole number"),
    ("1_000", "is 1_000; expected a positive whole number"),
    ("1e3", "is 1e3; expected a positive whole number"),
    ("٣", "is ٣; expected a positive whole number"),
    (str(2**63), f"expected at most {2**63 - 1}"),
    ("5\0", r"is '5\x00'; expected a positive whole number"),
    ("x" * 1000, f"is {'x' * 57}...; expected a positive whole number"),
]


@pytest.mark.parametrize(("cell", "message"), BAD_CELLS)
def test_a_bad_cell_names_line_and_column(tmp_path: Path, cell: str, message: str) -> None:
    source, target = tmp_path / "in.csv", tmp_path / "out.csv"
    source.write_text(f"{HEADER}\n1,5,5,1,1,64\n1,5,{cell},1,1,64\n1,5,5,1,1,64\n", encoding="utf-8")
    with pytest.raises(SimfaError) as caught:
        price_table(source, target, GPU, "paper")
    assert f"{source} line 3, column seqlen_kv: " in str(caught.value) and message in str(caught.value)
    assert not target.exists() and sorted(path.name for path in tmp_path.iterdir()) == ["in.csv"]


def test_the_input_is_never_the_output(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text(HEADER + "\n1,5,5,1,1,64\n")
    (tmp_path / "link.csv").symlink_to(source)
    for target, rejects in ((source, None), (tmp_path / "link.csv", None), (tmp_path / "out.csv", source)):
        with pytest.raises(AnalyticalError, match="is the input table too"):
            price_table(source, target, GPU, "paper", rejects)
    assert source.read_text() == HEADER + "\n1,5,5,1,1,64\n"
    assert not (tmp_path / "out.csv").exists()


def test_keep_going_collects_bad_rows(tmp_path: Path) -> None:
    source, target, rejects = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "bad.csv"
    lines = ["1,5,5,1,1,64", "1,x,5,1,1,64", "1,5,5,1,1", "", "1,5,0,1,1,64", "1,7,7,1,1,64", "1,5,5,1,1,64,9"]
    source.write_text("\n".join([HEADER, *lines]) + "\n")
    outcome = price_table(source, target, GPU, "paper", rejects, chunk_rows=3)
    assert outcome == (2, 5)
    assert [row["seqlen_q"] for row in written(target)] == ["5", "7"]
    found = written(rejects)
    assert [(row["line"], row["column"]) for row in found] == [
        ("3", "seqlen_q"),
        ("4", "head_dim"),
        ("5", "batch"),
        ("6", "seqlen_kv"),
        ("8", "head_dim"),
    ]
    assert found[0]["reason"] == "is x; expected a positive whole number" and found[0]["seqlen_q"] == "x"
    assert found[1]["reason"] == "row has 5 cells; expected 6, as the header"
    source.write_text(f"{HEADER}\n1,5,5,1,1,64\n")
    price_table(source, target, GPU, "paper", rejects)
    assert not rejects.exists()


def test_uneven_heads_are_a_bad_row(tmp_path: Path) -> None:
    source = tmp_path / "in.csv"
    source.write_text("batch,seqlen_q,seqlen_kv,heads_q,heads_kv,head_dim\n1,5,5,8,8,64\n1,5,5,9,8,64\n")
    with pytest.raises(SimfaError, match="line 3, column heads_q: 9 is not a multiple of heads_kv 8"):
        price_table(source, tmp_path / "out.csv", GPU, "paper")


def test_head_dimensions_without_a_tile_are_bad_rows(tmp_path: Path) -> None:
    source, target, rejects = tmp_path / "in.csv", tmp_path / "out.csv", tmp_path / "bad.csv"
    source.write_text(f"{HEADER}\n1,5,5,1,1,64\n1,5,5,1,1,96\n")
    with pytest.raises(SimfaError, match="line 3, column head_dim: 96 has no tile in kernel fa3; add a column tile_m"):
        price_table(source, target, GPU, "paper")
    assert price_table(source, target, GPU, "paper", rejects) == (1, 1)
    assert price_table(source, target, resolve("gb10"), "paper") == (2, 0)
    source.write_text(f"{HEADER},tile_m\n1,5,5,1,1,96,128\n")
    assert price_table(source, target, GPU, "paper") == (1, 0)
    with pytest.raises(AnalyticalError, match="head_dim 96 has no tile"):
        evaluate(columns(head_dim=[64, 96, 64]), GPU, "paper")


def test_parquet_rows_are_checked(tmp_path: Path) -> None:
    source = tmp_path / "in.parquet"
    names = HEADER.split(",")
    good = dict.fromkeys(names, (64, 64, 64))
    for column, value in ([64, None, 64], "is empty"), ([64.0, 1.5, 64.0], "is 64.0"), ([64, -1, 64], "is -1"):
        pyarrow.parquet.write_table(pyarrow.table(good | {"head_dim": column}), source)
        with pytest.raises(SimfaError, match=rf"in.parquet row [12], column head_dim: {value}"):
            price_table(source, tmp_path / "out.csv", GPU, "paper")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty; expected a header line"),
        (f"{HEADER},seqlen_k\n", r"column 'seqlen_k' is unknown; did you mean seqlen_kv\?"),
        (f"{HEADER},zzz\n", "column 'zzz' is unknown; expected batch"),
        (f"{HEADER},batch\n", "column batch appears twice"),
        (f"{HEADER},heads_q\n", "not both"),
        ("batch,seqlen_q,seqlen_kv,group_size,num_kv_heads\n", "column head_dim is missing"),
        ("batch,seqlen_q,seqlen_kv,heads_q,head_dim\n", "column heads_kv is missing"),
    ],
)
def test_bad_headers_are_named(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "in.csv").write_text(text)
    with pytest.raises(SimfaError, match=message):
        price_table(tmp_path / "in.csv", tmp_path / "out.csv", GPU, "paper")


def test_files_that_are_no_tables_are_named(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_bytes(b"batch\xff\xfe\n")
    (tmp_path / "in.parquet").write_bytes(b"not parquet at all")
    (tmp_path / "in.xls").write_text("")
    for name, message in ("in.csv", "not a text table"), ("in.parquet", "not a Parquet file"), ("in.xls", "ending in"):
        with pytest.raises(SimfaError, match=message):
            price_table(tmp_path / name, tmp_path / "out.csv", GPU, "paper")
    with pytest.raises(SimfaError, match=r"missing.csv: cannot be read"):
        price_table(tmp_path / "missing.csv", tmp_path / "out.csv", GPU, "paper")
    with pytest.raises(SimfaError, match="expected a name ending in"):
        price_table(tmp_path / "in.csv", tmp_path / "out.xls", GPU, "paper")


def test_unknown_policy_and_missing_column_of_arrays() -> None:
    with pytest.raises(AnalyticalError, match="'belady' is unknown"):
        evaluate(columns(), GPU, "belady")
    lacking = columns()
    del lacking["seqlen_kv"]
    with pytest.raises(AnalyticalError, match="column seqlen_kv is missing"):
        evaluate(lacking, GPU, "paper")
