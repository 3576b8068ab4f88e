"""The scores of a study on the screen."""

from __future__ import annotations

from ompb.cli.console import show_table
from ompb.reports.summary import COLUMNS, three_decimals
from ompb.studies import OMPB, Study


def show_scores(study: Study) -> None:
    """One table per phase."""
    for phase, lines in study.scores().items():
        cells = [(line.name, *(three_decimals(getattr(line, name)) for name in COLUMNS)) for line in lines]
        show_table(phase, ("", *COLUMNS.values()), cells, strong=OMPB)
