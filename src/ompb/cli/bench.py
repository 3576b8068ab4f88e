"""``ompb bench``: run cells of the benchmark, list them, and show what they found."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from ompb.bench.methods import method_names
from ompb.bench.render import render
from ompb.bench.store import SCORES, Cell, Store
from ompb.cli import bench_run
from ompb.cli.bench_run import Several
from ompb.cli.console import note, say, show_table
from ompb.cli.folders import (
    RESULTS,
    STORE,
    DataFolder,
    Place,
    Results,
    data_in,
    require_results,
    require_tables_alone,
)
from ompb.errors import OptionError
from ompb.floor.files import replacing
from ompb.floor.names import counted
from ompb.paper.catalogue import ANALYSES, find
from ompb.paper.page.material import Material
from ompb.paper.progress import Overview, Standing
from ompb.paper.running import Shown, export_all, export_steps, finding_of

GROUP_HELP = """Benchmark: cells, results and the paper's analyses.

A cell is a choice of data set, backbone, horizon, split, protocol, method and seed. Finished cells are kept in a store
and never run again, so a run may be interrupted at any moment and started anew. An analysis is a table or figure of the
paper, or one that it lacks, with the cells it needs.
"""
LIST_HELP = """Show which cells are finished, how far the analyses are, and the methods there are.

Of each analysis: how many of its cells are there / how many it asks for, all of them and those of --quick. Those in the
store are not run again; beside them stand those that `ompb bench export` wrote to the results. A cell that cannot be
run with the data at hand, as its method needs a longer source, is not asked for; where the data are not at hand nobody
can tell, and it is.

An analysis that reads single steps counts cells of the store whose steps were kept. Steps are not exported: the last
column, what the exported finding was made from, tells how far it is. A finding may show cells beyond those asked for.
"""
NAMES = ", ".join(analysis.name for analysis in ANALYSES)
FROM = (
    "It is made from the cells in the store, else shown as it was exported to the folder findings of the results. A "
    "line on the second stream says which."
)
TABLE_HELP = f"""Show the tables of an analysis, with the paper's numbers beside ours.

NAME is one of {NAMES}. {FROM}
"""
FIGURE_HELP = f"""Draw the figures of an analysis as SVG.

NAME is one of {NAMES}. {FROM} If there are several, each file bears the figure's name, too.
"""
EXPORT_HELP = """Write every finished cell to a table for each data set, and the findings of every analysis.

