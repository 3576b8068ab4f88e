"""Small pieces of HTML by which a notebook shows a value: no script, no style sheet, nothing from elsewhere.

Text and lines take the colour of the page, light or dark; the few other colours can be seen on both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from ompb.floor.names import listed

BLUE, SKY, ORANGE, PURPLE, VERMILION = "#1f88c9", "#56b4e9", "#e69f00", "#cc79a7", "#e06a12"
_FAINT = "1px solid rgba(128,128,128,.35)"
_CELL = f"padding:.15em .7em;border:0;border-bottom:{_FAINT};background:none"
_CARD = f"display:inline-block;max-width:100%;overflow-x:auto;border:{_FAINT};border-radius:6px;padding:.6em .8em"


def card(title: str, *pieces: str) -> str:
    """A frame with a title around other pieces."""
    return f'<div style="{_CARD}"><strong>{escape(title)}</strong>{"".join(pieces)}</div>'


def facts(lines: Mapping[str, object]) -> str:
    """Names and what they are, one line each; an empty text is left out.

    >>> facts({"rows": 3, "hidden": ""}).count("<tr")
    1
    """
    return _table(_line((name, str(value)), ("left", "left")) for name, value in lines.items() if str(value))


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Lines of text under a head; the first column is of names, the others are of numbers."""
    sides = ("left", *("right" for _ in head[1:]))
    return _table([_line(head, sides, "th"), *(_line(line, sides) for line in lines)])


def stacked(parts: Sequence[tuple[str, float, str]], marks: float = 1.0) -> str:
    """A bar of parts (name, length, colour) side by side, with a line at ``marks`` and a legend."""
    total = sum(length for _, length, _ in parts)
    unit = 260 / max(total, marks, 1e-300)
    bars, at = [], 0.0
    for _, length, colour in parts:
        bars.append(f'<rect x="{at:.1f}" y="3" width="{length * unit:.1f}" height="12" fill="{colour}"/>')
        at += length * unit
    line = f'<path d="M{marks * unit:.1f} 0v18" stroke="currentColor" stroke-dasharray="3 2"/>'
    return _svg(262, 18, [*bars, line], "its terms side by side; the line is at 1") + _legend(
        [(f"{name} {length:.3f}", colour) for name, length, colour in parts]
    )


def fan(lower: Sequence[float], upper: Sequence[float], mean: Sequence[float], base: Sequence[float]) -> str:
    """A forecast, its interval and the bare forecast, over the leads."""
    values = (*lower, *upper, *mean, *base)
    low, high = min(values), max(values)
    width, height = 150, 44

    def points(heights: Sequence[float]) -> list[str]:
        step = width / max(len(heights) - 1, 1)
        return [
            f"{i * step:.1f} {height - (y - low) / (high - low or 1.0) * height:.1f}" for i, y in enumerate(heights)
        ]

    band = "L".join([*points(lower), *reversed(points(upper))])
    drawn = [f'<path d="M{band}z" fill="{SKY}" fill-opacity=".4"/>']
    for heights, stroke in ((base, f'"{VERMILION}" stroke-dasharray="4 3"'), (mean, f'"{BLUE}" stroke-width="2"')):
        drawn.append(f'<path d="M{"L".join(points(heights))}" fill="none" stroke={stroke}/>')
    return _svg(width, height, drawn, "the forecast over its leads, with its interval")


def fans_legend(level: float) -> str:
    """What the colours of `fan` mean."""
    return _legend([("ompb", BLUE), (f"{level:.0%} interval", SKY), ("bare forecaster", VERMILION)])


def some(names: Sequence[str]) -> str:
    """How many names, and the first of them."""
    return f"{len(names)}: {listed(names)}"


def _svg(width: int, height: int, drawn: Iterable[str], label: str) -> str:
    size = f'width="{width}" height="{height + 2}" viewBox="0 -1 {width} {height + 2}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label="{escape(label)}" '
        f'style="display:block;margin:.3em 0;max-width:100%">{"".join(drawn)}</svg>'
    )


def _legend(entries: Iterable[tuple[str, str]]) -> str:
    spans = (f'<span style="color:{colour}">&#9632;</span> {escape(name)}' for name, colour in entries)
    return f'<div style="font-size:.9em">{" &nbsp; ".join(spans)}</div>'


def _table(lines: Iterable[str]) -> str:
    return f'<table style="border-collapse:collapse;margin:.4em 0">{"".join(lines)}</table>'


def _line(cells: Sequence[str], sides: Sequence[str], tag: str = "td") -> str:
    first = ";white-space:nowrap;vertical-align:top"
    inner = (
        f'<{tag} style="{_CELL};text-align:{side}{first * (not place)}">{escape(cell)}</{tag}>'
        for place, (cell, side) in enumerate(zip(cells, sides, strict=True))
    )
    return f'<tr style="background:none">{"".join(inner)}</tr>'
