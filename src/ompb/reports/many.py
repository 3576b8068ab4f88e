"""What the studies of many series found together, as plain data and in words."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ompb.floor.names import counted, listed
from ompb.reports.summary import found_in, plain, shared, three_decimals
from ompb.studies import BARE, OMPB, SeriesScores, Studies
from ompb.studies.result import disbelieved

TOLD = 5  # series that are left out, and notes, that are told in full
DECIMALS = 4  # of scores in files
EACH = "series"  # where a summary has what was found in each of them
# The headings of tables of series.
HEAD = ("series", "rows", "MAE bare", "MAE ompb", "ratio", "in 80 %", "certificate", "warnings")


def cells_of(line: SeriesScores) -> tuple[str, ...]:
    """A series as a line of a table under `HEAD`."""
    scores = (line.mae_bare, line.mae_ompb, line.ratio, line.coverage80, line.certificate)
    return (str(line.id), str(line.rows), *map(three_decimals, scores), str(line.warnings))


def units_of_many() -> str:
    """What the errors in a table of scores over many series are measured in."""
    return (
        "Means over the series, each of which weighs alike. MAE and widths are in standard deviations of the source of "
        "each series, MSE in their squares."
    )


def better_and_worse(studies: Studies) -> str:
    """In how many series ompb is better and worse than the bare forecaster, and by how much it mostly is."""
    ratios = _ratios(studies)
    if not ratios.size:
        return "In no series is there an error to compare with."
    unknown = len(studies) - len(ratios)
    rest = f" In {unknown} there is no error to compare with." if unknown else ""
    return (
        f"ompb is better than the bare forecaster in {int((ratios < 1).sum())} of {len(studies)} series and worse in "
        f"{int((ratios > 1).sum())}; the median of the ratio of their MAE is {np.median(ratios):.3f}.{rest}"
    )


def remarks(studies: Studies) -> list[str]:
    """What else there is to say of scores, certificates, cells and warnings."""
    best = min(studies.scores(), key=lambda line: line.mae)
    first = [] if best.name in (BARE, OMPB) else [f"The {best.name} did best in the mean ({best.mae:.3f})."]
    lacking = [name for name in studies.names if len(studies.having(name)) < len(studies)]
    some = [_of_some(studies, name) for name in lacking]
    return [*first, *some, *_vacuous(studies), *_hidden(studies), _warnings(studies)]


def left_out_told(studies: Studies) -> list[str]:
    """Which series have no study, and why; of very many, the names alone."""
    told = [f"Series {one!r} is left out: {why}" for one, why in list(studies.left_out.items())[:TOLD]]
    more = [str(one) for one in list(studies.left_out)[TOLD:]]
    rest = f"{len(more)} more series are left out ({listed(more)}); summary.json says why." if more else ""
    return [*told, rest] if rest else told


def notes_told(studies: Studies) -> list[str]:
    """What was done to the series; of very many notes the first."""
    head, notes = studies.notes[:1], studies.notes[1:]
    more = len(notes) - TOLD
    return [
        *head,
        *notes[:TOLD],
        *([f"... and {counted(more, 'note')} more; summary.json has all."] if more > 0 else []),
    ]


def seasons(studies: Studies) -> str:
    """How many series have which season, the most frequent first."""
    found = Counter(study.calibrator.season for study in studies.values()).most_common()
    if len(found) == 1:
        return f"{found[0][0]} rows" if found[0][0] else "none"
    return listed([f"{season or 'none'} in {count}" for season, count in found], TOLD)


def summary_of_many(studies: Studies) -> dict[str, Any]:
    """Everything above and each series as one tree of plain values, ready for JSON."""
    ratios = _ratios(studies)
    (phase,) = studies.first.phases
    tree = {
        "title": studies.title,
        **shared(studies.first),
        "facts": dict(studies.facts),
        "notes": list(studies.notes),
        "scores": {phase.name: [dataclasses.asdict(line) for line in studies.scores()]},
        "better": int((ratios < 1).sum()),
        "worse": int((ratios > 1).sum()),
        "median_ratio": float(np.median(ratios)) if ratios.size else None,
        "remarks": remarks(studies),
        "left_out": {str(one): why for one, why in studies.left_out.items()},
        EACH: {str(one): found_in(study) for one, study in studies.items()},
    }
    return {name: plain(value) for name, value in tree.items()}


def series_columns(studies: Studies) -> dict[str, NDArray[Any]]:
    """One line per series, in flat columns."""
    lines = studies.lines

    def scores(name: str) -> NDArray[Any]:
        return np.round(np.array([getattr(line, name) for line in lines], dtype=np.float64), DECIMALS)

    return {
        "unique_id": np.array([str(line.id) for line in lines]),
        "rows": np.array([line.rows for line in lines]),
        "forecasts": np.array([line.forecasts for line in lines]),
        "mae_bare": scores("mae_bare"),
        "mae_ompb": scores("mae_ompb"),
        "ratio": scores("ratio"),
        "coverage_80": scores("coverage80"),
        "coverage_95": scores("coverage95"),
        "certificate": scores("certificate"),
        "warnings": np.array([line.warnings for line in lines]),
    }


def _ratios(studies: Studies) -> NDArray[np.float64]:
    return np.array([line.ratio for line in studies.ranked])


def _of_some(studies: Studies, name: str) -> str:
    """A reference that some series lack is not in the table: its mean would be one over other series."""
    its, ours = studies.mean(name), studies.mean(OMPB, among=name)
    return (
        f"{len(studies.having(name))} of {len(studies)} series have a {name}: over those its MAE is {its.mae:.3f}, and "
        f"that of ompb {ours.mae:.3f}."
    )


def _vacuous(studies: Studies) -> list[str]:
    count = sum(line.certificate is not None and line.certificate >= 1 for line in studies.lines)
    if not count:
        return []
    return [
        f"In {count} of {len(studies)} series the certificate is 1 or more on average, and losses lie between 0 and 1: "
        "there it excludes nothing. A longer source, more unseen rows of it (--unseen) or a shorter horizon lower it."
    ]


def _hidden(studies: Studies) -> list[str]:
    cells = {str(one): int(study.run.hidden.sum()) for one, study in studies.items() if study.run.hidden.any()}
    if not cells:
        return []
    where = listed([f"{one}: {count}" for one, count in cells.items()])
    return [disbelieved(sum(cells.values()), where)]


def _warnings(studies: Studies) -> str:
    warned = sorted((line for line in studies.lines if line.warnings), key=lambda line: -line.warnings)
    if not warned:
        return "No warnings."
    total = sum(line.warnings for line in warned)
    where = listed([f"{line.id}: {line.warnings}" for line in warned], TOLD)
    return f"{counted(total, 'episode')} of warnings in {len(warned)} of {len(studies)} series ({where})."
