"""One HTML file with every result: the protocol first, what stands out, where ``ompb`` loses, then all there is.

It needs nothing from elsewhere. Tables can be sorted and searched by a small script and are complete without it.
"""

from __future__ import annotations

from html import escape
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path

from ompb.bench.findings import Finding, Section
from ompb.bench.store import Store
from ompb.paper import main
from ompb.paper.analysis import Runs, Scope
from ompb.paper.catalogue import ANALYSES
from ompb.paper.page.clock import CLOCK, PROTOCOL
from ompb.paper.page.foreword import TITLE, header
from ompb.paper.page.glossary import GLOSSARY
from ompb.paper.page.headline import headline
from ompb.paper.page.intervals import coverage, intervals
from ompb.paper.page.material import Material
from ompb.paper.page.outline import Entry, contents, figures, of_finding, part, tables
from ompb.paper.page.picture import picture
from ompb.paper.page.standing import against_each_kind, losses, ranking
from ompb.paper.page.tables import aims, history, made_by
from ompb.paper.page.words import inline, paragraphs
from ompb.reports.style import DARK, LIGHT, SERIES_DARK, STYLE

MORE_DARK = "--better: #6fbdf0; --worse: #f0955a; --tint: #24313d; --shade: #000b; " + " ".join(
    f"--series-{place}: {colour};" for place, colour in enumerate(SERIES_DARK)
)
MISSING = "Not here yet (`ompb bench run --analysis NAME`, then `ompb bench export`, and make this page again):"


def results_page(material: Material) -> str:
    """The page, complete."""
    parts = [entry for entry in _parts(material) if entry.html]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{TITLE}</title>
<style>{STYLE}{_style()}</style>
</head>
<body>
<a class="skip" href="#results">Skip to the results</a>
{header(len(material.results))}
{contents(parts)}
<main id="results">
{"".join(entry.html for entry in parts)}</main>
<footer>Made by ompb {escape(version("ompb"))} with <code>ompb report</code>.</footer>
<script>{_asset("script.js")}</script>
</body>
</html>
"""


def _parts(material: Material) -> list[Entry]:
    """In the order of the page."""
    grid = material.grid
    at_stake = (losses(grid), aims(grid, material.aims), history(grid))
    return [
        part("What a method is shown", text=f"{paragraphs(PROTOCOL)}\n{CLOCK}"),
        part("What the words mean", text=GLOSSARY),
        part("In short", [*tables("in short", (headline(grid), against_each_kind(grid))), *figures([picture(grid)])]),
        part("Losses and aims", tables("losses and aims", at_stake)),
        part("All methods ranked", tables("ranked", _rankings(material))),
        part("Intervals", tables("intervals", _intervals(material))),
        part("Main tables", map(of_finding, main_tables(material))),
        part("Analyses", map(of_finding, analyses(material)), _missing(material)),
        part("What was seen, and when", text=paragraphs(material.notes)),
        part("What made the cells", tables("made by", [made_by(material.results)])),
    ]


def _asset(name: str) -> str:
    return files("ompb.paper.page").joinpath(name).read_text(encoding="utf-8")


def _style() -> str:
    """The page's own rules, with the palettes that all pages share."""
    text = _asset("style.css")
    for mark, palette in (("/* light */", LIGHT), ("/* dark */", DARK), ("/* more */", MORE_DARK)):
        text = text.replace(mark, palette)
    return text


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


def _missing(material: Material) -> str:
    """Which analyses of the catalogue have no finding."""
    there = {*main.TABLES, *(finding.analysis for finding in material.findings)}
    absent = [analysis.title for analysis in ANALYSES if analysis.name not in there]
    if not absent:
        return ""
    words = f"{MISSING} {'; '.join(absent)}."
    return f'<p class="missing">{inline(words)}</p>'
