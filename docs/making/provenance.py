"""The page on what the exported cells are: on which networks they stand, and which scores some of them lack.

    python docs/making/provenance.py

writes docs/cells.md from results/scores and results/made.csv; so does `make pages`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

from ompb.bench.backbones import NetworkLabel
from ompb.bench.joining import bare_errors, strangers
from ompb.bench.named import Named
from ompb.bench.protocols import HONEST
from ompb.bench.store import SCORES, Result, exported
from ompb.forecasters.torch import recipe

REPOSITORY = Path(__file__).parents[2]
PAGE = REPOSITORY / "docs" / "cells.md"
# Commits by which cells ran before training on a GPU repeated itself to the bit; networks have been trained anew since.
EARLIER = (
    "6805547bcd73", "1c273df5cffc", "670c53a76f59", "f9a3b0da1c14", "1e5b2989175e", "59b8ee59a579", "b2a5c3cc2d93",
    "71ac06052112",
)  # fmt: skip
ON_CPU = "torch=2.13.0"  # of the machine without a GPU
SCORED = {"coverage80": "coverage", "winkler80": "interval score", "crps": "likelihood and CRPS"}
INTERVALS_ONLY = ("aci", "dtaci")
WITHOUT_NETWORK = ("last", "profile")
ALL, FEW = "all", 2  # methods; so few are named
FIELDS = ("dataset", "backbone", "horizon", "seed", "protocol")  # of a cell: columns between training and method
JOINED = (6, 5, 4, 3, 2)  # columns whose values share a line, methods first
BARE, OURS = "original", "ompb"

HEAD = """# What the cells are

Made by `python docs/making/provenance.py` from `results/`: do not edit. A cell is one choice of data set, backbone,
horizon, split, protocol, method and seed: a line of [results/scores](../results/scores). Its column `made` leads to a
line of [results/made.csv](../results/made.csv): the commit, device and versions of *its steps*. Newer cells tell the
error of their base forecasts, too (`bare_mae`), and on what their network was trained (`trained_on`); below is what is
known of the others.
"""
NETWORKS = """## On which networks they stand

Most stand on one set of networks, trained on an H200, where the seed decides every bit. These do not: *earlier* are
trainings from before that was so, *CPU* those on a processor. What they are compared with may stand on another
network of the same recipe. (`last` and `profile` hear of no network, and are not listed.)
"""
TWICE = """## The same recipe, trained twice

What that may change: the mean absolute error under `honest`, for one seed, around the network of the main tables and
around one that was trained for as many epochs for the analysis `epochs`. The last columns have the largest difference,
relative to the first. Networks of the same kind of machine agree to the bit. One trained on a processor does not agree
with one trained on a GPU, and bare forecasts of rows unlike the source differ most; of that `ompb` corrects the greater
part. Place by place: `ompb bench table epochs`.
"""
LACKING = """## Which scores they lack

Every cell has its errors. Of those under `honest` these lack other scores: some ran before they were computed, some had
intervals of an earlier rule, which are left out until the cell is run again. (`aci` and `dtaci` give intervals alone,
and so have no likelihood anywhere.)
"""

Line: TypeAlias = tuple[str, ...]


def table(headings: Sequence[str], lines: Iterable[Line], numbers: int) -> str:
    """In Markdown; the last so many columns are numbers."""
    rule = ["---"] * (len(headings) - numbers) + ["---:"] * numbers
    return "\n".join(f"| {' | '.join(line)} |" for line in (headings, rule, *lines))


def grouped(results: Iterable[Result], key: Callable[[Result], Line]) -> dict[Line, list[Result]]:
    """Results by a key, in its order."""
    groups: dict[Line, list[Result]] = {}
    for result in results:
        groups.setdefault(key(result), []).append(result)
    return dict(sorted(groups.items()))


def values(results: Iterable[Result], name: str) -> str:
    """Each value that a field of their cells has."""
    return ", ".join(map(str, sorted({getattr(result.cell, name) for result in results})))


def family(result: Result) -> str:
    """The method's name, whatever its options."""
    named = Named.of(result.cell.method)
    return f"`{named.name}`" + (" with options" if named.options else "")


def training(result: Result, is_stranger: bool) -> str:
    """Of the network of a cell: "CPU", "earlier", or nothing where it is an H200's.

    A stranger tells by the error of its base forecasts that its network is not the one of its place.
    """
    if result.trained_on == "cpu":
        return "CPU"
    label = NetworkLabel.parse(result.cell.backbone)
    is_own = is_stranger or (label is not None and label.epochs is not None)
    if is_own and ON_CPU in {f"{name}={number}" for name, number in result.versions.items()}:
        return "CPU"
    return "earlier" if is_stranger or result.commit in EARLIER else ""


