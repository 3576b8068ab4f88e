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
_GROUP = re.compile(r"</?g\b[^>]*>")
_SAME = re.compile(
    r'<use (xlink:href="[^"]+") x="[^"]+" y="[^"]+" (style="[^"]+")/>(?:\s*<use \1 x="[^"]+" y="[^"]+" \2/>)+'
)
_USE = r'<use xlink:href="#[^"]+" x="([^"]+)" y="([^"]+)" style="([^"]*fill-opacity[^"]*stroke-opacity[^"]*)"/>'
_DOTS = re.compile(rf"(?:{_USE}\s*)+")
DOT = 3.5  # points across


def slim(svg: str) -> str:
    """Tenths of a point, one font for all, one style for marks that are alike, clouds of points as one path.

    Groups have no names, those that say nothing are taken away, and so is what is not seen.
    """
    svg = _UNSEEN.sub("", svg)
    svg = _UNTURNED.sub("", _without_plain_groups(_GROUP_NAME.sub(r"\1", svg)))
    svg = _TAG.sub(lambda tag: _LONG.sub(lambda number: f"{float(number[0]):.1f}", tag[0]), svg)  # never in words
    svg = _SAME.sub(_with_one_style, _DOTS.sub(_as_path, svg))
    svg = _PATH.sub(lambda found: f'{found[1]}{_tight(found[2])}"', svg)
    svg = re.sub(r"\s*\n\s*", "\n", svg)
    fonts = _FONT.findall(svg)
    return _FONT.sub("", svg).replace("<svg ", f'<svg font-family="{fonts[0]}" ', 1) if fonts else svg


def _without_plain_groups(svg: str) -> str:
    """Without the tags of groups that have no attribute; what is in them stays.

    >>> _without_plain_groups('<g><g style="x"><path/></g><g/></g>')
    '<g style="x"><path/></g>'
    """
    opened: list[bool] = []  # of the groups around a place, which stay

    def tag(found: re.Match[str]) -> str:
        text = found[0]
        if text == "</g>":
            return text if opened.pop() else ""
        stays = "=" in text
        if not text.endswith("/>"):
            opened.append(stays)
        return text if stays else ""

    return _GROUP.sub(tag, svg)


def _with_one_style(uses: re.Match[str]) -> str:
    """The same mark at several places, whose style is said once for all of them."""
    return f"<g {uses[2]}>{uses[0].replace(f' {uses[2]}', '')}</g>"


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
