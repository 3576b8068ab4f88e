"""An ``svg`` element with the same picture in a fraction of the letters."""

from __future__ import annotations

import re

_TAG = re.compile(r"<[^>]+>")
_LONG = re.compile(r"\d+\.\d{3,}")
_UNSEEN = re.compile(r'<path d="[^"]*"(?: clip-path="[^"]*")? style="fill: none"/>\s*')
_GROUP_NAME = re.compile(r'(<g) id="[^"]*"')
_UNTURNED = re.compile(r' transform="rotate\(-0 [^"]*"')
_FONT = re.compile(r" ?font-family: ([^;\"]+);")
_PATH = re.compile(r'(\sd=")([^"]*)"')
_USE = r'<use xlink:href="#[^"]+" x="([^"]+)" y="([^"]+)" style="([^"]*fill-opacity[^"]*stroke-opacity[^"]*)"/>'
_DOTS = re.compile(rf"(?:{_USE}\s*)+")
DOT = 3.5  # points across


def slim(svg: str) -> str:
    """Tenths of a point, one font for all, no names for groups, nothing unseen, and clouds of points as one path."""
    svg = _UNSEEN.sub("", svg)
    svg = _UNTURNED.sub("", _GROUP_NAME.sub(r"\1", svg))
    svg = _TAG.sub(lambda tag: _LONG.sub(lambda number: f"{float(number[0]):.1f}", tag[0]), svg)  # never in words
    svg = _DOTS.sub(_as_path, svg)
    svg = _PATH.sub(lambda found: f'{found[1]}{_tight(found[2])}"', svg)
    svg = re.sub(r"\n\s*", "\n", svg)
    fonts = _FONT.findall(svg)
    return _FONT.sub("", svg).replace("<svg ", f'<svg font-family="{fonts[0]}" ', 1) if fonts else svg


def _tight(path: str) -> str:
    r"""Commands of a path without what stands between them.

    >>> _tight("M 1 2.5 \nL 3 -4 \nz\n")
    'M1 2.5L3-4z'
    """
    path = re.sub(r"\s+", " ", path).strip()
    path = re.sub(r" ?([A-Za-z]) ?", r"\1", path)
    return path.replace(" -", "-")


def _as_path(uses: re.Match[str]) -> str:
    """Points that share a style as the dots of one line, whose round or square ends are all that is seen of it.

    Each is a hundredth of a point long: of no length, square ends have no direction, and printers leave them out.
    """
    found = re.findall(_USE, uses[0])
    style = found[0][2]
    colour = re.search(r"stroke: (#\w+)", style)
    ends = "square" if "stroke-linejoin: miter" in style else "round"
    dots = "".join(f"M{x} {y}h.01" for x, y, _ in found)
    stroke = colour[1] if colour else "currentColor"
    return (
        f'<path d="{dots}" style="stroke: {stroke}; stroke-width: {DOT}; stroke-linecap: {ends}; stroke-opacity: 0.8"/>'
    )
