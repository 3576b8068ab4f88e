"""``ompb bench``: run cells of the benchmark, list them, and make tables of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ompb.bench.added import add_file
from ompb.bench.backbones import RunContext, backbone_label, backbone_names
from ompb.bench.methods import method_names
from ompb.bench.protocols import ACCEPTED, HONEST
from ompb.bench.runner import ALL, Grid, run
from ompb.bench.store import Cell, Store, collect, export
from ompb.bench.tables import TABLES, make_table, paper_folder, render
from ompb.cli.console import progress, say, show_table
from ompb.datasets.benchmark import NAMES
from ompb.paper.page.markdown import write_pages
from ompb.paper.page.material import Material

GROUP_HELP = """Benchmark: cells, results and the paper's tables.

A cell is a choice of data set, backbone, horizon, split, protocol, method and seed. Finished cells are kept in a store
and never run again, so a run may be interrupted at any moment and started anew.
"""
RUN_HELP = f"""Run every cell of a choice that the store lacks.

An option with several values takes them in a row; "{ALL}" stands for every split or method there is. A method that
cannot follow a protocol, or does not fit the data, is left out of "{ALL}" and refused by name.

The protocol says what a method is shown before it forecasts: "{HONEST}" is what a deployment has; "one-step", that of
the paper's main tables, shows rows that have not come yet.

Your own method or forecaster joins by a decorated function in a file of yours, named with --add, or by an entry point
of your package.

With several --jobs, set OMP_NUM_THREADS=1.

\b
Data sets:  {", ".join(NAMES)}
Backbones:  {", ".join(backbone_names())}
Protocols:  {", ".join(ACCEPTED)}
Methods:    see ompb bench list

\b
Examples:
  ompb bench run --dataset etth --backbone ridge --horizon 24
  ompb bench run --dataset etth --backbone tcn autoformer --horizon 24 96 --split id ood \\
      --protocol honest one-step --seed 0 1 2 --device cuda
  ompb bench run --dataset ili --backbone gpt4ts --gpt2-weights gpt2-partial --gpt2-checkpoint gpt2.safetensors
"""
TABLE_HELP = f"""Show a table of the paper, made from the cells in the store.

NAME is one of {", ".join(TABLES)}. The paper's numbers stand beside ours if --paper, or the environment variable
OMPB_PAPER, names a folder with them (accuracy.csv).
"""

app = typer.Typer(help=GROUP_HELP, rich_markup_mode=None)
Place = Annotated[Path, typer.Option("--store", metavar="DIR", help="Folder of the results.")]
STORE = Path("results/store")


class Format(StrEnum):
    """Of a table."""

    text = "text"
    markdown = "markdown"
    html = "html"


class Several(TyperCommand):
    """A command whose repeatable options take several values in a row: ``--seed 0 1`` is ``--seed 0 --seed 1``."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat the option before each further value."""
        repeatable = {name for option in self.params if getattr(option, "multiple", False) for name in option.opts}
        spread: list[str] = []
        option = ""
        for word in args:
            is_value = not word.startswith("--")
            if is_value and option in repeatable and spread[-1] != option:
                spread.append(option)
            option = option if is_value else word
            spread.append(word)
        return super().parse_args(ctx, spread)


