"""Draw docs/step.svg and docs/fit.svg from the lists of hops in docs/how-it-works.md.

    python benchmarks/draw_hops.py

A picture follows ``![...](NAME.svg)``; below it, each heading ``###`` is a column and each numbered item a hop:
``1. **words** `function`, [file](../src/ompb/file)``. The pictures need nothing from outside and have a dark mode.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "how-it-works.md"

PICTURE = re.compile(r"^!\[(.+?)\]\((\w+)\.svg\)$", re.MULTILINE)
HOP = re.compile(r"^(\d+)\. \*\*(.+?)\*\* `([\w.]+)`,\s+\[([\w/]+\.py)\]\(\.\./src/ompb/([\w/]+)\.py\)", re.MULTILINE)
# From hop to hop, against the order of time, and what travels there.
LOOPS = {"step": ("Ledger.issue", "Ledger.page", "waits until its rows arrive")}

WIDTH, COLUMN, GAP, MARGIN = 1060, 304, 54, 20
TOP, HEAD, ROW, FOOT = 20, 58, 62, 20  # heights
DARK, LIGHT = "#0d1117", "#ffffff"
# fill of a column, its line, numbers and heading: light, then dark
TINTS = (
    (("#eff5ff", "#c3d8fb", "#1d5fd1"), ("#101d33", "#24436f", "#7fb0ff")),
    (("#f6f1ff", "#dccbfb", "#7440c4"), ("#1d1531", "#46326f", "#c3a2ff")),
    (("#ecf8f2", "#b5e2cb", "#0b7a50"), ("#0c2219", "#1d5540", "#5fd6a2")),
)


@dataclass(frozen=True)
class Hop:
    """One function on the way."""

    number: int
    words: str
    function: str  # within its module
    module: str  # dotted


@dataclass(frozen=True)
class Walk:
    """A picture: columns of hops."""

    name: str
    title: str
    columns: tuple[tuple[str, tuple[Hop, ...]], ...]

    @property
    def hops(self) -> tuple[Hop, ...]:
        """All of them, in order."""
        return tuple(hop for _, hops in self.columns for hop in hops)


def walks(page: str) -> Iterator[Walk]:
    """The walks that a page describes."""
    for section in re.split(r"^## ", page, flags=re.MULTILINE):
        picture = PICTURE.search(section)
        if picture is not None:
            columns = re.split(r"^### ", section[picture.end() :], flags=re.MULTILINE)[1:]
            yield Walk(picture[2], picture[1], tuple(map(_column, columns)))


def _column(text: str) -> tuple[str, tuple[Hop, ...]]:
    hops = (
        Hop(int(number), words, function, "ompb." + path.replace("/", "."))
        for number, words, function, _, path in HOP.findall(text)
    )
    return text.partition("\n")[0], tuple(hops)


def draw(walk: Walk) -> str:
    """The picture of a walk."""
    rows = max(len(hops) for _, hops in walk.columns)
    height = TOP + HEAD + ROW * rows + FOOT
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="title">',
        f'<title id="title">{escape(walk.title)}</title>',
        f"<style>{_style()}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}" rx="14"/>',
    ]
    for place, (heading, hops) in enumerate(walk.columns):
        parts += _draw_column(place, heading, hops, height - TOP - FOOT)
    if walk.name in LOOPS:
        parts += _draw_loop(walk, *LOOPS[walk.name])
    return "\n".join([*parts, "</svg>"]) + "\n"


def _draw_column(place: int, heading: str, hops: Sequence[Hop], height: int) -> Iterator[str]:
    left, x = _left(place), _left(place) + 33
    yield f'<rect class="box t{place}" x="{left}" y="{TOP}" width="{COLUMN}" height="{height}" rx="12"/>'
    yield f'<text class="heading n{place}" x="{left + 20}" y="{TOP + 36}">{escape(heading)}</text>'
    if len(hops) > 1:
        yield f'<path class="thread l{place}" d="M{x} {_middle(0)}V{_middle(len(hops) - 1)}"/>'
    for row, hop in enumerate(hops):
        y = _middle(row)
        yield f'<circle class="dot f{place}" cx="{x}" cy="{y}" r="13"/>'
        yield f'<text class="number" x="{x}" y="{y + 4.5}">{hop.number}</text>'
        yield f'<text class="words" x="{x + 25}" y="{y - 4}">{escape(hop.words)}</text>'
        yield f'<text class="code" x="{x + 25}" y="{y + 15}">{escape(hop.function)}</text>'
    if place:
        yield _arrow(f"M{left - GAP + 8} {TOP + 31}", left - 8, TOP + 31, back=-8)


def _draw_loop(walk: Walk, start: str, end: str, words: str) -> Iterator[str]:
    """An arrow from a hop of a later column back to one of the column before it."""
    (later, first), (earlier, last) = _find(walk, start), _find(walk, end)
    x, low, high, turn = _left(later) - GAP // 2 + 8, _middle(first), _middle(last), 12
    corners = f"H{x + turn}Q{x} {low} {x} {low - turn}V{high + turn}Q{x} {high} {x - turn} {high}"
    yield _arrow(f"M{_left(later) + 14} {low}{corners}", _left(earlier) + COLUMN - 24, high, back=8)
    yield f'<text class="note" transform="translate({x - 9} {(low + high) // 2}) rotate(-90)">{escape(words)}</text>'


def _arrow(path: str, x: int, y: int, back: int) -> str:
    """A line that ends level at (x, y), with a head whose barbs lie ``back`` behind it."""
    return f'<path class="arrow" d="{path}H{x}M{x + back} {y - 5}L{x} {y}L{x + back} {y + 5}"/>'


def _find(walk: Walk, function: str) -> tuple[int, int]:
    """Column and row of a function's hop."""
    for place, (_, hops) in enumerate(walk.columns):
        for row, hop in enumerate(hops):
            if hop.function == function:
                return place, row
    raise LookupError(f"{walk.name} has no hop {function}")