Beside the folder of the tables come made.csv, which says what made the cells, and the folder findings, one JSON file
for each analysis that has a cell. With --add a store of a few cells joins results that are there already. A network
that was trained again is another one: a cell does not take the place of one around another network unless told so. With
--steps, findings that read single steps are made anew from those in the store, and cells stay as they are.
"""

app = typer.Typer(help=GROUP_HELP, rich_markup_mode=None)
app.command("run", help=bench_run.HELP, cls=Several)(bench_run.run_cells)
Name = Annotated[str, typer.Argument(metavar="NAME", help="Of the analysis.")]


class Format(StrEnum):
    """Of a table."""

    text = "text"
    markdown = "markdown"
    html = "html"


@app.callback(invoke_without_command=True)
def _start(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command("list", help=LIST_HELP)
def list_cells(store: Place = STORE, results: Results = RESULTS, folder: DataFolder = None) -> None:
    """One line per data set, backbone and protocol of the store, then one per analysis."""
    methods = method_names()  # before the overview loads some, which would change their order
    overview = Overview.of(ANALYSES, Store(store), results, folder)
    if not (results / SCORES).is_dir():
        note(f"There is no {results / SCORES}: stand in the clone, where exported cells are, or name --results DIR.")
    cells = overview.stored
    kinds = dict.fromkeys(map(_kind, cells))
    headings = ("", "horizons", "splits", "seeds", "methods", "cells")
    lines = [_kind_line(kind, [cell for cell in cells if _kind(cell) == kind]) for kind in kinds]
    title = f"{counted(len(cells), 'finished cell')} in {store}"
    if lines:
        show_table(title, headings, lines)
    else:
        say(title)
    title = (
        f"Cells of each analysis in the store, and among the {len(overview.exported)} exported to {results / SCORES}"
    )
    headings = ("analysis", "all", "exported", "quick", "exported", "finding")
    show_table(title, headings, map(_standing_line, overview.standings))
    say(f"Methods: {', '.join(methods)}")


def _standing_line(standing: Standing) -> tuple[str, ...]:
    exported = standing.exported or ("",) * len(standing.stored)
    pairs = zip(standing.stored, exported, strict=True)
    return standing.name, *(str(count) for pair in pairs for count in pair), _source(standing.made_from)


def _source(made_from: Mapping[str, Any]) -> str:
    """How many cells, or data sets, a finding was made from; nothing if there is none."""
    if "cells" in made_from:
        return f"{made_from['cells']} cells"
    return f"{len(made_from['data'])} data sets" if "data" in made_from else ""


def _kind(cell: Cell) -> tuple[str, str, str]:
    return cell.dataset, cell.backbone, cell.protocol


def _kind_line(kind: tuple[str, str, str], cells: list[Cell]) -> tuple[str, ...]:
    """What cells of a kind there are; methods with other options count as others."""
    values = (" ".join(str(one) for one in _each(cells, name)) for name in ("horizon", "split", "seed"))
    return " ".join(kind), *values, str(len(_each(cells, "method"))), str(len(cells))


def _each(cells: list[Cell], name: str) -> list[Any]:
    return sorted({getattr(cell, name) for cell in cells})


@app.command("table", help=TABLE_HELP)
def table(
    name: Name,
    style: Annotated[Format, typer.Option("--format", help="Of the output.")] = Format.text,
    store: Place = STORE,
    results: Results = RESULTS,
    folder: DataFolder = None,
) -> None:
    """Print the tables."""
    with data_in(folder):
        shown = finding_of(find(name), Store(store), results)
    typer.echo(render(shown.finding.sections, style.value))
    note(shown.told())


@app.command("figure", help=FIGURE_HELP)
def figure(
    name: Name,
    out: Annotated[Path, typer.Option(metavar="FILE.svg", help="Where to write.")],
    store: Place = STORE,
    results: Results = RESULTS,
    folder: DataFolder = None,
) -> None:
    """Write the figures."""
    from ompb.reports.drawing import svg

    if out.suffix.lower() != ".svg":
        raise OptionError(f"--out {out} does not end in .svg, and figures are drawn as SVG; name a file that does.")
    with data_in(folder):
        shown = finding_of(find(name), Store(store), results)
    figures = shown.finding.figures
    if not figures:
        raise OptionError(_without_figure(shown))
    note(shown.told())
    for drawn in figures:
        path = out if len(figures) == 1 else out.with_stem(f"{out.stem}-{drawn.name}")
        with replacing(path, parents=True) as part:
            part.write_text(svg(drawn), encoding="utf-8")
        say(f"Figure: {path}")


def _without_figure(shown: Shown) -> str:
    """Why there is nothing to draw: the analysis has tables alone, or what is shown is too little."""
    name, exported = shown.finding.analysis, shown.exported
    see = f"see ompb bench table {name}"
    if exported is None:
        return f"what is in {shown.store} of the analysis {name!r} gives no figure; {see}, or name another --store."
    if not exported.figures:
        return f"the analysis {name!r} has no figure, only tables ({shown.path} has none either); {see}."
    return (
        f"what is in {shown.store} of the analysis {name!r} is too little for its figure; run more of it, or name "
        f"another --store: with one that has nothing of it, the figure is drawn as exported to {shown.path}."
    )


@app.command("export", help=EXPORT_HELP)
def export_cells(
    out: Annotated[
        Path, typer.Option(metavar="FOLDER", help="Where to write the cells, a table for each data set.")
    ] = RESULTS / SCORES,
    store: Place = STORE,
    add: Annotated[
        bool, typer.Option("--add", help="Keep what FOLDER has and the store lacks, and fuller findings beside it.")
    ] = False,
    other_networks: Annotated[
        bool, typer.Option("--other-networks", help="Let cells replace those that stand on other networks.")
    ] = False,
    steps: Annotated[
        bool,
        typer.Option("--steps", help="Leave cells alone; make the findings of single steps from those in the store."),
    ] = False,
    folder: DataFolder = None,
) -> None:
    """One line per cell, one file per finding."""
    require_tables_alone(out)
    if steps:
        with data_in(folder):
            written = export_steps(Store(store), out, ANALYSES)
        for path in written:
            say(f"Finding: {path}")
        return
    with data_in(folder):
        done = export_all(Store(store), out, ANALYSES, add=add, other_networks=other_networks)
    say(f"{done.cells} cells: {out}")
    if done.joining.replaced:
        say(f"Replaced: {counted(len(done.joining.replaced), 'cell')} that were there.")
    if done.joining.strangers:
        say(f"On other networks than what stands at their place: {counted(len(done.joining.strangers), 'cell')}.")
    for path in done.findings:
        say(f"Finding: {path}")


@app.command("page", help="Write the pages of results and the README's headline from a folder of exported results.")
def page(
    results: Results = RESULTS,
    docs: Annotated[Path, typer.Option(metavar="DIR", help="Where to write results.md and its tables.")] = Path("docs"),
    readme: Annotated[
        Path | None,
        typer.Option(metavar="FILE", exists=True, dir_okay=False, help="A document with a place for the headline."),
    ] = None,
) -> None:
    """Markdown: a short page, and one per data set."""
    require_results(results)
    from ompb.paper.page.markdown import write_pages

    for path in write_pages(Material.read(results), docs, readme):
        say(f"Written: {path}")