def on_other_networks(results: Iterable[Result]) -> str:
    """What stands on other networks than the rest: cells alike in all but one column share a line."""
    found = sorted(results, key=lambda one: (*(getattr(one.cell, name) for name in FIELDS), family(one)))
    at_odds = {one.cell for one in strangers(found, bare_errors(found))}
    trained: list[Line] = [
        (training(one, one.cell in at_odds), *(str(getattr(one.cell, name)) for name in FIELDS), family(one))
        for one in found
        if one.cell.method not in WITHOUT_NETWORK
    ]
    whole = alike(trained)
    counts: Mapping[Line, int] = Counter(
        (*line[:-1], ALL if line[1:-1] in whole else line[-1]) for line in trained if line[0]
    )
    for column in JOINED:
        counts = joined(counts, column)
    lines = sorted((*line, str(count)) for line, count in counts.items())
    headings = ("training", "data set", "backbones", "horizons", "seeds", "protocols", "methods", "cells")
    return table(headings, lines, numbers=1)


def alike(trained: Iterable[Line]) -> set[Line]:
    """Of lines (training, ..., method) what stands between the two where several methods have one way of training."""
    ways: dict[Line, set[str]] = {}
    methods: dict[Line, set[str]] = {}
    for way, *between, method in trained:
        ways.setdefault(tuple(between), set()).add(way)
        methods.setdefault(tuple(between), set()).add(method)
    return {between for between, those in ways.items() if len(those) == 1 and len(methods[between]) > FEW}


def joined(counts: Mapping[Line, int], column: int) -> dict[Line, int]:
    """Lines that differ in one column alone become one, which has all its values."""
    words: dict[Line, list[str]] = {}
    totals = Counter[Line]()
    for line, count in counts.items():
        rest = (*line[:column], *line[column + 1 :])
        words.setdefault(rest, []).append(line[column])
        totals[rest] += count
    return {(*rest[:column], ", ".join(named), *rest[column:]): totals[rest] for rest, named in words.items()}


def trained_twice(results: Sequence[Result]) -> str:
    """How far errors around two trainings of one recipe are apart, the bare forecaster's and ours."""
    found = {result.cell: result.metrics["mae"] for result in results if result.cell.protocol == HONEST}
    groups: dict[Line, dict[str, list[float]]] = {}
    for cell, error in found.items():
        label = NetworkLabel.parse(cell.backbone)
        if label is None or not (label.epochs or "").isdecimal() or cell.method not in (BARE, OURS):
            continue
        plain = str(NetworkLabel(label.name, label.weights))
        first = found.get(replace(cell, backbone=plain))
        if first is not None and recipe(cell.dataset, label.name).epochs == int(label.epochs or 0):
            apart = groups.setdefault((cell.dataset, plain, cell.backbone), {BARE: [], OURS: []})
            apart[cell.method].append(abs(error / first - 1))
    headings = ("data set", "network", "trained again as", "cells", "bare", "`ompb`")
    lines = (
        (*(f"`{word}`" if place else word for place, word in enumerate(key)), str(len(apart[BARE])),
         *(f"{max(apart[method]):.1%}" for method in (BARE, OURS)))
        for key, apart in sorted(groups.items())
    )  # fmt: skip
    return table(headings, lines, numbers=3)


def lacks(result: Result) -> str:
    """Which scores a cell is without, in words; nothing if it has all that its method can have."""
    asked = list(SCORED)[:2] if result.cell.method in INTERVALS_ONLY else list(SCORED)
    return ", ".join(SCORED[name] for name in asked if name not in result.metrics)


def without_scores(results: Iterable[Result]) -> str:
    """A line for each data set, method and set of scores that honest cells lack."""
    lacking = [result for result in results if result.cell.protocol == HONEST and lacks(result)]
    groups = grouped(lacking, lambda one: (one.cell.dataset, family(one), lacks(one)))
    headings = ("data set", "method", "without", "backbones", "horizons", "cells")
    lines = ((*key, values(some, "backbone"), values(some, "horizon"), str(len(some))) for key, some in groups.items())
    return table(headings, lines, numbers=1)


def page(results: Sequence[Result]) -> str:
    """The whole of it."""
    parts = (HEAD, NETWORKS, on_other_networks(results), "", TWICE, trained_twice(results), "", LACKING,
             without_scores(results))  # fmt: skip
    return "\n".join(parts) + "\n"


def main() -> None:
    """Write it."""
    PAGE.write_text(page(exported(REPOSITORY / "results" / SCORES)), encoding="utf-8")


if __name__ == "__main__":
    main()
