"""Words and tables of a page as HTML: the little Markdown of notes, marks of doubt, colours of ratios."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape

from ompb.bench.findings import Section
from ompb.paper.grid import OMPB

SLIGHT, MUCH = 0.01, 0.1  # how far from 1 a ratio must be to be coloured, and to be bold
_DOUBT = re.compile(r"\[([a-z]{1,2})\]")


def inline(text: str) -> str:
    """Code, bold and links of Markdown; a link between files of the repository keeps its words only.

    >>> inline("**`a<b`** and [more](../x.md)")
    '<strong><code>a&lt;b</code></strong> and more'
    """
    html = escape(text, quote=False)
    html = re.sub(r"`([^`]+)`", r"<code>\1</code>", html)
    html = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", html)
    html = re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*", r"<em>\1</em>", html)
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", html)


def paragraphs(text: str) -> str:
    """Blocks between blank lines, headings left out."""
    blocks = (" ".join(block.split()) for block in text.split("\n\n"))
    return "\n".join(f"<p>{inline(block)}</p>" for block in blocks if block and not block.startswith("#"))


def anchor(text: str) -> str:
    """A name for a place in the page.

    >>> anchor("Where `ompb` loses")
    'where-ompb-loses'
    """
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def table(section: Section) -> str:
    """A section: its title, its notes, and a table that the page's script makes sortable."""
    doubts = dict(_doubts(section.notes))
    notes = "".join(f'<p class="note">{inline(note)}</p>' for note in section.notes)
    head = "".join(f'<th scope="col">{inline(heading)}</th>' for heading in section.headings)
    rows = "\n".join(_row(line, section, doubts) for line in section.lines)
    label = escape(re.sub(r"[`*]", "", section.title), quote=True)
    return f"""<h3>{inline(section.title)}</h3>
{notes}
<div class="box" tabindex="0" role="region" aria-label="{label}"><table class="sortable" data-keys="{section.keys}">
<thead><tr>{head}</tr></thead>
<tbody>
{rows}
</tbody>
</table></div>
"""


def _doubts(notes: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Letters that notes explain, with what they say."""
    for note in notes:
        found = _DOUBT.match(note)
        if found:
            yield found[1], note[found.end() :].strip()


def _row(line: tuple[str, ...], section: Section, doubts: Mapping[str, str]) -> str:
    ours = any(word.strip("*`") == OMPB for word in line[: section.keys])
    cells = "".join(_cell(word, heading, doubts) for word, heading in zip(line, section.headings, strict=True))
    return f'<tr class="ours">{cells}</tr>' if ours else f"<tr>{cells}</tr>"


def _cell(word: str, heading: str, doubts: Mapping[str, str]) -> str:
    kind = _colour(word) if "ratio" in heading else ""
    found = _DOUBT.search(word)
    if found and found[1] in doubts:
        mark = f'<abbr class="doubt" title="{escape(doubts[found[1]], quote=True)}" tabindex="0">{found[0]}</abbr>'
        html = inline(word[: found.start()]) + mark + inline(word[found.end() :])
    else:
        html = inline(word)
    return f'<td class="{kind}">{html}</td>' if kind else f"<td>{html}</td>"


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
