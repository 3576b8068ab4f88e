"""Results that programs of their own make: each says which, and the page on reproducing lists them all."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
RESULTS = REPOSITORY / "results"
WRITTEN_BY_HAND = ("notes.md",)
PAGES = [path for path in sorted(RESULTS.glob("*.md")) if path.name not in WRITTEN_BY_HAND]
LISTED = (REPOSITORY / "docs" / "reproducing.md").read_text(encoding="utf-8")


def programs(text: str) -> set[str]:
    return set(re.findall(r"benchmarks/\w+\.py", text))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_of_results_names_the_program_that_made_it_and_is_listed_beside_it(page: Path) -> None:
    made_by = programs(page.read_text(encoding="utf-8").partition("\n| ")[0])
    (line,) = (line for line in LISTED.splitlines() if f"(../results/{page.name})" in line)
    assert programs(line) <= made_by
    assert len(programs(line)) == 1


def test_programs_that_are_listed_are_there() -> None:
    assert len(programs(LISTED)) > len(PAGES)
    assert all((REPOSITORY / program).exists() for program in programs(LISTED))
