"""The `ompb` command, one file per sub-command."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated

import typer

from ompb.cli import bench, data, demo, run, shift
from ompb.errors import OmpbError

HELP = """Correct a frozen forecaster online, with intervals and a certificate.

\b
New here? Start with the demo, which needs no data and takes seconds:
  ompb demo
Then try your own table:
  ompb run load.csv --source-end 2024-03-01 --context 96 --horizon 24
How far apart are two tables?
  ompb shift winter.csv summer.csv

Each command explains itself: ompb run --help
"""

app = typer.Typer(help=HELP, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
app.command("demo", help=demo.HELP)(demo.demo)
app.command("run", help=run.HELP)(run.run)
app.command("shift", help=shift.HELP)(shift.shift)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line, by default that of the process; returns the exit code.

    Bad input of any kind gives one line on stderr and exit code 2.
    """
    try:
        code = app(arguments, prog_name="ompb", standalone_mode=False)
    except OmpbError as error:
        return _refuse(str(error))
    except typer.TyperException as error:
        return _refuse(f"{error.format_message().rstrip('.')}; see ompb --help.")
    except OSError as error:
        return _refuse(f"{error.strerror or error}: {error.filename}" if error.filename else str(error))
    return code or 0


def _refuse(message: str) -> int:
    print(f"ompb: {' '.join(message.split())}", file=sys.stderr)
    return 2


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
