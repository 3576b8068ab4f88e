"""What a row of a stream costs a method, as `benchmarks/row_cost.py` has measured it: alone, on one processor.

Times that cells note include waiting for whatever else their machine did; these compare.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from ompb.errors import FormatError
from ompb.floor.files import replacing

FILE = "row-cost.csv"  # in a folder of results
HEADINGS = ("dataset", "backbone", "horizon", "method", "milliseconds", "megabytes", "commit", "versions")
DIGITS = 4

Sizes: TypeAlias = tuple[str, str, int]  # data set, backbone as the paper names it, horizon: they decide a cost
Key: TypeAlias = tuple[Sizes, str]  # and the method


def in_short(value: float) -> str:
    """Three digits, or all of a whole number's.

    >>> in_short(1.3541), in_short(19912.3)
    ('1.35', '19912')
    """
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one row."""

    milliseconds: float  # of one processor
    megabytes: float  # that the step holds at most, beside what the method keeps


@dataclass(frozen=True)
class Costs:
    """Those of methods at sizes."""

    found: Mapping[Key, Cost] = field(default_factory=dict)
    commit: str = ""  # that measured them
    versions: str = ""

    def of(self, sizes: Sizes, method: str) -> Cost | None:
        """What a method costs; None where nobody has measured it."""
        return self.found.get((sizes, method))

    def notes(self) -> tuple[str, ...]:
        """How they came about, or why there are none."""
        if not self.found:
            return (f"Times a row and memory are blank: there is no {FILE} among the results.",)
        made = f"`benchmarks/row_cost.py` on one processor, {self.versions}, commit {self.commit}"
        return (f"Times a row and memory: {made}.",)

    def write(self, path: Path) -> None:
        """As a table, a line for each."""
        with replacing(path, parents=True) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(HEADINGS)
            for (sizes, method), cost in self.found.items():
                numbers = (f"{value:.{DIGITS}g}" for value in (cost.milliseconds, cost.megabytes))
                writer.writerow((*sizes, method, *numbers, self.commit, self.versions))

    @classmethod
    def read(cls, path: Path) -> Costs:
        """What `write` wrote; empty where there is no file. Raises `FormatError`."""
        if not path.exists():
            return cls()
        try:
            with path.open(encoding="utf-8", newline="") as file:
                lines = list(csv.DictReader(file))
            found = {
                ((line["dataset"], line["backbone"], int(line["horizon"])), line["method"]): Cost(
                    float(line["milliseconds"]), float(line["megabytes"])
                )
                for line in lines
            }
            return cls(found, lines[0]["commit"], lines[0]["versions"])
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise FormatError(
                f"{path} is not a table of costs ({error}); its columns are {', '.join(HEADINGS)}: "
                "write it with benchmarks/row_cost.py."
            ) from error
