"""What a finding was made from, what it lacks, and data that may not be at hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from string import ascii_lowercase
from typing import Any

from ompb.bench.store import Cell, Result
from ompb.datasets.benchmark import BenchmarkData, load
from ompb.datasets.public import data_folder
from ompb.errors import InputError
from ompb.paper.printed import Number

MOST_NAMED = 5  # missing cells that are named
NOTHING = "-"  # a number that is not there


def made_from(results: Sequence[Result]) -> dict[str, Any]:
    """The cells, and the commits and devices they were run with."""
    return {
        "cells": [str(result.cell) for result in results],
        "commits": sorted({result.commit for result in results if result.commit}),
        "devices": sorted({result.device for result in results}),
    }


def missing(wanted: Sequence[Cell], found: Sequence[Result]) -> str:
    """Which cells are not there, in words; empty if none."""
    there = {result.cell for result in found}
    absent = [str(cell) for cell in wanted if cell not in there]
    if not absent:
        return ""
    more = f" and {len(absent) - MOST_NAMED} more" if len(absent) > MOST_NAMED else ""
    return f"{len(absent)} of {len(wanted)} cells are missing: {'; '.join(absent[:MOST_NAMED])}{more}."


def data_at_hand(dataset: str) -> BenchmarkData | str:
    """The data from the folder OMPB_DATA names, else from "data"; else why it is not there, in words."""
    try:
        return load(dataset)
    except (InputError, OSError) as error:
        return f"{dataset} was not found in the folder {data_folder(None).name!r} ({type(error).__name__})."


def number(value: float | None, digits: int = 3) -> str:
    """As tables show it.

    >>> number(0.12345), number(None), number(float("nan"))
    ('0.123', '-', '-')
    """
    return NOTHING if value is None or math.isnan(value) else f"{value:.{digits}f}"


def ratio(ours: float | None, printed: Number) -> str:
    """Ours by the printed number.

    >>> ratio(0.5, Number("0.25"))
    '2.00'
    """
    return number(None if ours is None or not float(printed) else ours / float(printed), 2)


@dataclass(frozen=True, slots=True)
class Doubts:
    """Marks on printed numbers that are not to be trusted, and what the marks mean.

    >>> doubts = Doubts()
    >>> doubts.shown(Number("0.5", "It is below its own floor.")), doubts.shown(Number("0.7"))
    ('0.5 [a]', '0.7')
    >>> doubts.notes
    ('[a] It is below its own floor.',)
    """

    marks: dict[str, str] = field(default_factory=dict)  # by doubt

    def shown(self, printed: Number) -> str:
        """A printed number with its mark."""
        if printed.doubt is None:
            return printed.value
        mark = self.marks.setdefault(printed.doubt, ascii_lowercase[len(self.marks)])
        return f"{printed.value} [{mark}]"

    @property
    def notes(self) -> tuple[str, ...]:
        """One for each mark."""
        return tuple(f"[{mark}] {doubt}" for doubt, mark in self.marks.items())
