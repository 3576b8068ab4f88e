"""``ompb bench run``: the cells of a choice or of an analysis, each once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from time import monotonic
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from ompb.bench.added import add_file
from ompb.bench.backbones import GPT4TS, RunContext, Status, backbone_label, backbone_names
from ompb.bench.executors import Executor, InTurn, Processes
from ompb.bench.protocols import ACCEPTED, HONEST
from ompb.bench.runner import ALL, Grid, never, run
from ompb.bench.store import Cell, Store
from ompb.cli.console import progress, say
from ompb.cli.folders import STORE, DataFolder, Place
from ompb.datasets.benchmark import NAMES, public_set
from ompb.errors import OptionError
from ompb.paper.analysis import Analysis, Scope
from ompb.paper.catalogue import ANALYSES, find
from ompb.paper.running import runnable

HELP = f"""Run every cell of a choice, or of an analysis, that the store lacks.

An option with several values takes them in a row; "{ALL}" stands for every split or method there is. A method that
cannot follow a protocol, or does not fit the data, is left out of "{ALL}" and refused by name.

With --analysis the cells are those that it needs, and the other options choose among them; --quick asks for the few
that show what it looks like, in minutes. What cannot be run here is said and left out. Several analyses are run in
their order, and with --minutes as far as the time allows: the same command goes on where it stopped. A device, or
GPT-2's weights, that some cell needs and that are not there end the run before its first cell.

The protocol says what a method is shown before it forecasts: "{HONEST}" is what a deployment has; "one-step", that of
the paper's main tables, shows rows that have not come yet.

Your own method or forecaster joins by a decorated function in a file of yours, named with --add, or by an entry point
of your package.

--device cuda trains networks on a GPU and takes the steps of methods there, too; --train-on cuda alone trains there and
leaves the steps to the processors.

With several --jobs, set OMP_NUM_THREADS=1. With --executor ray the processes are those of a Ray cluster: the one that
RAY_ADDRESS names, else one of this machine; store and data must be folders that all its machines see, and --jobs is by
default the number of its processors. A cell whose process dies is tried once more; the others go on.

\b
Data sets:  {", ".join(NAMES)}
Backbones:  {", ".join(backbone_names())}
Protocols:  {", ".join(ACCEPTED)}
Methods:    see ompb bench list
Analyses:   {", ".join(analysis.name for analysis in ANALYSES)}

\b
Examples:
  ompb bench run --dataset etth --backbone ridge --horizon 24
  ompb bench run --analysis delay --quick
  ompb bench run --analysis etth_all_split ili_results --backbone tcn autoformer --seed 0 --jobs 8 --minutes 20
  ompb bench run --dataset etth --backbone ridge --executor ray
  ompb bench run --analysis etth_all_split --backbone tcn --seed 0 --device cuda
  ompb bench run --dataset etth --backbone tcn autoformer --horizon 24 96 --split id ood \\
      --protocol honest one-step --seed 0 1 2 --device cuda
  ompb bench run --dataset ili --backbone gpt4ts --gpt2-weights gpt2-partial --gpt2-checkpoint gpt2.safetensors
