"""The repository's pages are what the command makes of the committed results."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from page_folder import cells, write_results

from ompb.bench.store import Cell, Result
from ompb.errors import FormatError, OptionError
from ompb.paper.catalogue import ANALYSES
from ompb.paper.page.analyses import analyses_table
from ompb.paper.page.headline import END, START, with_block
from ompb.paper.page.markdown import analyses_block, pages, readme_block, write_pages
from ompb.paper.page.material import Material

REPOSITORY = Path(__file__).parents[2]
AGAIN = "make it again: ompb bench page --readme README.md"


@pytest.fixture(scope="module")
def committed() -> Material:
    return Material.read(REPOSITORY / "results")


def test_the_readme_has_the_headline_of_the_committed_cells(committed: Material) -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert text == with_block(text, readme_block(committed)), AGAIN
    table = [line for line in readme_block(committed).splitlines() if line.startswith("|")]
    assert 5 <= len(table) - 2 <= 8


def assert_same_picture(one: str, other: str) -> None:
    """Drawn on another machine, a point may lie a tenth away, and marks are named otherwise."""
    words, numbers = r"-[mp][0-9a-f]{10}\b", r"-?\d+(?:\.\d+)?"
    unnamed = [re.sub(words, "", text) for text in (one, other)]
    there, made = (list(map(float, re.findall(numbers, text))) for text in unnamed)
    assert re.sub(numbers, "", unnamed[0]) == re.sub(numbers, "", unnamed[1]), AGAIN
    assert there == pytest.approx(made, abs=0.11), AGAIN


def test_the_pages_are_those_of_the_committed_cells(committed: Material) -> None:
    made = pages(committed)
    assert {path.name for path in (REPOSITORY / "docs").glob("results*")} == set(made)
    for name, text in made.items():
        there = (REPOSITORY / "docs" / name).read_text(encoding="utf-8")
        if name.endswith(".svg"):
            assert_same_picture(there, text)
        else:
            assert there == text, AGAIN
    assert len(made["results.md"].splitlines()) <= 200


def test_how_to_reproduce_names_every_analysis(committed: Material) -> None:
    text = (REPOSITORY / "docs" / "reproducing.md").read_text(encoding="utf-8")
    assert text == with_block(text, analyses_block(committed)), AGAIN
    assert all(f"| `{analysis.name}` |" in text for analysis in ANALYSES)


def test_times_are_those_of_the_cells_that_have_run() -> None:
    """Ten forecasts at 30 s each, and at 60 s each: 5 and 10 minutes; a cell that nobody asked for does not count."""
    quick = Cell("etth", "tcn", 24, "ood", "honest", "ompb-paper", 0)
    full = replace(quick, horizon=96)
    ran = [
        Result(cell, {"mae": 1.0}, {"windows": 10}, {}, {}, "cpu", None, {"seconds_per_step": seconds})
        for cell, seconds in ((quick, 30.0), (full, 60.0), (replace(full, dataset="ili"), 7.0))
    ]
    untold = Result(replace(full, seed=1), {"mae": 1.0}, {}, {}, {}, "cpu", None, {"seconds_per_step": 1.0})
    lines = {words[0]: words[3:] for words in analyses_table([*ran, untold]).lines}
    _, all_of_it, _, few = lines["`delay`"]
    assert (all_of_it, few) == ("1 in 10 min", "1 in 5 min")
    assert lines["`shift`"] == ("0", "", "0", "")


def test_notes_have_no_results_typed_by_hand(committed: Material) -> None:
    words = re.sub(
        r"\(\.\./[^)]*\)|`[^`]*`|[A-Za-z]+-?[0-9]+[A-Z]*\b", "", committed.notes
    )  # links, code, ETTh1, GPT-2
    assert re.findall(r"\d+", words) == []


def test_pages_of_a_folder_of_results(tmp_path: Path) -> None:
    folder = write_results(tmp_path / "results", cells())
    (tmp_path / "README.md").write_text(f"# Title\n{START}\n{END}\nend\n")
    written = write_pages(Material.read(folder), tmp_path / "docs", tmp_path / "README.md")
    assert [path.name for path in written] == ["results.md", "results.svg", "results-etth.md", "README.md"]
    page = (tmp_path / "docs" / "results.md").read_text()
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## ETTh, TCN, mean absolute error",
        "## `ompb` against each kind of rival",
        "## Where `ompb` loses",
        "## All methods ranked",
        "## Coverage of the intervals of `ompb`",
        "## Every number",
    ]
    assert "| etth | tcn | 96 | ood | bias | 3 | 0.5100 | 0.4600 | 1.1087 |" in page
    assert page.endswith("\n[etth](results-etth.md).\n")
    assert re.search(r"\n!\[[^]]+\]\(results\.svg\)\n", page)
    assert "| tcn | 24 | id | ompb-paper | 2 / 1 | 0.7050 | 0.5050 | 0.716 | 0.4000 |" in written[2].read_text()
    assert "| **`ompb`** | 3 | 0.510 |" in (tmp_path / "README.md").read_text()


def test_what_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="bench export"):
        Material.read(tmp_path)
    folder = write_results(tmp_path, cells()[:1])
    (folder / "aims.csv").write_text("dataset,aim\netth,1\n")
    with pytest.raises(FormatError, match="not a table of aims"):
        Material.read(folder)
    (table,) = (folder / "scores").iterdir()
    table.write_text(table.read_text().splitlines()[0] + "\n")
    with pytest.raises(OptionError, match="no cell"):
        Material.read(folder)
