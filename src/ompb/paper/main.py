"""The paper's main tables: every method on every backbone, horizon and split, under one or both protocols.

The cells ask for what the paper compares and, under the honest protocol, for what has been published since: a leak is
run for the sake of the paper's numbers, and other methods have none. The tables show every method that has run, whether
it was asked for or not, as long as its name brings no options.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from ompb.bench.findings import Finding, Section
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.bench.store import Cell, Result
from ompb.paper import printed
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import Entry, Measured, Place, compare
from ompb.paper.costs import Costs, in_short
from ompb.paper.grid import (
    ANEW,
    HORIZONS,
    OMPB,
    ORIGINAL,
    PAPERS_DATA,
    PRESET,
    PROTOCOLS,
    RETRAIN,
    STAND_IN,
    TRIVIAL,
    Spot,
    cells,
    paper_backbone,
    paper_dataset,
    references,
    retrained,
    rival_seeds,
    rivals,
    seeds,
    spots,
)
from ompb.paper.horizons import by_horizon
from ompb.paper.printed import Accuracy, Number
from ompb.paper.tally import duels, made_from, never_asked, notes_on, sentence, who_is_ahead

FIRST = (ORIGINAL, *TRIVIAL, OMPB, PRESET)  # then the others, by name
IN_PAPER = {PRESET: "ompb"}  # methods the paper has under another name
OURS = {theirs: ours for ours, theirs in IN_PAPER.items()}
TABLES = {"etth_all_split": ("etth",), "ili_results": ("ili",), "weather_all_split": ("weather-5k", STAND_IN)}
RUN = {table: datasets[-1] for table, datasets in TABLES.items()}  # WEATHER-5K itself is not at hand
BOTH = f"The paper's OMPB stands beside `{PRESET}`, which is it, and beside `{OMPB}`."
PRICE = (
    "A training is spread over the rows from one to the next; from weights that are there already it takes as long. "
    "Milliseconds of one processor, and megabytes beside what is kept from row to row. The network's own forecast is "
    "in it where it is trained again."
)
DUELS = (
    ((HONEST, OMPB), (HONEST, ORIGINAL)),
    ((HONEST, OMPB), (HONEST, PRESET)),
    ((HONEST, PRESET), (HONEST, ORIGINAL)),
    ((ONE_STEP, PRESET), (ONE_STEP, ORIGINAL)),
    ((ONE_STEP, PRESET), (ONE_STEP, "copy")),
)
TOLD = DUELS[0], DUELS[-1]  # in words, too: what users get, and what the leak is worth to a method that learns


def wanted(table: str, scope: Scope) -> list[Cell]:
    """The cells of a table: three seeds for our methods and the references; for the rest where that is cheap."""
    dataset = RUN[table]
    where = spots(scope, {dataset: HORIZONS[dataset]})
    core = (*references(dataset), PRESET)
    found = [*cells(where, HONEST, (*core, OMPB), seeds(scope)), *cells(where, ONE_STEP, core, seeds(scope))]
    for spot in where:
        others = (*rivals(scope, spot), *retrained(scope, spot))
        found += cells([spot], HONEST, others, rival_seeds(scope, spot))
        found += cells([spot], ONE_STEP, rivals(scope, spot, ONE_STEP))
    return found


def reduce(table: str, runs: Runs, scope: Scope) -> Finding:
    """One section for each data set and protocol that has a result, or the paper's numbers alone."""
    asked = wanted(table, scope)
    results = [result for result in runs.results if is_of(table, result)]
    measured = Measured.of(results)
    sections = [
        _section(table, dataset, protocol, measured, notes_on(asked, results, dataset=dataset, protocol=protocol))
        for dataset in TABLES[table]
        for protocol in PROTOCOLS
        if any((place.spot.dataset, place.protocol) == (dataset, protocol) for place in measured.results)
    ]
    met = duels(measured, DUELS)
    told = " ".join(sentence(pair, duel) for pair, duel in met.items() if pair in TOLD)
    drawn = (by_horizon(table, dataset, measured, partial(_mae_of_paper, table)) for dataset in TABLES[table])
    return Finding(
        analysis=table,
        title=f"Accuracy on {paper_dataset(RUN[table])} ({table})",
        text=told if results else "No cell of this table has run yet.",
        sections=(*who_is_ahead(met), *sections, *_price_of_training(RUN[table], runs.costs)),
        figures=tuple(figure for figure in drawn if figure.panels),
        made_from=made_from(results),
    )


