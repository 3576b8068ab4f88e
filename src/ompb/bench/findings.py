"""What an analysis makes of finished cells: tables and figures as plain values, kept as JSON.

A table's cells are the words that are shown. A figure is a row of panels of lines, points, bars or bands: what is
drawn, not how. So a finding can be printed, drawn or put on a page without the runs behind it.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from ompb.errors import FormatError
from ompb.floor.files import replacing

Mark: TypeAlias = Literal["line", "points", "bars", "band"]


@dataclass(frozen=True, slots=True)
class Section:
    """One table. Its first ``keys`` columns say what a line is about, the others are numbers."""

    title: str
    notes: tuple[str, ...]
    headings: tuple[str, ...]
    lines: tuple[tuple[str, ...], ...]
    keys: int = 4


@dataclass(frozen=True, slots=True)
class Curve:
    """One line, cloud, set of bars or band of a panel. A band lies between ``y`` and ``top``."""

    name: str
    x: tuple[float | str, ...]
    y: tuple[float | None, ...]  # None where there is nothing
    mark: Mark = "line"
    top: tuple[float | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One pair of axes."""

    title: str
    x_label: str
    y_label: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True)
class Figure:
    """Panels side by side, with a sentence on what they show."""

    name: str  # for files and links
    title: str
    caption: str
    panels: tuple[Panel, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """All that an analysis shows, and what it was made from."""

    analysis: str
    title: str
    text: str  # what to see in it, a paragraph
    sections: tuple[Section, ...] = ()
    figures: tuple[Figure, ...] = ()
    made_from: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # cells, commits, devices

    def write(self, path: Path) -> None:
        """As JSON, whole or not at all."""
        with replacing(path, parents=True) as part:
            part.write_text(json.dumps(dataclasses.asdict(self), indent=0, allow_nan=False) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Finding:
        """What `write` wrote. Raises `FormatError`."""
        try:
            tree = json.loads(path.read_text(encoding="utf-8"))
            return cls(
                **{
                    **tree,
                    "sections": tuple(_section(section) for section in tree["sections"]),
                    "figures": tuple(_figure(figure) for figure in tree["figures"]),
                }
            )
        except (OSError, KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{path} is not a finding ({error}); write it with `ompb bench export`.") from error


def _section(tree: Mapping[str, Any]) -> Section:
    lines = tuple(tuple(line) for line in tree["lines"])
    return Section(**{**tree, "notes": tuple(tree["notes"]), "headings": tuple(tree["headings"]), "lines": lines})


def _figure(tree: Mapping[str, Any]) -> Figure:
    return Figure(**{**tree, "panels": tuple(_panel(panel) for panel in tree["panels"])})


def _panel(tree: Mapping[str, Any]) -> Panel:
    curves = (
        Curve(**{**curve, **{name: tuple(curve[name]) for name in ("x", "y", "top")}}) for curve in tree["curves"]
    )
    return Panel(**{**tree, "curves": tuple(curves)})
