"""The files of `simfa ablate` and `simfa sensitivity`: CSV of single figures, JSON of the whole study."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from simfa.figure_files import FigureIndex, index_path
from simfa.files import atomic_write, write_json, write_manifest
from simfa.outputs import make_folder
from simfa.preset_files import preset_files


def check_endings(outputs: Sequence[str]) -> None:
    """Refuse, before anything runs, names with another ending than .csv or .json."""
    for output in outputs:
        if Path(output).suffix not in (".csv", ".json"):
            raise click.UsageError(f"-o {output}: expected a name ending in .csv or .json")


def write_figures(folder: str, index: FigureIndex, drawings: Mapping[str, bytes]) -> None:
    """Write the folder that `simfa report --figures` shows: drawings first, the index last."""
    make_folder(folder)
    for name, content in drawings.items():
        with atomic_write(Path(folder) / name, "wb") as handle:
            handle.write(content)
    write_json(index_path(folder), index)


def write_study(output: str, command: str, study: object, table: str, inputs: Mapping[str, str]) -> None:
    """Write a study to a file, by its ending, atomically and with its manifest."""
    if Path(output).suffix == ".json":
        write_json(output, study)
    else:
        with atomic_write(output) as handle:
            handle.write(table)
    write_manifest(output, command, inputs)


def toml_inputs(names: Sequence[str]) -> dict[str, str]:
    """Return the files among presets and overlays, and those they extend, by name: inputs of a manifest."""
    return {Path(file).name: file for name in names for file in preset_files(name)}