def is_of(table: str, result: Result) -> bool:
    """Whether a result belongs in a table: trained as the paper's recipe says, no options, its protocols."""
    cell = result.cell
    plain = "@" not in cell.backbone and "[" not in cell.method
    return plain and cell.dataset in TABLES[table] and cell.protocol in PROTOCOLS


def _section(table: str, dataset: str, protocol: str, measured: Measured, notes: Iterable[str]) -> Section:
    numbers = printed.accuracy(table)
    spots_here = sorted({place.spot for place in measured.results if place.spot.dataset == dataset})
    blocks = []
    for spot in spots_here:
        methods = {place.method for place in measured.results if (place.spot, place.protocol) == (spot, protocol)}
        methods |= {OURS.get(theirs, theirs) for theirs in _printed_methods(numbers, spot)}
        named = sorted(methods, key=lambda name: (FIRST.index(name) if name in FIRST else len(FIRST), name))
        blocks.append([_entry(Place(spot, protocol, method), numbers) for method in named])
    keys = ("backbone", "horizon", "split", "method")
    notes = (BOTH, *notes, *never_asked(blocks, measured, wanted(table, Scope())))
    return compare(f"{table}: {dataset}, protocol {protocol}", keys, blocks, measured, notes)


def _price_of_training(dataset: str, costs: Costs) -> list[Section]:
    """What a row costs that is learned from, and one that now and then asks for a whole training."""
    lines = []
    for spot in (spot for spot in ANEW if spot.dataset == dataset):
        cheapest = costs.of(spot.sizes, OMPB)
        for method in (OMPB, PRESET, RETRAIN):
            cost = costs.of(spot.sizes, method)
            if cost is not None and cheapest is not None:
                times = cost.milliseconds / cheapest.milliseconds
                spent = map(in_short, (cost.milliseconds, times, cost.megabytes))
                lines.append((spot.backbone, str(spot.horizon), method, *spent))
    headings = ("backbone", "horizon", "method", "ms a row", f"times {OMPB}", "MB a row")
    notes = (PRICE, *costs.notes())
    return [Section("What training anew costs", notes, headings, tuple(lines), keys=3)] if lines else []


def _printed_methods(numbers: Accuracy, spot: Spot) -> set[str]:
    return {method for _, backbone, method, *_ in numbers if backbone == paper_backbone(spot.backbone)}


def _entry(place: Place, numbers: Accuracy) -> Entry:
    spot = place.spot
    keys = spot.backbone, str(spot.horizon), spot.split, place.method
    return Entry(keys, place, of_paper(numbers, spot, IN_PAPER.get(place.method, place.method)))


def _mae_of_paper(table: str, spot: Spot) -> float | None:
    """What the paper prints for its own method, if it is of these data."""
    found = of_paper(printed.accuracy(table), spot, OMPB) if spot.dataset in PAPERS_DATA else {}
    return float(found["mae"].value) if "mae" in found else None


def of_paper(numbers: Accuracy, spot: Spot, method: str) -> dict[str, Number]:
    """MAE and MSE that a table prints for a method here, where it does."""
    found = {
        metric: numbers.get(
            (paper_dataset(spot.dataset), paper_backbone(spot.backbone), method, spot.horizon, spot.split, metric)
        )
        for metric in ("mae", "mse")
    }
    return {metric: number for metric, number in found.items() if number is not None}


ANALYSES = tuple(
    Analysis(
        name=table,
        title=f"Accuracy on {paper_dataset(RUN[table])}: every method, those of the paper under its protocol, too",
        printed=(table, "etth_results") if table == "etth_all_split" else (table,),
        cells=partial(wanted, table),
        reduce=partial(reduce, table),
    )
    for table in TABLES
)