"""


class Where(StrEnum):
    """The executors by name."""

    local = "local"
    ray = "ray"


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


def run_cells(
    dataset: Annotated[list[str] | None, typer.Option(metavar="NAME...", help="Data sets.")] = None,
    backbone: Annotated[list[str] | None, typer.Option(metavar="NAME...", help="Frozen forecasters.")] = None,
    horizon: Annotated[list[int] | None, typer.Option(metavar="ROWS...", help="By default those of the paper.")] = None,
    split: Annotated[list[str] | None, typer.Option(metavar="NAME...", help="By default all.")] = None,
    protocol: Annotated[list[str] | None, typer.Option(metavar="NAME...", help=f"By default {HONEST}.")] = None,
    method: Annotated[list[str] | None, typer.Option(metavar="NAME...", help="By default all.")] = None,
    seed: Annotated[list[int] | None, typer.Option(metavar="NUMBER...", help="By default 0.")] = None,
    analysis: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME...", help="The cells of analyses, in this order; other options choose among them."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Of an analysis: a TCN at 24 rows, one seed.")] = False,
    device: Annotated[
        str,
        typer.Option(
            metavar="DEVICE",
            help="cpu or cuda: where methods run in torch, and networks are trained unless --train-on names another.",
        ),
    ] = "cpu",
    train_on: Annotated[
        str | None,
        typer.Option(
            metavar="DEVICE", help="Where networks are trained and make base forecasts; by default that of --device."
        ),
    ] = None,
    gpt2_weights: Annotated[
        str | None, typer.Option(metavar="KIND", help="Of gpt4ts: gpt2, gpt2-partial or random; shown in its name.")
    ] = None,
    gpt2_checkpoint: Annotated[
        str | None, typer.Option(metavar="PATH", help="GPT-2's weights: a file, a folder, or a name of the hub.")
    ] = None,
    store: Place = STORE,
    folder: DataFolder = None,
    add: Annotated[
        list[Path] | None, typer.Option(metavar="FILE...", help="Python files that enter methods or forecasters.")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes at once.")] = None,
    executor: Annotated[Where, typer.Option(help="Where cells run.")] = Where.local,
    minutes: Annotated[
        float | None, typer.Option(min=0.0, help="After so many begin nothing more; what has begun is finished.")
    ] = None,
    log: Annotated[bool, typer.Option("--log", help="Print a line for every cell that ends.")] = False,
    per_step: Annotated[
        bool, typer.Option("--per-step", help="Keep the errors of single forecasts too, in the store's folder steps.")
    ] = False,
) -> None:
    """Run cells and say how it went."""
    added = tuple(add or ())
    for file in added:
        add_file(file)
    chosen: dict[str, Sequence[Any] | None] = {
        "dataset": dataset,
        "backbone": [backbone_label(name, gpt2_weights) for name in backbone] if backbone else None,
        "horizon": horizon,
        "split": split,
        "protocol": protocol,
        "method": method,
        "seed": seed,
    }
    if analysis:
        asked = [find(name) for name in analysis]
        grid = _of_analyses(asked, _scope(quick, gpt2_weights), chosen, folder)
        per_step = per_step or any(one.per_step for one in asked)
    else:
        grid = _of_choice(chosen, quick, folder)
    if grid.left_out and not grid.cells:
        raise OptionError(f"no cell can be run. {' '.join(grid.told())}")
    for sentence in grid.told():
        say(sentence)
    run_context = RunContext(Store(store), folder, device, gpt2_checkpoint, added, per_step, train_on)
    with progress("Running cells") as bar:
        where = _executor(executor, jobs, run_context, bar.say)
        is_over = never if minutes is None else _after(60 * minutes)
        report = run(grid.cells, run_context, executor=where, is_over=is_over, progress=bar, log=say if log else None)
    for sentence in report.told():
        say(sentence)
    say(f"{len(report.new)} cells finished, {report.old} were there already, {len(report.failed)} failed: {store}")
    if report.left:
        say(f"{report.left} cells are left: the time was over. The same command goes on with them.")
    if report.failed:
        raise typer.Exit(1)


def _executor(where: Where, jobs: int | None, run_context: RunContext, status: Status) -> Executor:
    """For one job this process, else processes of this machine or of a cluster."""
    if where is Where.ray:
        from ompb.bench.executors.ray import RayTasks

        devices = {run_context.device, run_context.training_device}
        return RayTasks(jobs, "cpu" if devices == {"cpu"} else "cuda")
    return InTurn(status) if jobs in (None, 1) else Processes(jobs)


def _scope(quick: bool, gpt2_weights: str | None) -> Scope:
    return Scope(quick) if gpt2_weights is None else Scope(quick, backbone_label(GPT4TS, gpt2_weights))


def _after(seconds: float) -> Callable[[], bool]:
    """Whether so many seconds have passed since now."""
    end = monotonic() + seconds
    return lambda: monotonic() >= end


def _of_analyses(
    analyses: Sequence[Analysis], scope: Scope, chosen: dict[str, Sequence[Any] | None], folder: Path | None
) -> Grid:
    """The cells that analyses need, in their order, as far as they were chosen."""
    needed = {analysis.name: analysis.cells(scope) for analysis in analyses}
    if any(needed.values()):
        _require_known(needed, chosen, " with --quick" if scope.quick else "")
    cells: dict[Cell, None] = {}
    for name, own in needed.items():
        if own:
            cells |= dict.fromkeys(_chosen_of(name, own, chosen))
        else:
            say(f"The analysis {name} is made from data alone and needs no run: see ompb bench table {name}.")
    return runnable(cells, folder)


def _require_known(needed: dict[str, list[Cell]], chosen: dict[str, Sequence[Any] | None], quickly: str) -> None:
    """Refuse a choice that no cell of any analysis has, by name."""
    for option, values in chosen.items():
        there = dict.fromkeys(getattr(cell, option) for own in needed.values() for cell in own)
        unknown = [value for value in values or () if value not in there]
        if unknown:
            raise OptionError(
                f"--{option} {_in_row(unknown)}: no cell of {_in_row(needed)}{quickly} has it; "
                f"accepted: {_in_row(there)}."
            )


def _chosen_of(name: str, cells: list[Cell], chosen: dict[str, Sequence[Any] | None]) -> list[Cell]:
    """The cells of an analysis that fit every option. Raises where an option leaves none."""
    for option, values in chosen.items():
        left = [cell for cell in cells if values is None or getattr(cell, option) in values]
        if not left:
            there = dict.fromkeys(getattr(cell, option) for cell in cells)
            raise OptionError(
                f"--{option} {_in_row(values or ())} leaves no cell of {name}: with the other options it has "
                f"{_in_row(there)}; name one of these, or leave an option out."
            )
        cells = left
    return cells


def _in_row(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values))


def _of_choice(chosen: dict[str, Sequence[Any] | None], quick: bool, folder: Path | None) -> Grid:
    if quick:
        raise OptionError("--quick is for an analysis; name one with --analysis, or leave it out.")
    for name in chosen["dataset"] or ():
        public_set(name)  # raises if there is none
    if not chosen["dataset"] or not chosen["backbone"]:
        raise OptionError("no cells were chosen; pass --dataset and --backbone, or --analysis.")
    return Grid.of(
        chosen["dataset"],
        chosen["backbone"],
        chosen["horizon"] or (),
        chosen["split"] or (ALL,),
        chosen["protocol"] or (HONEST,),
        chosen["method"] or (ALL,),
        chosen["seed"] or (0,),
        folder,
    )
