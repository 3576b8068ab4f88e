"""One HTML file that tells the whole story of a run: no script, no network, figures inside."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

from ompb.core.record import RAREST
from ompb.episodes import Episode
from ompb.floor.names import listed
from ompb.reports.figures import certificate_figure, error_figure, fan_figure, gate_figure, warning_figure
from ompb.reports.parts import conditions, framed, listing, page, paragraph, score_table, settings_table, table
from ompb.reports.summary import (
    LARGE_ERROR,
    realised_sentence,
    share_above_sentence,
    units_sentence,
    vacuous_sentence,
)
from ompb.studies import BARE, OMPB, PhaseScores, Study
from ompb.types import Certificate

# Episodes of warnings in the table.
LISTED = 20

ERROR_CAPTION = (
    "How wrong the forecasts were, averaged over the last {season} rows: lower is better. The further the solid line "
    "lies below the dashed one, the more the correction helps."
)
CERTIFICATE_CAPTION = (
    "What the certificate said before any outcome was known (coloured, the sum of its three terms) and the loss that "
    "followed (black, averaged over {season} forecasts, so it fluctuates). {above} Where black stays above the "
    "colours, risk minus half the disagreement is no longer as it was on the source, which no certificate can see "
    "before outcomes are known. Above the dashed line the certificate excludes nothing."
)
GATE_CAPTION = (
    "How far the correction is trusted: at 0 the bare forecast is issued, at 1 the full correction. It is at 0 before "
    "any outcome, rises where corrections have recently paid off, returns to 0 where they have clearly done harm, and "
    "rests in between where they make no difference."
)
WARNING_CAPTION = (
    "When the stream was not what it was. Coloured spans are episodes; each mark is a signal at the row where its "
    "warning began, the higher the rarer in a calm stream."
)
FAN_CAPTION = (
    "Some forecasts of {channel}: the last of each phase, or of each third of the run. Dots inside the bands are "
    "outcomes that the intervals foresaw."
)


def html_report(study: Study) -> str:
    """The report as one self-contained HTML page."""
    scores = study.scores()
    sections = {
        "In short": _in_short(study, scores),
        "Scores": _scores(study, scores),
        "Warnings": _warnings(study),
        "Pictures": _figures(study),
        "What is guaranteed, and what is not": _guarantees(study),
        "Settings": _settings(study),
    }
    return page(study.title, "A frozen forecaster, corrected online by ompb as outcomes became known.", sections)


# In short


def _in_short(study: Study, scores: Mapping[str, list[PhaseScores]]) -> str:
    intro = f"{len(study.run.origins)} forecasts of {study.calibrator.horizon} rows ahead were issued and compared."
    verdicts = (_verdict(name, lines) for name, lines in scores.items())
    remarks = [remark for remark in (vacuous_sentence(study), study.hidden_sentence(), *study.notes) if remark]
    return paragraph(intro) + listing(verdicts) + "".join(map(paragraph, remarks))


def _verdict(phase: str, lines: list[PhaseScores]) -> str:
    bare, ours = lines[0], lines[-1]
    if not bare.mae > 0:  # NaN without a known outcome; 0 leaves nothing to compare
        return f"{phase}: there is no error to compare with."
    change = 100 * (ours.mae / bare.mae - 1)
    verb = "cut" if change < 0 else "raised"
    best = min(lines, key=lambda line: line.mae)
    remark = "" if best.name in (OMPB, BARE) else f" The {best.name} did best here ({best.mae:.3f})."
    return (
        f"{phase}: ompb {verb} the mean absolute error of the bare forecaster by {abs(change):.1f} %, "
        f"from {bare.mae:.3f} to {ours.mae:.3f} source standard deviations.{remark}"
    )


# Scores


def _scores(study: Study, scores: Mapping[str, list[PhaseScores]]) -> str:
    explanation = (
        f"{units_sentence(study)} Smaller errors are better. In 80 % and in 95 %: the share of outcomes inside those "
        "intervals, best near 0.80 and 0.95. Certificate and gate: means over the forecasts issued in the phase. An "
        "outcome counts for the phase it lies in."
    )
    tables = (f"<h3>{escape(name)}</h3>\n{score_table(lines)}" for name, lines in scores.items())
    return paragraph(explanation) + "\n".join(tables)


# Warnings


def _warnings(study: Study) -> str:
    rows, episodes = study.calibrator.settings.warning_rows, study.run.warnings
    explanation = (
        f"A signal gives a warning where it does what a calm stream does less than once in {rows:,.0f} rows, by its "
        "own last rows and the end of the source. Inputs, level and novelty (what the forecaster says of the newest "
        "rows is not what memory says) are seen before any outcome is known, errors with the first outcomes."
    )
    if not episodes:
        return paragraph(explanation) + paragraph("There was none in this run.")
    strongest = study.strongest_episodes(LISTED)
    rest = len(episodes) - len(strongest)
    more = paragraph(f"These are the {LISTED} strongest; {rest} more were weaker.") if rest else ""
    head = ("from", "to", "seen in", "once in, rows", "channels")
    lines = [_episode_line(study, episode) for episode in strongest]
    return f"{paragraph(explanation)}{table(head, lines, words=True)}{more}"


def _episode_line(study: Study, episode: Episode) -> tuple[str, ...]:
    ends = (study.clock.shown(study.times[row]) for row in (episode.since, episode.newest))
    strongest = episode.alerts[0]
    often = "over a million" if strongest.rows_between > 0.99 * RAREST else f"{strongest.rows_between:,.0f}"
    seen = ", ".join(alert.signal for alert in episode.alerts)
    return (*ends, seen, often, listed(strongest.channels))


# Figures


def _figures(study: Study) -> str:
    drawings = [(error_figure, ERROR_CAPTION), (gate_figure, GATE_CAPTION), (fan_figure, FAN_CAPTION)]
    if study.run.certificate:
        drawings.insert(1, (certificate_figure, CERTIFICATE_CAPTION))
    if study.run.warnings:
        drawings.insert(-1, (warning_figure, WARNING_CAPTION))
    if len(study.run.origins) == 1:
        drawings = drawings[-1:]  # a single forecast has no course over time
    words = {"season": study.smoothing, "channel": study.run.names[0], "above": share_above_sentence(study)}
    return "\n".join(
        framed(draw(study), caption.format(**words), number) for number, (draw, caption) in enumerate(drawings, 1)
    )


# Guarantees


def _guarantees(study: Study) -> str:
    certificate = study.run.last_certificate
    after = f"<h3>After outcomes are known</h3>{paragraph(realised_sentence(study))}"
    if certificate is None:
        return paragraph("This run was made without certificates (option certificate = false).") + after
    return _certificate(certificate) + after


def _certificate(certificate: Certificate) -> str:
    vacuous = certificate.value >= 1
    remark = " At 1 or more it excludes nothing; more source rows kept for it would lower it." if vacuous else ""
    says = (
        f"The certificate of the last forecast is {certificate.value:.3f}: source risk {certificate.source_risk:.3f}, "
        f"complexity {certificate.gamma:.3f}, half the disagreement {certificate.disagreement / 2:.3f}. It rests on "
        f"{certificate.windows} source windows that "
        f"{'the forecaster was trained on' if certificate.in_sample else 'the forecaster never saw'}.{remark}"
    )
    return (
        f"<h3>Before outcomes are known</h3>{paragraph(says)}{paragraph(certificate.confidence)}"
        f"{paragraph(str(certificate.tail_risk(LARGE_ERROR)))}"
        f"{conditions(certificate)}"
    )


# Settings


def _settings(study: Study) -> str:
    calibrator = study.calibrator
    names = ", ".join(calibrator.names[:20]) + (", ..." if len(calibrator.names) > 20 else "")
    facts = {
        **study.facts,
        "context": f"{calibrator.context} rows",
        "horizon": f"{calibrator.horizon} rows",
        "season": f"{calibrator.season} rows" if calibrator.season else "none",
        "channels": f"{len(calibrator.names)}: {names}",
    }
    return settings_table(facts, calibrator.settings)
