"""Forecasts as laws on ETTh: likelihood, CRPS, coverage, width, calibration and interval scores of every method."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable

from ompb.bench.findings import Finding, Section
from ompb.bench.law import SOURCE_WINDOWS
from ompb.bench.protocols import HONEST
from ompb.bench.store import Cell, Result
from ompb.paper import main, printed
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import Doubts, Entry, Measured, Place, compare, shown
from ompb.paper.grid import (
    HEADLINE,
    OMPB,
    PRESET,
    PROTOCOLS,
    Spot,
    paper_backbone,
    references,
)
from ompb.paper.main import FIRST, IN_PAPER
from ompb.paper.networks import broken
from ompb.paper.tally import Duel, made_from, notes_on

NAME, TABLE = "probabilistic", "probabilistic_forecasting_full"
MAIN = "etth_all_split"  # the table whose cells are read
METRICS = {
    "nll": "NLL", "crps": "CRPS", "coverage80": "80% coverage", "coverage95": "95% coverage", "width80": "80% width",
    "width95": "95% width", "ece": "ECE", "winkler80": "80% Winkler", "winkler95": "95% Winkler",
}  # fmt: skip
OF_DENSITY = ("nll", "crps")  # metrics that intervals alone do not have
PAPERS = {"coverage80": "cov80", "coverage95": "cov95"}  # metrics the paper's table has under another name
LAW = (
    "A method that says a mean only has the Gaussian law of its own errors that its protocol has revealed, the "
    f"source's counting as {SOURCE_WINDOWS:g} windows. `ompb`, `ompb-paper` and what is built on them, `aci` and "
    "`dtaci` bring their own."
)
EARLY = (
    "Where a score is blank, the cell of some seed in the last column is from before that score was kept, and no mean "
    "is over other seeds than its line's"
)
OWN_SEEDS = "Ours are means over all seeds of a method, behind ± their standard deviation."
NO_HORIZON = "The paper does not say for which horizon its numbers are, so there is no ratio."


def wanted(scope: Scope) -> list[Cell]:
    """Those of the main table at two of its horizons."""
    return [cell for cell in main.wanted(MAIN, scope) if cell.horizon in HEADLINE]


def reduce(runs: Runs, scope: Scope) -> Finding:
    """For each protocol the scores of all methods, then those that the paper has beside its own."""
    asked = wanted(scope)
    results = [result for result in runs.results if _is_here(result)]
    measured = Measured.of(results)
    sections = [
        section
        for protocol in PROTOCOLS
        for section in (
            _scores(protocol, measured, (*_blank(protocol, measured), *notes_on(asked, results, protocol=protocol))),
            _beside_paper(protocol, measured, results),
        )
    ]
    return Finding(
        analysis=NAME,
        title="Forecasts as laws",
        text=_text(measured),
        sections=tuple(section for section in sections if section.lines),
        made_from=made_from(results),
    )


def _is_here(result: Result) -> bool:
    return (
        main.is_of(MAIN, result)
        and result.cell.horizon in HEADLINE
        and (result.has_diverged or not METRICS.keys().isdisjoint(result.metrics))
    )


def _scores(protocol: str, measured: Measured, notes: Iterable[str]) -> Section:
    blocks = []
    for spot in _spots(protocol, measured):
        methods = [place.method for place in measured.results if (place.spot, place.protocol) == (spot, protocol)]
        keys = spot.backbone, str(spot.horizon), spot.split
        blocks.append([Entry((*keys, name), Place(spot, protocol, name)) for name in sorted(methods, key=_rank)])
    return compare(
        f"Laws on ETTh, protocol {protocol}",
        ("backbone", "horizon", "split", "method"),
        blocks,
        measured,
        (LAW, *notes),
        METRICS,
    )


def _blank(protocol: str, measured: Measured) -> list[str]:
    """Why some scores are not there: no density, or cells from before they were kept."""
    lacking: dict[str, dict[str, None]] = {}
    without: dict[str, None] = {}
    for place in sorted(place for place in measured.results if place.protocol == protocol):
        for result in (one for one in measured.results[place].values() if not one.has_diverged):
            absent = [name for name in METRICS if name not in result.metrics]
            if "nll" in absent and "coverage80" not in absent:
                without[f"`{place.method}`"] = None
                absent = [name for name in absent if name not in OF_DENSITY]
            lacking.setdefault(place.method, {}).update(dict.fromkeys(absent))
    early = [f"`{method}` ({', '.join(METRICS[name] for name in names)})" for method, names in lacking.items() if names]
    notes = [f"Intervals and no density, so no NLL and no CRPS: {', '.join(without)}."] if without else []
    return notes + ([f"{EARLY}: {', '.join(early)}."] if early else [])


def _spots(protocol: str, measured: Measured) -> list[Spot]:
    return sorted({place.spot for place in measured.results if place.protocol == protocol})


def _rank(method: str) -> tuple[int, str]:
    return FIRST.index(method) if method in FIRST else len(FIRST), method


def _beside_paper(protocol: str, measured: Measured, results: Iterable[Result]) -> Section:
    """One line for each number of the paper's, ours at every horizon beside it."""
    numbers, doubts, lines = printed.probabilistic(), Doubts(), []
    where = _spots(protocol, measured)
    horizons = sorted({spot.horizon for spot in where})
    methods = sorted({result.cell.method for result in results if result.cell.protocol == protocol}, key=_rank)
    for backbone, split in sorted({(spot.backbone, spot.split) for spot in where}):
        for method in methods:
            for metric, words in METRICS.items():
                key = "etth", paper_backbone(backbone), split, IN_PAPER.get(method, method), PAPERS.get(metric, metric)
                if key not in numbers:
                    continue
                ours = [
                    _over_own_seeds(Place(Spot("etth", backbone, horizon, split), protocol, method), metric, measured)
                    for horizon in horizons
                ]
                lines.append((backbone, split, method, words, *ours, doubts.shown(numbers[key])))
    return Section(
        title=f"Laws on ETTh beside the paper's, protocol {protocol}",
        notes=(NO_HORIZON, OWN_SEEDS, *broken(lines), *doubts.notes()),
        headings=("backbone", "split", "method", "score", *(f"ours, {horizon} rows" for horizon in horizons), "paper"),
        lines=tuple(lines),
    )


