"""How well what is known before the outcome ranks and follows the error that then comes.

Neighbouring forecasts share most of their outcome, so a correlation over n steps has far fewer than n witnesses, and on
the few weeks of ILI next to none.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from statistics import fmean

from ompb.bench.findings import Figure, Finding, Panel, Section
from ompb.bench.store import Cell, Steps
from ompb.datasets.splits import ID
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.association import (
    BARE,
    CERTIFICATE,
    DISAGREEMENT,
    ERRORS,
    EXPECTED,
    ISSUED,
    SEVERITIES,
    SIGNALS,
    STATISTICS,
    Association,
    Found,
    associations,
    best,
    mean_over_seeds,
    signals,
)
from ompb.paper.beside import HINT, Doubts
from ompb.paper.drawing import cloud
from ompb.paper.grid import OMPB, ORIGINAL, Spot, paper_dataset, seeds
from ompb.paper.places import NOT_PAPERS, difference, keys_of, live, number, places
from ompb.paper.printed import Number, diagnostics
from ompb.paper.ranking import beside_papers, best_signals, certificate_or_expected, printed_rank, signs
from ompb.paper.severity import MEASURES, Severities, Severity
from ompb.paper.tally import made_from, missing

INTRODUCTION = "Every signal is known before the outcome it is compared with; all are shown, the weak ones too."
NAME, TITLE = "correlation", "What the signals know of the error to come"


def cells(scope: Scope) -> list[Cell]:
    """Our method and the bare forecaster on every stream of the diagnostics."""
    return [
        live(place, method, seed) for place in places(scope) for method in (OMPB, ORIGINAL) for seed in seeds(scope)
    ]


def reduce(runs: Runs, scope: Scope) -> Finding:
    """All signals on all streams, the best marked, and the paper's two tables beside ours."""
    results, severities = runs.found(cells(scope)), Severities()
    found: dict[Spot, Found] = {}
    figures: list[Figure] = []
    for place in places(scope):
        kept = {seed: steps for seed in seeds(scope) if (steps := runs.steps(live(place, seed=seed))) is not None}
        if kept:
            severity = severities.of(place.dataset, place.split)
            bare = {seed: runs.steps(live(place, ORIGINAL, seed)) for seed in kept}
            found[place] = mean_over_seeds([associations(kept[seed], bare[seed], severity) for seed in kept])
            if place.split != ID:
                first = min(kept)
                figures.append(_figure(place, kept[first], bare[first], severity))
    lacking = [missing(cells(scope), results), *severities.absent]
    tables = (_all_signals(found, errors) for errors in (ISSUED, BARE))
    sections = (*tables, _over_streams(found), _with_errors(found), _with_severity(found))
    return Finding(
        NAME, TITLE, " ".join([_text(found), *filter(None, lacking)]), sections, tuple(figures), made_from(results)
    )


def _text(found: Mapping[Spot, Found]) -> str:
    away = _away(found)
    parts = (best_signals(away), certificate_or_expected(away), beside_papers(away), signs(away))
    return " ".join((INTRODUCTION, *(sentence for part in parts for sentence in part)))


def _all_signals(found: Mapping[Spot, Found], errors: Mapping[str, str]) -> Section:
    lines = []
    for place, here in found.items():
        winners = {error: best(here, error, SIGNALS | SEVERITIES) for error in errors}
        for name, reads in (SIGNALS | SEVERITIES).items():
            shown, counts = [], ("", "")
            for error in errors:
                one = here.get(f"{name} {error}")
                mark = " *" if winners[error] == name else ""
                shown += [_shown(one, "pearson"), _shown(one, "spearman") + mark]
                counts = (str(one.pairs), str(one.seeds)) if one else counts
            lines.append((*keys_of(place), name, reads, *shown, *counts))
    statistics = (f"{shown} {letter}" for shown in errors.values() for letter in ("r", "rho"))
    return Section(
        f"Every signal and the error of {'what was issued' if errors is ISSUED else 'the bare forecaster'}",
        (
            "Pearson's r and Spearman's rho. * the largest rho on the stream, found after the fact: the largest of a "
            "dozen is large by chance, too.",
            "Neighbouring forecasts share most of their outcome: n steps are some n / H witnesses.",
            "A severity is measured at no more than 200 rows of a stream, the other signals at every step.",
            "Blank: fewer than 10 pairs, or a signal that does not move. Means over seeds.",
        ),
        ("data", "backbone", "H", "split", "signal", "reads", *statistics, "n", "seeds"),
        tuple(lines),
        keys=6,
    )


def _shown(one: Association | None, statistic: str) -> str:
    return number(getattr(one, statistic) if one else None)


