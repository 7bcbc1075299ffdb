"""The files of `simfa ablate` and `simfa sensitivity`: CSV of single figures, JSON of the whole study."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from simfa.errors import StudyError
from simfa.figure_files import FigureIndex, index_path
from simfa.files import atomic_write, write_json, write_manifest


def check_outputs(outputs: Sequence[str]) -> None:
    """Refuse, before anything runs, names with another ending than .csv or .json, and folders that do not exist."""
    for output in outputs:
        if Path(output).suffix not in (".csv", ".json"):
            raise click.UsageError(f"-o {output}: expected a name ending in .csv or .json")
        check_folder(output)


def check_folder(output: str) -> None:
    """Refuse a file whose folder is not there; raises `StudyError`."""
    if not Path(output).parent.is_dir():
        raise StudyError(f"{output}: folder {Path(output).parent} does not exist; make it first")


def check_figures(folder: str | None) -> None:
    """Refuse, before anything runs, a folder of figures whose parent is not there or that is a file."""
    if folder is not None:
        check_folder(folder)
        if Path(folder).exists() and not Path(folder).is_dir():
            raise StudyError(f"{folder}: not a folder; expected where figures.json is to be written")


def write_figures(folder: str, index: FigureIndex, drawings: Mapping[str, bytes]) -> None:
    """Write the folder that `simfa report --figures` shows: drawings first, the index last."""
    Path(folder).mkdir(exist_ok=True)
    for name, content in drawings.items():
        with atomic_write(Path(folder) / name, "wb") as handle:
            handle.write(content)
    write_json(index_path(folder), index)


def write_study(output: str, command: str, study: object, table: str, inputs: Mapping[str, str]) -> None:
    """Write a study to a file checked by `check_outputs`, atomically and with its manifest."""
    if Path(output).suffix == ".json":
        write_json(output, study)
    else:
        with atomic_write(output) as handle:
            handle.write(table)
    write_manifest(output, command, inputs)


def toml_inputs(names: Sequence[str]) -> dict[str, str]:
    """Return the files among presets and overlays, by name: inputs of a manifest."""
    return {Path(name).name: name for name in names if name.endswith(".toml")}
