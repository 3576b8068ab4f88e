"""The `ompb` command, one file per sub-command."""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

from ompb.errors import OptionError
from ompb.floor.extras import extra

with extra("cli", needed_by="the command line"):
    import polars as _polars  # noqa: F401
    import rich as _rich  # noqa: F401
    import typer
    from typer.main import get_command

from ompb.cli import bench, check, data, demo, report, run, shift

INTERRUPTED = 130  # the exit code by which typer tells of an interrupt

HELP = """Correct a frozen forecaster online, with intervals and a certificate.

\b
New here? Start with the demo, which needs no data and takes seconds:
  ompb demo
Then look at your own table, and try it:
  ompb check load.csv
  ompb run load.csv --source-end 2024-03-01 --context 96 --horizon 24
How far apart are two tables?
  ompb shift winter.csv summer.csv

Each command explains itself: ompb run --help
"""

app = typer.Typer(help=HELP, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command("demo", help=demo.HELP)(demo.demo)
app.command("check", help=check.HELP)(check.check)
app.command("run", help=run.HELP)(run.run)
app.command("shift", help=shift.HELP)(shift.shift)
app.command("report", help=report.HELP)(report.report)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")


def run_command(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of the process; returns the exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # file names may be no text at all
    try:
        code = app(arguments, prog_name="ompb", standalone_mode=False)
    except typer.TyperException as error:
        said = error.format_message().rstrip(".").replace("Value error, ", "")
        raise OptionError(f"{said}; see {_path(error, arguments)} --help.") from error
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    return code or 0


def _path(error: typer.TyperException, arguments: Sequence[str] | None) -> str:
    """The command that was being read when the error came up, as it is typed; some errors leave it to be looked up."""
    context = getattr(error, "ctx", None)
    if context is not None:
        return str(context.command_path)
    words, command = ["ompb"], get_command(app)
    for word in sys.argv[1:] if arguments is None else arguments:
        below = getattr(command, "commands", {})
        if word not in below:
            break
        words.append(word)
        command = below[word]
    return " ".join(words)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"ompb {version('ompb')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", help="Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
