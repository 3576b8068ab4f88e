"""The scores of a study on the screen."""

from __future__ import annotations

from ompb.cli.console import say, show_table
from ompb.reports.summary import COLUMNS, columns_sentence, three_decimals, units_sentence, vacuous_sentence
from ompb.studies import OMPB, Study


def show_scores(study: Study) -> None:
    """One table per phase, what it is measured in, and what to make of a certificate above 1."""
    for phase, lines in study.scores().items():
        cells = [(line.name, *(three_decimals(getattr(line, name)) for name in COLUMNS)) for line in lines]
        show_table(phase, ("", *COLUMNS.values()), cells, strong=OMPB)
    say(units_sentence(study))
    say(columns_sentence())
    if sentence := vacuous_sentence(study):
        say(sentence)