@app.callback(invoke_without_command=True)
def _start(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("run", help=RUN_HELP, cls=Several)
def run_cells(
    dataset: Annotated[list[str], typer.Option(metavar="NAME...", help="Data sets.")],
    backbone: Annotated[list[str], typer.Option(metavar="NAME...", help="Frozen forecasters.")],
    horizon: Annotated[list[int] | None, typer.Option(metavar="ROWS...", help="By default those of the paper.")] = None,
    split: Annotated[list[str] | None, typer.Option(metavar="NAME...", help="By default all.")] = None,
    protocol: Annotated[list[str] | None, typer.Option(metavar="NAME...", help=f"By default {HONEST}.")] = None,
    method: Annotated[list[str] | None, typer.Option(metavar="NAME...", help="By default all.")] = None,
    seed: Annotated[list[int] | None, typer.Option(metavar="NUMBER...", help="By default 0.")] = None,
    device: Annotated[str, typer.Option(help="Of all that runs in torch: cpu or cuda.")] = "cpu",
    gpt2_weights: Annotated[
        str | None, typer.Option(metavar="KIND", help="Of gpt4ts: gpt2, gpt2-partial or random; shown in its name.")
    ] = None,
    gpt2_checkpoint: Annotated[
        str | None, typer.Option(metavar="PATH", help="GPT-2's weights: a file, a folder, or a name of the hub.")
    ] = None,
    store: Place = STORE,
    folder: Annotated[
        Path | None, typer.Option(help="Where the data files are; by default the folder OMPB_DATA names, else data.")
    ] = None,
    add: Annotated[
        list[Path] | None, typer.Option(metavar="FILE...", help="Python files that enter methods or forecasters.")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Processes.")] = 1,
    log: Annotated[bool, typer.Option("--log", help="Print a line for every cell that ends.")] = False,
    per_step: Annotated[
        bool, typer.Option("--per-step", help="Keep the errors of single forecasts too, in the store's folder steps.")
    ] = False,
) -> None:
    """Run cells and say how it went."""
    added = tuple(add or ())
    for file in added:
        add_file(file)
    grid = Grid.of(
        dataset,
        [backbone_label(name, gpt2_weights) for name in backbone],
        horizon or (),
        split or (ALL,),
        protocol or (HONEST,),
        method or (ALL,),
        seed or (0,),
        folder,
    )
    for reason in dict.fromkeys(f"{cell.method} left out: {reason}." for cell, reason in grid.left_out.items()):
        say(reason)
    run_context = RunContext(Store(store), folder, device, gpt2_checkpoint, added, per_step)
    with progress("Running cells") as bar:
        report = run(grid.cells, run_context, jobs=jobs, progress=bar, log=say if log else None, status=bar.say)
    for cell, problem in report.failed.items():
        say(f"{cell} failed: {problem}")
    say(f"{len(report.new)} cells finished, {report.old} were there already, {len(report.failed)} failed: {store}")
    if report.failed:
        raise typer.Exit(1)


@app.command("list", help="Show which cells are finished, and the methods there are.")
def list_cells(store: Place = STORE) -> None:
    """One line per data set, backbone and protocol."""
    cells = [result.cell for result in collect(Store(store))]
    kinds = dict.fromkeys((cell.dataset, cell.backbone, cell.protocol) for cell in cells)
    rest = ("horizon", "split", "method", "seed")
    lines = [
        (" ".join(kind), *(_values([cell for cell in cells if _kind(cell) == kind], name) for name in rest), count)
        for kind in kinds
        for count in [str(sum(_kind(cell) == kind for cell in cells))]
    ]
    show_table(f"{len(cells)} finished cells in {store}", ("", *(f"{name}s" for name in rest), "cells"), lines)
    say(f"Methods: {', '.join(method_names())}")


def _kind(cell: Cell) -> tuple[str, str, str]:
    return cell.dataset, cell.backbone, cell.protocol


def _values(cells: list[Cell], name: str) -> str:
    return " ".join(str(value) for value in sorted({getattr(cell, name) for cell in cells}))


@app.command("table", help=TABLE_HELP)
def table(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the table.")],
    style: Annotated[Format, typer.Option("--format", help="Of the output.")] = Format.text,
    paper: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder with the paper's numbers.")] = None,
    store: Place = STORE,
) -> None:
    """Print the table."""
    typer.echo(render(make_table(name, collect(Store(store)), paper_folder(paper)), style.value))


@app.command("export", help="Write every finished cell to a CSV file, and what made them beside it.")
def export_cells(
    out: Annotated[Path, typer.Option(metavar="FILE", help="Where to write.")] = Path("results/cells.csv"),
    store: Place = STORE,
) -> None:
    """One line per cell."""
    say(f"{export(Store(store), out)} cells: {out}")


@app.command("page", help="Write the pages of results and the README's headline from a folder of exported results.")
def page(
    results: Annotated[Path, typer.Option(metavar="DIR", help="With the cells that `ompb bench export` wrote.")] = Path(
        "results"
    ),
    docs: Annotated[Path, typer.Option(metavar="DIR", help="Where to write results.md and its tables.")] = Path("docs"),
    readme: Annotated[
        Path | None,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="A document with a place for the headline."),
    ] = None,
) -> None:
    """Markdown: a short page, and one per data set."""
    for path in write_pages(Material.read(results), docs, readme):
        say(f"Written: {path}")
