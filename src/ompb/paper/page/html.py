"""One HTML file with every result: the protocol first, what stands out, where ``ompb`` loses, then all there is.

It needs nothing from elsewhere. Tables can be sorted and searched by a small script and are complete without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from ompb.bench.findings import Figure, Finding, Section
from ompb.bench.store import Store
from ompb.paper import main
from ompb.paper.analysis import Runs, Scope
from ompb.paper.catalogue import ANALYSES
from ompb.paper.page.clock import CLOCK, PROTOCOL
from ompb.paper.page.headline import headline
from ompb.paper.page.intervals import coverage, intervals
from ompb.paper.page.material import Material
from ompb.paper.page.standing import against_each_kind, losses, ranking
from ompb.paper.page.tables import aims, history, made_by
from ompb.paper.page.words import anchor, inline, paragraphs, table
from ompb.reports.drawing import panel_svgs
from ompb.reports.style import DARK, LIGHT, SERIES_DARK, STYLE

TITLE = "ompb: results"
SINGLE = "Analyses"  # the part that has a place of its own for each finding
MORE_DARK = "--better: #6fbdf0; --worse: #f0955a; --tint: #22262b; " + " ".join(
    f"--series-{place}: {colour};" for place, colour in enumerate(SERIES_DARK)
)
MISSING = "Not here yet (`ompb bench run --analysis NAME`, then `ompb bench export`, and make this page again):"


def results_page(material: Material) -> str:
    """The page, complete."""
    parts = {
        "What a method is shown": f"{paragraphs(PROTOCOL)}\n{CLOCK}",
        "In short": _tables([headline(material.grid), against_each_kind(material.grid)]),
        "Losses and aims": _tables([losses(material.grid), aims(material.grid, material.aims), history(material.grid)]),
        "All methods ranked": _tables(_rankings(material)),
        "Intervals": _tables(_intervals(material)),
        "Main tables": "\n".join(_finding(finding) for finding in main_tables(material)),
        SINGLE: _analyses(material),
        "What was seen, and when": paragraphs(material.notes),
        "What made the cells": _tables([made_by(material.results)]),
    }
    shown = {heading: body for heading, body in parts.items() if body}
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{TITLE}</title>
<style>{STYLE}{_style()}</style>
</head>
<body>
<header><div><h1>{TITLE}</h1>
<p class="soft">{len(material.results)} cells: a frozen forecaster, corrected online. Errors are in standard deviations
of the source; of errors and ratios, smaller is better.</p></div></header>
{_contents(shown, material)}
{"".join(_part(heading, body) for heading, body in shown.items())}
<footer>Made by ompb {escape(version("ompb"))} with <code>ompb report</code>.</footer>
<script>{_asset("script.js")}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return files("ompb.paper.page").joinpath(name).read_text(encoding="utf-8")


def _style() -> str:
    """The page's own rules, with the palettes that all pages share."""
    text = _asset("style.css")
    for mark, palette in (("/* light */", LIGHT), ("/* dark */", DARK), ("/* more */", MORE_DARK)):
        text = text.replace(mark, palette)
    return text


def _contents(parts: Iterable[str], material: Material) -> str:
    """Links to the parts and, behind theirs, to the analyses: in the order of the page."""
    below = {SINGLE: [finding.title for finding in analyses(material)]}
    titles = [title for part in parts for title in (part, *below.get(part, ()))]
    items = "".join(f'<li><a href="#{anchor(title)}">{inline(title)}</a></li>' for title in titles)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def _part(heading: str, body: str) -> str:
    return f'<section id="{anchor(heading)}">\n<h2>{inline(heading)}</h2>\n{body}\n</section>\n'


def _tables(sections: Iterable[Section]) -> str:
    return "\n".join(table(section) for section in sections if section.lines)


def _rankings(material: Material) -> list[Section]:
    grid = material.grid
    everything = ranking(grid, "All data sets and backbones")
    each = [ranking(grid.of_dataset(dataset), dataset) for dataset in grid.datasets]
    return [everything, *(_without_notes(section) for section in each)]


def _intervals(material: Material) -> list[Section]:
    grid = material.grid
    each = [intervals(grid.of_dataset(dataset), f"Every method, {dataset}") for dataset in grid.datasets]
    return [coverage(grid), *each]


def _without_notes(section: Section) -> Section:
    return Section(section.title, (), section.headings, section.lines, section.keys)


def main_tables(material: Material) -> list[Finding]:
    """Those that were exported, else made from the cells."""
    found = {finding.analysis: finding for finding in material.findings}
    runs = Runs(Store(Path()), material.results)
    return [found.get(analysis.name) or analysis.reduce(runs, Scope()) for analysis in main.ANALYSES]


def analyses(material: Material) -> list[Finding]:
    """All findings but the main tables, in the order of the catalogue."""
    order = {analysis.name: place for place, analysis in enumerate(ANALYSES)}
    others = (finding for finding in material.findings if finding.analysis not in main.TABLES)
    return sorted(others, key=lambda finding: order.get(finding.analysis, len(order)))


def _analyses(material: Material) -> str:
    shown = "\n".join(f'<section id="{anchor(one.title)}">\n{_finding(one)}\n</section>' for one in analyses(material))
    return f"{_missing(material)}\n{shown}"


def _missing(material: Material) -> str:
    """Which analyses of the catalogue have no finding."""
    there = {*main.TABLES, *(finding.analysis for finding in material.findings)}
    absent = [analysis.title for analysis in ANALYSES if analysis.name not in there]
    if not absent:
        return ""
    words = f"{MISSING} {'; '.join(absent)}."
    return f'<p class="missing">{inline(words)}</p>'


def _finding(finding: Finding) -> str:
    figures = "\n".join(_figure(figure) for figure in finding.figures)
    head = f'<h3 class="finding">{inline(finding.title)}</h3>'
    return "\n".join((head, paragraphs(finding.text), figures, _tables(finding.sections)))


def _figure(figure: Figure) -> str:
    title = f"<strong>{inline(figure.title)}.</strong> " if figure.title else ""
    panels = "\n".join(panel_svgs(figure))
    caption = f"<figcaption>{title}{inline(figure.caption)}</figcaption>"
    return f'<figure id="{anchor(figure.name)}">\n<div class="panels">{panels}</div>\n{caption}\n</figure>'
