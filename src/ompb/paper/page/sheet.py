"""A section as a table of the page: ratios coloured, doubts marked, means below each other."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ompb.bench.findings import Section
from ompb.paper.grid import OMPB
from ompb.paper.page.words import inline

SLIGHT, MUCH = 0.01, 0.1  # how far from 1 a ratio must be to be coloured, and to be bold
HIGH = 12  # lines; a table of more has a box of its own to scroll in
_DOUBT = re.compile(r"\[([a-z]{1,2})\]")
# A number, what is told of its spread or stands beside it, and a mark.
_NUMBER = re.compile(r"([-−]?\d[\d.]*(?:e[+-]?\d+)?%?)(?: (± \S+|\([^)]+\)))?(?: (\[[a-z]{1,2}\]|\*))?")


def table(section: Section, name: str, level: int = 3) -> str:
    """A section: its title, its notes, and a table that the page's script makes sortable; ``name`` is to link to."""
    doubts = dict(_doubts(section.notes))
    notes = "".join(f'<p class="note">{inline(note)}</p>' for note in section.notes)
    looks = [
        _Look.of(heading, words, is_key=place < section.keys)
        for place, (heading, *words) in enumerate(zip(section.headings, *section.lines, strict=True))
    ]
    head = "".join(f'<th scope="col"{look.attribute()}>{inline(look.heading)}</th>' for look in looks)
    rows = "\n".join(_row(line, section.keys, looks, doubts) for line in section.lines)
    box = "box long" if len(section.lines) > HIGH else "box"
    return f"""<h{level} id="{name}">{inline(section.title)}</h{level}>
{notes}
<div class="edge"><div class="{box}"><table class="sortable" aria-labelledby="{name}"{_attributes(section, looks)}>
<thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody>
</table></div></div>
"""


@dataclass(frozen=True, slots=True)
class _Look:
    """How the cells of a column are shown."""

    heading: str
    is_key: bool
    is_words: bool = False  # no number in it, and no key either
    spread: int = 0  # letters of the longest
    mark: int = 0

    @classmethod
    def of(cls, heading: str, words: Sequence[str], *, is_key: bool) -> _Look:
        if is_key:
            return cls(heading, is_key)
        numbers = [found for found in map(_NUMBER.fullmatch, words) if found]
        is_words = any(words) and not any(_NUMBER.match(word) for word in words)
        spread, mark = (max((len(found[part] or "") for found in numbers), default=0) for part in (2, 3))
        return cls(heading, is_key, is_words, spread, mark)

    def attribute(self, *kinds: str) -> str:
        """The classes of a cell, if it has any."""
        every = " ".join(kind for kind in ("words" if self.is_words else "", *kinds) if kind)
        return f' class="{every}"' if every else ""

    def aligned(self, number: re.Match[str], doubts: Mapping[str, str]) -> str:
        """A number with room behind it for the longest spread and mark of its column, so that points stand in line."""
        spread = f' <span class="spread">{number[2] or ""}</span>' if self.spread else ""
        mark = f' <span class="mark">{_with_doubt(number[3] or "", doubts)}</span>' if self.mark else ""
        return f"{number[1]}{spread}{mark}"


def _attributes(section: Section, looks: Sequence[_Look]) -> str:
    """Of a table: how many keys it has, which of them stays in sight, and how wide spreads and marks are."""
    sizes = {"spread": max(look.spread for look in looks), "mark-width": max(look.mark for look in looks)}
    widths = ";".join(f"--{name}:{size}ch" for name, size in sizes.items() if size)
    style = f' style="{widths}"' if widths else ""
    return f' data-keys="{section.keys}" data-name="{_telling(section)}"{style}'


def _telling(section: Section) -> int:
    """The key that tells lines apart best, counted from 1: the last of those with the most different words."""
    different = [len({line[key] for line in section.lines}) for key in range(section.keys)]
    return max(range(section.keys), key=lambda key: (different[key], key)) + 1


def _doubts(notes: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Letters that notes explain, with what they say."""
    for note in notes:
        found = _DOUBT.match(note)
        if found:
            yield found[1], note[found.end() :].strip()


def _row(line: Sequence[str], keys: int, looks: Sequence[_Look], doubts: Mapping[str, str]) -> str:
    ours = any(word.strip("*`") == OMPB for word in line[:keys])
    cells = "".join(_cell(word, look, doubts) for word, look in zip(line, looks, strict=True))
    return f'<tr class="ours">{cells}</tr>' if ours else f"<tr>{cells}</tr>"


def _cell(word: str, look: _Look, doubts: Mapping[str, str]) -> str:
    number = None if look.is_key else _NUMBER.fullmatch(word)
    html = look.aligned(number, doubts) if number else _with_doubt(word, doubts)
    return f"<td{look.attribute(_colour(word) if 'ratio' in look.heading else '')}>{html}</td>"


def _with_doubt(word: str, doubts: Mapping[str, str]) -> str:
    """Words in which a letter of a doubt says what it stands for when it is pointed at."""
    found = _DOUBT.search(word)
    if not found or found[1] not in doubts:
        return inline(word)
    mark = f'<abbr title="{escape(doubts[found[1]], quote=True)}">{found[0]}</abbr>'
    return inline(word[: found.start()]) + mark + inline(word[found.end() :])


def _colour(word: str) -> str:
    """The class of a ratio's cell: below 1 is better.

    >>> _colour("0.500"), _colour("1.020"), _colour("1.001"), _colour("")
    ('better much', 'worse', '', '')
    """
    try:
        away = float(word) - 1
    except ValueError:
        return ""
    if abs(away) < SLIGHT + 1e-9:
        return ""
    return ("better" if away < 0 else "worse") + (" much" if abs(away) > MUCH else "")
