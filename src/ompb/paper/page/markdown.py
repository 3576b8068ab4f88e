"""The repository's pages of results: a short one, one per data set with every number, and the README's headline."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from ompb.bench.findings import Section
from ompb.bench.render import render
from ompb.floor.files import replacing
from ompb.paper.grid import OMPB
from ompb.paper.page.analyses import analyses_table
from ompb.paper.page.headline import headline, with_block
from ompb.paper.page.intervals import coverage, intervals
from ompb.paper.page.material import Material
from ompb.paper.page.picture import CAPTION, picture
from ompb.paper.page.standing import against_each_kind, losses, ranking
from ompb.paper.page.tables import aims, full_tables, history
from ompb.reports.drawing import svg

REPRODUCING = "reproducing.md"
PICTURE = "results.svg"
LISTED = 30  # losses on the short page

HEAD = f"""# Results

Made by `ompb bench page` from `results/`: do not edit. [Which command makes what](reproducing.md); the same with every
table and figure as one page to sort and filter: `ompb report --out DIR`.

Errors are in standard deviations of the source. Protocol *honest* is what a deployment has: at row t, a method has seen
the rows up to t. *One-step*, that of the paper's main tables, shows a method the complete outcome of each forecast one
step after it was issued: H - 1 of the H rows its next forecast is scored on. That is a leak, and the row *copy*, which
adds the last residual it was shown, tells how much it is worth. Every comparison with `{OMPB}` is over the seeds that
both have.

![Ratios of errors, smallest to largest, for each data set and kind of rival]({PICTURE})

{CAPTION}
"""
DATASET_HEAD = """# Results on {dataset}

Made by `ompb bench page`: do not edit. What the protocols are: [results](results.md).
"""


def write_pages(material: Material, docs: Path, readme: Path | None) -> list[Path]:
    """Write every page; returns what was written.

    The README gets its headline and, where it exists, the page on how to reproduce them its table of analyses.
    """
    texts = {docs / name: text for name, text in pages(material).items()}
    how = docs / REPRODUCING
    if how.exists():
        texts[how] = with_block(how.read_text(encoding="utf-8"), analyses_block(material))
    if readme is not None:
        texts[readme] = with_block(readme.read_text(encoding="utf-8"), readme_block(material))
    for path, text in texts.items():
        with replacing(path, parents=True) as part:
            part.write_text(text, encoding="utf-8")
    return list(texts)


def pages(material: Material) -> dict[str, str]:
    """The text of each page by its file's name."""
    return {
        "results.md": _short_page(material),
        PICTURE: svg(picture(material.grid)),
        **{file_of(dataset): _dataset_page(material, dataset) for dataset in material.grid.datasets},
    }


def file_of(dataset: str) -> str:
    """The page of a data set.

    >>> file_of("etth")
    'results-etth.md'
    """
    return f"results-{dataset}.md"


def readme_block(material: Material) -> str:
    """The headline as the README shows it: the table, then what it is."""
    section = headline(material.grid)
    table = render([dataclasses.replace(section, notes=())], "markdown").partition("\n\n")[2]
    return "\n".join((f"{section.title}:", "", table, "", *section.notes))


def analyses_block(material: Material) -> str:
    """The table of all analyses."""
    return render([analyses_table(material.results)], "markdown").partition("\n\n")[2]


def _short_page(material: Material) -> str:
    grid = material.grid
    sections = [headline(grid), against_each_kind(grid), _cut(losses(grid)), ranking(grid, "All methods ranked")]
    sections += [coverage(grid), aims(grid, material.aims), history(grid.of_dataset("ili"))]
    links = ", ".join(f"[{dataset}]({file_of(dataset)})" for dataset in grid.datasets)
    return "\n".join((HEAD, _markdown(sections), "", material.notes, "## Every number", "", f"{links}.")) + "\n"


def _dataset_page(material: Material, dataset: str) -> str:
    grid = material.grid.of_dataset(dataset)
    backbones = sorted({place.backbone for place in grid.places})
    sections = [losses(grid)]
    sections += [ranking(grid.of_backbone(backbone), f"Ranking, {backbone}") for backbone in backbones]
    sections += [intervals(grid, "Intervals"), *full_tables(grid, dataset)]
    return f"{DATASET_HEAD.format(dataset=dataset)}\n{_markdown(sections)}\n"


def _markdown(sections: list[Section]) -> str:
    """Those with a line, each note said once."""
    said: set[str] = set()
    shown = []
    for section in sections:
        if section.lines:
            shown.append(dataclasses.replace(section, notes=tuple(note for note in section.notes if note not in said)))
            said |= set(section.notes)
    return render(shown, "markdown").replace("### ", "## ")


def _cut(section: Section) -> Section:
    """The first lines, and a word on how many there are."""
    if len(section.lines) <= LISTED:
        return section
    more = f"The {LISTED} largest of {len(section.lines)}; the others are on the pages of the data sets."
    return dataclasses.replace(section, lines=section.lines[:LISTED], notes=(*section.notes, more))