def _over_own_seeds(place: Place, metric: str, measured: Measured) -> str:
    return measured.words(place, metric, sorted(measured.results.get(place, ())))


def _text(measured: Measured) -> str:
    """Whom ours beats, and what the law of the paper's method is like beside the printed one."""
    duels = {
        other: Duel.of(measured, (HONEST, OMPB), (HONEST, other), "crps") for other in (*references("etth"), PRESET)
    }
    words = [f"`{other}` {duel}" for other, duel in duels.items() if duel.ratios]
    sentences = [f"`{OMPB}` has a smaller CRPS than {', '.join(words)}."] if words else []
    return " ".join((*sentences, *_width_of_papers(measured), LAW))


def _width_of_papers(measured: Measured) -> list[str]:
    """How wide the intervals of the paper's method are beside those that it prints."""
    times = {place: by for place in measured.results if (by := _times_as_wide(place, measured)) is not None}
    if not times:
        return []
    widest = max(times, key=times.__getitem__)
    spot, seeds = widest.spot, sorted(measured.results[widest])
    width, covered = (shown(measured.mean(widest, metric, seeds)) for metric in ("width80", "coverage80"))
    return [
        f"The 80% interval of `{PRESET}` is {statistics.median(times.values()):.1f} times as wide as the paper prints "
        f"in the median place and {times[widest]:.1f} times at most: {width} against {_printed_width(widest)} under "
        f"{widest.protocol} on {spot.split}, {spot.backbone}, {spot.horizon} rows, where {covered} of the outcomes lie "
        "inside. So its CRPS tells of that law and not of the forecast."
    ]


def _times_as_wide(place: Place, measured: Measured) -> float | None:
    """None for other methods, without a width of ours or the paper's, and where the method has diverged."""
    theirs = _printed_width(place)
    if place.method != PRESET or theirs is None:
        return None
    width = measured.mean(place, "width80", sorted(measured.results[place]))
    return None if width is None or math.isinf(width) else width / float(theirs)


def _printed_width(place: Place) -> str | None:
    key = "etth", paper_backbone(place.spot.backbone), place.spot.split, IN_PAPER[PRESET], "width80"
    number = printed.probabilistic().get(key)
    return None if number is None else number.value


ANALYSIS = Analysis(NAME, "Likelihood, coverage and interval scores of every method", (TABLE,), wanted, reduce)
