"""What a page is made of, from the top down: parts, entries of parts, and tables of entries, each with its name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ompb.bench.findings import Figure, Finding, Section
from ompb.paper.page.sheet import table
from ompb.paper.page.words import anchor, inline, paragraphs
from ompb.reports.drawing import panel_svgs

UP = '<p class="up"><a href="#contents">Contents</a></p>'


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that the contents name, with what they name below it."""

    title: str
    name: str  # to link to
    html: str
    below: tuple[Entry, ...] = ()  # parts of ``html``


def part(heading: str, entries: Iterable[Entry] = (), text: str = "") -> Entry:
    """A section of the page under a heading of its own; empty if there is nothing to show."""
    found = tuple(entries)
    body = "\n".join(filter(None, (text, *(entry.html for entry in found))))
    name = anchor(heading)
    html = f'<section id="{name}">\n<h2>{inline(heading)}</h2>\n{body}\n{UP}\n</section>\n' if body else ""
    return Entry(heading, name, html, found)


def tables(within: str, sections: Iterable[Section], level: int = 3) -> list[Entry]:
    """Those that have a line."""
    named = [(section, f"{anchor(within)}-{anchor(section.title)}") for section in sections if section.lines]
    return [Entry(section.title, name, table(section, name, level)) for section, name in named]


def of_finding(found: Finding) -> Entry:
    """An analysis: what to see in it, its figures and its tables."""
    name = anchor(found.title)
    below = tables(found.analysis, found.sections, level=4)
    parts = (
        f'<section id="{name}">\n<h3 class="finding">{inline(found.title)}</h3>',
        paragraphs(found.text),
        *map(of_figure, found.figures),
        *(entry.html for entry in below),
        f"{UP}\n</section>",
    )
    return Entry(found.title, name, "\n".join(parts), tuple(below))


def figures(drawn: Iterable[Figure]) -> list[Entry]:
    """Those that have a panel."""
    return [Entry(figure.title, anchor(figure.name), of_figure(figure)) for figure in drawn if figure.panels]


def of_figure(drawn: Figure) -> str:
    """Its panels, side by side where there is room, and what they show."""
    title = f"<strong>{inline(drawn.title)}.</strong> " if drawn.title else ""
    kind = "panels pairs" if _in_pairs(drawn) else "panels"
    panels = "\n".join(panel_svgs(drawn))
    caption = f"<figcaption>{title}{inline(drawn.caption)}</figcaption>"
    return f'<figure id="{anchor(drawn.name)}">\n<div class="{kind}">{panels}</div>\n{caption}\n</figure>'


def _in_pairs(drawn: Figure) -> bool:
    """Whether no more than two panels stand side by side: of four, and where each title comes twice in a row."""
    titles = [panel.title for panel in drawn.panels]
    return len(titles) == 4 or (len(titles) > 2 and titles[::2] == titles[1::2])


def contents(parts: Iterable[Entry]) -> str:
    """Links to the parts of the page and, once it is unfolded, to everything that has a name, in their order."""
    found = tuple(parts)
    line = " · ".join(f'<a href="#{entry.name}">{inline(entry.title)}</a>' for entry in found)
    return f"""<nav id="contents" aria-label="Contents"><p>{line}</p>
<details><summary>Every table</summary>
{_listed(found)}</details></nav>"""


def _listed(entries: Sequence[Entry]) -> str:
    items = "".join(
        f'<li><a href="#{entry.name}">{inline(entry.title)}</a>{_listed(entry.below)}</li>\n' for entry in entries
    )
    return f"<ul>{items}</ul>" if items else ""
