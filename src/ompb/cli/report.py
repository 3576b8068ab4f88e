"""``ompb report``: every result as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ompb.cli.console import say
from ompb.cli.folders import RESULTS, Results, require_results
from ompb.floor.files import replacing

HELP = """Make one page of all results of the benchmark: tables to sort and search, and figures.

The page needs nothing from elsewhere. It is made from exported results (see ompb bench export), which come with the
repository: scores/*.csv, made.csv and, where they are there, notes.md, aims.csv and findings/*.json.

\b
Examples:
  ompb report --out page
  ompb report --out page --results results
"""


def report(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for index.html; made if need be.")],
    results: Results = RESULTS,
) -> None:
    """Read the results, write the page."""
    # Here, so that the other commands do not need what draws.
    from ompb.paper.page.html import results_page
    from ompb.paper.page.material import Material

    require_results(results)
    text = results_page(Material.read(results))
    page = out / "index.html"
    with replacing(page, parents=True) as part:
        part.write_text(text, encoding="utf-8")
    say(f"Page: {page}")
