"""`simfa translate`: a log to a verified trace."""

import json
from pathlib import Path
from typing import Any

import click

from simfa.outputs import OutputFile, check_not_input


@click.command()
@click.argument("log", type=click.Path(path_type=Path))
@click.option("-o", "--output", type=OutputFile(path_type=Path), required=True, help="Trace to write, .satrace.")
@click.option(
    "--rules",
    type=click.Choice(["source", "paper"]),
    default="source",
    show_default=True,
    help="source: the order of the FA3 source. paper: section 5.2 to the letter.",
)
@click.option(
    "--schedule",
    type=click.Choice(["replay", "model"]),
    default="model",
    show_default=True,
    help="replay: tiles as logged. model: the kernel's scheduler hands them out. The same for static grids.",
)
@click.option("--allow-disagreement", is_flag=True, help="Where warps of a warpgroup disagree, go by the majority.")
@click.option("--allow-truncated", is_flag=True, help="Take a log that is cut short or dropped records.")
@click.option("--quiet", is_flag=True, help="No progress line.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
def translate(
    log: Path,
    output: Path,
    rules: Any,
    schedule: Any,
    allow_disagreement: bool,
    allow_truncated: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Turn LOG (.salog) into a verified trace.

    Warps become warpgroups, events become the simulator's instructions, equal tiles are stored once.
    OUTPUT.manifest.json says what the trace was made from.
    """
    from simfa.files import sha256_of, write_manifest
    from simfa.salog import open_log
    from simfa.trace_text import write_trace
    from simfa.translate.log_translation import translate_log
    from simfa.translate.summary import summary_of, summary_text
    from simfa.watched_log import WatchedLog

    check_not_input(output, [log])
    source = open_log(log, allow_truncated=allow_truncated)
    with WatchedLog(source, "translating", quiet=quiet) as watched:
        translation = translate_log(
            watched,
            rules=rules,
            schedule=schedule,
            log_sha256=sha256_of(log),
            allow_disagreement=allow_disagreement,
            truncated=source.truncated,
        )
    write_trace(output, translation.trace)
    summary = summary_of(translation, output.stat().st_size)
    facts = {"log_source": translation.trace.origin.log_source, "rules": rules, "schedule": schedule}
    write_manifest(output, "translate", {"log": log}, **facts, summary=summary)
    click.echo(json.dumps(summary, indent=2) if as_json else summary_text(summary))
