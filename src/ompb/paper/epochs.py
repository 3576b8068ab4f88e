"""How long to train the backbone: 5, 20 or 100 epochs, or until a held-out tenth of the source gets no better.

The paper takes the epoch that is best most often on the very streams it then reports, ties going to the epoch with most
wins over all backbones. That choice knows the outcomes; the held-out tenth does not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from ompb.bench.findings import Finding, Section
from ompb.bench.protocols import HONEST
from ompb.bench.store import Cell
from ompb.paper import printed
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import ERRORS, Doubts, Entry, Measured, Place, compare
from ompb.paper.grid import (
    OMPB,
    ORIGINAL,
    SHORT,
    Spot,
    backbones,
    cells,
    paper_backbone,
    paper_dataset,
    references,
    spots,
)
from ompb.paper.printed import Number
from ompb.paper.tally import made_from, notes_on
from ompb.paper.twice import beside_gaps, same_recipe, trained_twice, twice_section

NAME, HELD_OUT, SHORTEST = "epochs", "val", 24
EPOCHS = (5, 20, 100)
FIXED = tuple(str(epoch) for epoch in EPOCHS)
KNOWS_OUTCOMES = "Chosen by outcomes of the streams it is reported on, as in the paper: no one has these in time."


def wanted(scope: Scope) -> list[Cell]:
    """The bare backbone and ours at every number of epochs; what does not depend on them once."""
    found = []
    for spot in spots(scope, SHORT):
        alone = [name for name in references(spot.dataset) if name in ("profile", "last")]
        found += cells([_trained(spot, FIXED[0])], HONEST, alone)
        lengths = (*FIXED, HELD_OUT) if spot.horizon == SHORTEST else FIXED
        found += cells([_trained(spot, length) for length in lengths], HONEST, (ORIGINAL, OMPB))
    return [*found, *cells(same_recipe(spots(scope, SHORT)), HONEST, (ORIGINAL,))]


def _trained(spot: Spot, length: str) -> Spot:
    return replace(spot, backbone=f"{spot.backbone}@{length}")


def reduce(runs: Runs, scope: Scope) -> Finding:
    """A section for each data set, the count of wins, and the two ways to choose beside each other."""
    asked = wanted(scope)
    results = runs.found(asked)
    measured = Measured.of(results)
    where = [spot for spot in spots(scope, SHORT) if _has_any(spot, measured)]
    datasets = list(dict.fromkeys(spot.dataset for spot in where))
    wins = {dataset: _wins([spot for spot in where if spot.dataset == dataset], measured) for dataset in datasets}
    chosen = {dataset: _chosen(counts, backbones(scope)) for dataset, counts in wins.items()}
    twice = trained_twice(where, measured)
    sections = [
        *(_by_dataset(dataset, [spot for spot in where if spot.dataset == dataset], measured,
                      notes_on(asked, results, dataset=dataset)) for dataset in datasets),
        _summary(wins, chosen),
        _two_choices(where, chosen, measured),
        twice_section(twice),
    ]  # fmt: skip
    return Finding(
        analysis=NAME,
        title="How long to train the backbone",
        text=" ".join((_text(where, chosen, measured), *beside_gaps(twice, _gaps(where, measured)))),
        sections=tuple(section for section in sections if section.lines),
        made_from=made_from(results),
    )


def _has_any(spot: Spot, measured: Measured) -> bool:
    return any(_bare(spot, length) in measured.results for length in (*FIXED, HELD_OUT))


def _bare(spot: Spot, length: str) -> Place:
    return Place(_trained(spot, length), HONEST, ORIGINAL)


def _by_dataset(dataset: str, where: Sequence[Spot], measured: Measured, notes: tuple[str, ...]) -> Section:
    blocks = []
    for spot in where:
        keys = spot.backbone, str(spot.horizon), spot.split
        block = [
            Entry(
                (*keys, method, length), Place(_trained(spot, length), HONEST, method), _printed(spot, length, method)
            )
            for method in (ORIGINAL, OMPB)
            for length in (*FIXED, HELD_OUT)
        ]
        alone = [name for name in references(dataset) if name in ("profile", "last")]
        block += [Entry((*keys, name, ""), Place(_trained(spot, FIXED[0]), HONEST, name)) for name in alone]
        blocks.append(block)
    return compare(f"Epochs: {dataset}", ("backbone", "horizon", "split", "method", "epochs"), blocks, measured, notes)


def _printed(spot: Spot, length: str, method: str) -> dict[str, Number]:
    if method != ORIGINAL or length == HELD_OUT:
        return {}
    dataset = paper_dataset(spot.dataset)
    numbers = printed.accuracy(f"epoch_sensitivity_{dataset}")
    key = dataset, paper_backbone(spot.backbone), f"epoch_{length}", spot.horizon, spot.split
    found = {metric: numbers.get((*key, metric)) for metric in ERRORS}
    return {metric: number for metric, number in found.items() if number is not None}


def _fixed(spot: Spot, measured: Measured, metric: str) -> dict[str, float]:
    """The error at each number of epochs, over the seeds of all; empty unless all have run."""
    places = {length: _bare(spot, length) for length in FIXED}
    seeds = measured.common_seeds(places.values())
    errors = {length: measured.mean(place, metric, seeds) for length, place in places.items()}
    known = {length: error for length, error in errors.items() if error is not None}
    return known if len(known) == len(FIXED) else {}


def _gaps(where: Sequence[Spot], measured: Measured) -> list[float]:
    """How far the MAE at the best number of epochs is ahead of the second, relative to it."""
    ranked = [sorted(errors.values()) for spot in where if (errors := _fixed(spot, measured, "mae"))]
    return [second / best - 1 for best, second, *_ in ranked]


def _wins(where: Sequence[Spot], measured: Measured) -> Counter[tuple[str, str]]:
    """How often each number of epochs is best for a backbone, over horizons, splits and errors."""
    wins: Counter[tuple[str, str]] = Counter()
    for spot, metric in product(where, ERRORS):
        errors = _fixed(spot, measured, metric)
        wins.update((spot.backbone, length) for length in errors if errors[length] == min(errors.values()))
    return wins


def _chosen(wins: Mapping[tuple[str, str], int], names: Sequence[str]) -> dict[str, str]:
    """The number of epochs that wins most for each backbone that has wins; ties go to most wins of all backbones."""
    total = {length: sum(wins.get((name, length), 0) for name in names) for length in FIXED}
    return {
        name: max(FIXED, key=lambda length: (wins.get((name, length), 0), total[length]))
        for name in names
        if any(wins.get((name, length)) for length in FIXED)
    }


def _summary(wins: Mapping[str, Mapping[tuple[str, str], int]], chosen: Mapping[str, Mapping[str, str]]) -> Section:
    doubts, lines = Doubts(), []
    for dataset, picks in chosen.items():
        papers = paper_dataset(dataset)
        for name, pick in picks.items():
            backbone = paper_backbone(name)
            theirs = printed.epochs_chosen()[papers, backbone, "sens_selected"]
            for length in FIXED:
                count = printed.epochs_won()[papers, backbone, int(length)]
                lines.append((
                    *(dataset, name, length, str(wins[dataset].get((name, length), 0)), doubts.shown(count)),
                    *("chosen" if length == pick else "", doubts.shown(theirs) if length == theirs.value else ""),
                ))  # fmt: skip
    return Section(
        title="How often each number of epochs is best",
        notes=("Counted over horizons, splits and both errors, where all three have run.", *doubts.notes()),
        headings=("data", "backbone", "epochs", "ours", "paper", "chosen", "paper's choice"),
        lines=tuple(lines),
        keys=3,
    )


def _two_choices(where: Sequence[Spot], chosen: Mapping[str, Mapping[str, str]], measured: Measured) -> Section:
    blocks = []
    for spot in (spot for spot in where if spot.horizon == SHORTEST):
        pick = chosen[spot.dataset].get(spot.backbone)
        ways = {"val_selected": HELD_OUT} | ({"sens_selected": pick} if pick else {})
        block = []
        for way, length in ways.items():
            key = paper_dataset(spot.dataset), paper_backbone(spot.backbone), way
            papers = printed.epochs_chosen()[key].value
            numbers = printed.accuracy("val_vs_sens_all")
            theirs = {metric: numbers[key[0], key[1], way, SHORTEST, spot.split, metric] for metric in ERRORS}
            words = "held-out tenth" if length == HELD_OUT else "known outcomes"
            keys = spot.dataset, spot.backbone, spot.split, words, _length(spot, length, measured), papers
            block.append(Entry(keys, _bare(spot, length), theirs))
        blocks.append(block)
    return compare(
        f"Two ways to choose, {SHORTEST} rows",
        ("data", "backbone", "split", "chosen by", "epochs", "paper's epochs"),
        blocks,
        measured,
        [f"Known outcomes: {KNOWS_OUTCOMES}"],
    )


def _length(spot: Spot, length: str, measured: Measured) -> str:
    """Epochs of training, by seed where it stopped by itself."""
    if length != HELD_OUT:
        return length
    found = measured.results.get(_bare(spot, length), {})
    return " ".join(str(result.facts.get("stopped_at", "")) for _, result in sorted(found.items()))


def _text(where: Sequence[Spot], chosen: Mapping[str, Mapping[str, str]], measured: Measured) -> str:
    """How the two choices compare."""
    ratios = []
    for spot in (spot for spot in where if spot.horizon == SHORTEST and spot.backbone in chosen[spot.dataset]):
        places = _bare(spot, HELD_OUT), _bare(spot, chosen[spot.dataset][spot.backbone])
        seeds = measured.common_seeds(places)
        held, known = (measured.mean(place, "mae", seeds) for place in places)
        if held and known:
            ratios.append(held / known)
    if not ratios:
        return "No two ways to choose the epochs have run in the same place yet."
    better = sum(value < 1 for value in ratios)
    return (
        f"At {SHORTEST} rows the epochs that a held-out tenth of the source asks for have a smaller MAE than those "
        f"chosen by the outcomes themselves in {better} of {len(ratios)} places."
    )


TABLES = tuple(f"epoch_sensitivity_{name}" for name in ("etth", "ili", "weather"))
ANALYSIS = Analysis(
    NAME,
    "How long to train the backbone, and who may choose it",
    (*TABLES, "epoch_selection_summary", "val_vs_sens_all"),
    wanted,
    reduce,
)
