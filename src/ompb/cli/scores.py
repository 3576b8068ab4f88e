"""What a study found, or many of them, on the screen."""

from __future__ import annotations

from ompb.cli.console import say, show_table
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
from ompb.reports.summary import COLUMNS, columns_sentence, three_decimals, units_sentence, vacuous_sentence
from ompb.studies import OMPB, PhaseScores, Studies, Study


def show_study(study: Study) -> None:
    """Notes, scores, and warnings of one series."""
    for note in study.notes:
        say(note)
    say(
        f"Source: {study.facts['source']}. Season: {study.calibrator.season or 'none'}. "
        f"Forecasts issued: {len(study.run.origins)}."
    )
    show_scores(study)
    if sentence := study.hidden_sentence():
        say(sentence)
    for sentence in study.warnings_told():
        say(sentence)


def show_scores(study: Study) -> None:
    """One table per phase, what it is measured in, and what to make of a certificate above 1."""
    for phase, lines in study.scores().items():
        _show_lines(phase, lines)
    say(units_sentence(study))
    say(columns_sentence())
    if sentence := vacuous_sentence(study):
        say(sentence)


def show_studies(studies: Studies) -> None:
    """Notes, mean scores, and the few best and worst of many series."""
    for note in (*notes_told(studies), *left_out_told(studies)):
        say(note)
    issued = sum(line.forecasts for line in studies.lines)
    say(f"Source: {studies.facts['source']}. Season: {seasons(studies)}. Forecasts issued: {issued}.")
    _show_lines(f"{studies.first.phases[0].name}, mean of {len(studies)} series", studies.scores())
    say(units_of_many())
    say(columns_sentence())
    say(better_and_worse(studies))
    for sentence in remarks(studies):
        say(sentence)
    for title, lines in (("gained most", studies.best), ("gained least", studies.worst)):
        if lines:
            show_table(title, HEAD, map(cells_of, lines))


def _show_lines(title: str, lines: list[PhaseScores]) -> None:
    cells = [(line.name, *(three_decimals(getattr(line, name)) for name in COLUMNS)) for line in lines]
    show_table(title, ("", *COLUMNS.values()), cells, strong=OMPB)
