"""What a finding says of where it comes from and what it lacks."""

from pathlib import Path

import pytest
from made_up_runs import made_up_runs, made_up_steps

from ompb.bench.store import Cell
from ompb.paper.accounts import Doubts, data_at_hand, made_from, missing, number, ratio
from ompb.paper.printed import Number

CELLS = [Cell("etth", "tcn", 24, "id", "honest", "ompb", seed) for seed in range(8)]


def test_missing_cells_are_counted_and_some_named(tmp_path: Path) -> None:
    runs = made_up_runs(tmp_path, {CELLS[0]: made_up_steps()})
    assert missing(CELLS[:1], runs.results) == ""
    words = missing(CELLS, runs.results)
    assert words.startswith("7 of 8 cells are missing: etth tcn 24 id honest ompb 1; ")
    assert words.endswith(" and 2 more.")


def test_a_finding_says_what_it_was_made_from(tmp_path: Path) -> None:
    runs = made_up_runs(tmp_path, {cell: made_up_steps() for cell in CELLS[:2]})
    found = made_from(runs.results)
    assert found == {"cells": [str(cell) for cell in CELLS[:2]], "commits": ["abc"], "devices": ["cpu"]}


def test_data_that_is_not_there_is_said_so_without_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMPB_DATA", str(tmp_path / "nowhere"))
    words = data_at_hand("etth")
    assert isinstance(words, str)
    assert "etth" in words
    assert "'nowhere'" in words
    assert str(tmp_path) not in words


def test_numbers_and_ratios() -> None:
    assert number(-0.12345, 2) == "-0.12"
    assert ratio(3.0, Number("1.5")) == "2.00"
    assert ratio(3.0, Number("0.0000")) == ratio(None, Number("1")) == "-"


def test_the_same_doubt_has_one_mark() -> None:
    doubts = Doubts()
    shown = [doubts.shown(Number(value, doubt)) for value, doubt in (("1", "x"), ("2", "y"), ("3", "x"), ("4", None))]
    assert shown == ["1 [a]", "2 [b]", "3 [a]", "4"]
    assert doubts.notes == ("[a] x", "[b] y")