def _left(place: int) -> int:
    return MARGIN + place * (COLUMN + GAP)


def _middle(row: int) -> int:
    return TOP + HEAD + row * ROW + ROW // 2 - 4


def _style() -> str:
    common = (
        "text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif}"
        ".heading{font-size:18px;font-weight:600}"
        ".words{font-size:15px;font-weight:500}"
        ".code{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:13px}"
        ".number{font-size:12.5px;font-weight:600;text-anchor:middle}"
        ".note{font-size:12.5px;text-anchor:middle}"
        ".box{stroke-width:1.2}.thread{stroke-width:2;fill:none}"
        ".arrow{fill:none;stroke-width:1.8;stroke-linecap:round;stroke-linejoin:round}"
    )
    return f"{common}{_colours(0)}@media(prefers-color-scheme:dark){{{_colours(1)}}}"


def _colours(mode: int) -> str:
    page, ink, quiet = ((LIGHT, "#1b2330", "#566173"), (DARK, "#e8edf4", "#9aa7b8"))[mode]
    rules = [
        f".page,.number{{fill:{page}}}.words{{fill:{ink}}}.code,.note{{fill:{quiet}}}.arrow{{stroke:{quiet}}}",
        *(
            f".t{place}{{fill:{fill};stroke:{line}}}.l{place}{{stroke:{line}}}.n{place},.f{place}{{fill:{strong}}}"
            for place, (fill, line, strong) in enumerate(tints[mode] for tints in TINTS)
        ),
    ]
    return "".join(rules)


def main() -> None:
    for walk in walks(PAGE.read_text(encoding="utf-8")):
        (DOCS / f"{walk.name}.svg").write_text(draw(walk), encoding="utf-8")


if __name__ == "__main__":
    main()
