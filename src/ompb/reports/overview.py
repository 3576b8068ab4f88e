"""One HTML file that tells of many series: all of them together, and the few best and worst."""

from __future__ import annotations

from ompb.reports.figures import error_figure
from ompb.reports.many import (
    HEAD,
    better_and_worse,
    cells_of,
    left_out_told,
    notes_told,
    remarks,
    seasons,
    units_of_many,
)
from ompb.reports.parts import conditions, framed, listing, page, paragraph, score_table, settings_table, table
from ompb.reports.ratio_figure import LARGEST, ratio_figure
from ompb.reports.slim import slim
from ompb.reports.summary import columns_sentence
from ompb.studies import SeriesScores, Studies

RATIO_CAPTION = (
    "How many series have which ratio of errors: left of 1 the correction lowered the error of the bare forecaster, "
    "to the right it raised it."
)
BEYOND_CAPTION = f" Ratios of {LARGEST:g} and more are in the last bar."
COURSE_CAPTION = (
    "{name}: how wrong the forecasts were, averaged over the last {season} rows. The further the solid line lies below "
    "the dashed one, the more the correction helps."
)


def html_overview(studies: Studies) -> str:
    """The report of many series as one self-contained HTML page."""
    sections = {
        "In short": _in_short(studies),
        "Scores": paragraph(f"{units_of_many()} {columns_sentence()}") + score_table(studies.scores()),
        "Best and worst": _best_and_worst(studies),
        "What is guaranteed, and what is not": _guarantees(studies),
        "Settings": _settings(studies),
    }
    return page(studies.title, "Frozen forecasters, corrected online by ompb as outcomes became known.", sections)


def _in_short(studies: Studies) -> str:
    found = listing([better_and_worse(studies), *remarks(studies)])
    told = [*left_out_told(studies), *notes_told(studies)]
    return found + "".join(map(paragraph, told))


def _best_and_worst(studies: Studies) -> str:
    if not studies.ranked:
        return paragraph("In no series is there an error to compare with.")
    beyond = BEYOND_CAPTION if studies.ranked[-1].ratio > LARGEST else ""
    parts = [slim(framed(ratio_figure(studies), RATIO_CAPTION + beyond, 1))]
    number = 2
    for heading, lines in (("Gained most", studies.best), ("Gained least", studies.worst)):
        if lines:
            parts.append(f"<h3>{heading}</h3>{table(HEAD, map(cells_of, lines))}")
            parts += [_course(studies, line, number + place) for place, line in enumerate(lines)]
            number += len(lines)
    return "\n".join([*parts, paragraph("All series are in series.csv and, with their warnings, in summary.json.")])


def _course(studies: Studies, line: SeriesScores, number: int) -> str:
    study = studies[line.id]
    if len(study.run.origins) == 1:
        return ""  # a single forecast has no course over time
    caption = COURSE_CAPTION.format(name=line.id, season=study.smoothing)
    return framed(error_figure(study), caption, number)


def _guarantees(studies: Studies) -> str:
    certificate = studies.first.run.last_certificate
    if certificate is None:
        return paragraph("These runs were made without certificates (option certificate = false).")
    says = (
        "Each series has a certificate of its own, made from its own source; that of its last forecast is in "
        "summary.json with all its terms. No certificate speaks of several series at once."
    )
    return paragraph(says) + conditions(certificate)


def _settings(studies: Studies) -> str:
    calibrator = studies.first.calibrator
    facts = {
        **studies.facts,
        "context": f"{calibrator.context} rows",
        "horizon": f"{calibrator.horizon} rows",
        "season": seasons(studies),
    }
    return settings_table(facts, calibrator.settings)