def _over_streams(found: Mapping[Spot, Found]) -> Section:
    """No signal is chosen by what it is judged on: each over all streams."""
    lines = []
    for name, reads in (SIGNALS | SEVERITIES).items():
        for words, streams in (("at home", _home(found)), ("shifted", _away(found))):
            ranks = {error: [one[key].spearman for one in streams.values() if (key := f"{name} {error}") in one]
                     for error in ERRORS}  # fmt: skip
            if ranks["mae"]:
                above = sum(rank > 0 for rank in ranks["mae"])
                means = (number(fmean(every) if every else None) for every in ranks.values())
                lines.append((name, reads, words, *means, number(min(ranks["mae"])),
                              f"{above} of {len(ranks['mae'])}"))  # fmt: skip
    return Section(
        "Each signal over all streams",
        ("Means of Spearman's rho over streams; the least with the MAE of what was issued, and where it is above 0.",),
        ("signal", "reads", "streams", *ERRORS.values(), "least", "above 0"),
        tuple(lines),
        keys=3,
    )


def _with_errors(found: Mapping[Spot, Found]) -> Section:
    doubts, lines = Doubts(), []
    for place, here in _away(found).items():
        for error in ERRORS:
            chosen = [CERTIFICATE, EXPECTED, best(here, error, SIGNALS)]
            ours = [here.get(f"{name} {error}") for name in chosen]
            for statistic in STATISTICS:
                theirs = printed_rank(place.dataset, error, statistic)
                apart = (_less(place, one, statistic, theirs) for one in ours)
                lines.append((*keys_of(place), ERRORS[error], statistic, *(_shown(one, statistic) for one in ours),
                              str(chosen[2]), doubts.shown(theirs), *apart))  # fmt: skip
    return Section(
        "Certificate and error beside the paper's",
        (
            "The paper correlates its certificate with the error; it does not say with which backbone, horizon or "
            "split, and draws the error before calibration, that of the bare forecaster. Ours are the shifted "
            "streams, with the errors of what was issued and of the bare forecaster, labels as they mature.",
            "Expected: our expected error, the signal that is made for this. Best: of the method's own signals the one "
            "with the largest rho, found afterwards.",
            HINT,
            NOT_PAPERS,
            *doubts.notes(),
        ),
        (
            "data", "backbone", "H", "split", "error", "statistic", "certificate", "expected", "best", "which", "paper",
            "certificate - paper", "expected - paper", "best - paper",
        ),
        tuple(lines),
        keys=6,
    )  # fmt: skip


def _with_severity(found: Mapping[Spot, Found]) -> Section:
    printed, doubts, lines = diagnostics("dis_shift_corr"), Doubts(), []
    for place, here in _away(found).items():
        for (name, shown), statistic in product(MEASURES.items(), STATISTICS):
            one = here.get(f"{DISAGREEMENT} {name}")
            theirs = printed[paper_dataset(place.dataset), name, statistic]
            lines.append((*keys_of(place), shown, statistic, _shown(one, statistic), doubts.shown(theirs),
                          _less(place, one, statistic, theirs), str(one.pairs) if one else ""))  # fmt: skip
    return Section(
        "Disagreement and severity of the shift beside the paper's",
        (
            "The disagreement above the source's against each severity, on the shifted streams.",
            HINT,
            NOT_PAPERS,
            *doubts.notes(),
        ),
        ("data", "backbone", "H", "split", "severity", "statistic", "ours", "paper", "ours - paper", "n"),
        tuple(lines),
        keys=6,
    )


def _less(place: Spot, one: Association | None, statistic: str, theirs: Number) -> str:
    """Ours less the paper's: across a change of sign a ratio of correlations says nothing."""
    return difference(place.dataset, getattr(one, statistic) if one else None, theirs)


def _away(found: Mapping[Spot, Found]) -> dict[Spot, Found]:
    return {place: one for place, one in found.items() if place.split != ID}


def _home(found: Mapping[Spot, Found]) -> dict[Spot, Found]:
    return {place: one for place, one in found.items() if place.split == ID}


def _figure(place: Spot, steps: Steps, bare: Steps | None, severity: Severity | None) -> Figure:
    where, measured, known = signals(steps, severity)
    errors = {"issued": steps["mae"]} | ({"bare forecaster": bare["mae"]} if bare is not None else {})
    panels = [
        Panel(name, name, "MAE", tuple(cloud(whose, known[name], error) for whose, error in errors.items()))
        for name in (CERTIFICATE, EXPECTED, "novelty")
        if name in known
    ]
    if DISAGREEMENT in known and measured:
        clouds = [cloud(shown, known[DISAGREEMENT][where], measured[name]) for name, shown in MEASURES.items()]
        panels.append(Panel("Disagreement and severity", "disagreement", "severity", tuple(clouds)))
    return Figure(
        f"correlation-{place.dataset}-{place.split}-{place.horizon}",
        f"{place.dataset}, {place.split}, {place.backbone}, H = {place.horizon}",
        "Each point is a forecast of one seed; thinned evenly.",
        tuple(panels),
    )


ANALYSIS = Analysis(
    NAME,
    TITLE,
    ("cert_error_corr", "dis_shift_corr", "correlation_scatter_diagnostics"),
    cells,
    reduce,
    per_step=True,
)
