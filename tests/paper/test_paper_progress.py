import dataclasses
from pathlib import Path

from made_up import result, with_steps, write_etth

from ompb.bench.findings import Finding
from ompb.bench.store import Cell, Store, export
from ompb.paper.analysis import Analysis, Scope
from ompb.paper.progress import Overview

SHORT, LONG = result("copy", 0.1).cell, result("copy", 0.2, horizon=96).cell
LEAKY = result("ompb", 0.0, protocol="one-step").cell  # which ompb never follows


def cells(scope: Scope) -> list[Cell]:
    return [SHORT] if scope.quick else [SHORT, LONG, dataclasses.replace(LONG, seed=1), LEAKY]


TOY = Analysis("toy", "", (), cells, lambda *_: Finding("toy", "", ""))
STEPWISE = dataclasses.replace(TOY, name="stepwise", per_step=True)


def stored(folder: Path) -> Store:
    """A store in which two of the cells have run."""
    store = Store(folder)
    for one in (result("copy", 0.1), result("copy", 0.2, horizon=96)):
        store.write(one)
    return store


def test_what_has_run_counts_only_with_its_steps_where_these_are_read(tmp_path: Path) -> None:
    store = stored(tmp_path)
    toy, stepwise = Overview.of([TOY, STEPWISE], store, tmp_path, tmp_path).standings
    assert (toy.name, stepwise.name) == ("toy", "stepwise")
    assert list(map(str, toy.stored)) == ["2 / 4", "1 / 1"]
    assert list(map(str, stepwise.stored)) == ["0 / 4", "0 / 1"]
    with_steps(tmp_path, {LONG: {"mae": [0.1]}})
    (stepwise,) = Overview.of([STEPWISE], store, tmp_path, tmp_path).standings
    assert list(map(str, stepwise.stored)) == ["1 / 4", "0 / 1"]


def test_a_cell_that_cannot_be_run_is_not_asked_for_once_the_data_say_so(tmp_path: Path) -> None:
    """900 rows of ETTh leave a stream of 180, too short for 96 rows."""
    write_etth(tmp_path, 2000)
    (toy,) = Overview.of([TOY], stored(tmp_path), tmp_path, tmp_path).standings
    assert list(map(str, toy.stored)) == ["2 / 3", "1 / 1"]
    write_etth(tmp_path, 900)
    (toy,) = Overview.of([TOY], stored(tmp_path), tmp_path, tmp_path).standings
    assert list(map(str, toy.stored)) == ["1 / 1", "1 / 1"]


def test_exported_cells_count_beside_those_of_the_store(tmp_path: Path) -> None:
    export(stored(tmp_path / "elsewhere"), tmp_path / "scores")
    overview = Overview.of([TOY], Store(tmp_path / "empty"), tmp_path, tmp_path)
    (toy,) = overview.standings
    assert (overview.stored, overview.exported) == ((), (SHORT, LONG))
    assert list(map(str, toy.stored)) == ["0 / 4", "0 / 1"]
    assert list(map(str, toy.exported)) == ["2 / 4", "1 / 1"]


def test_steps_are_not_exported_so_the_finding_tells(tmp_path: Path) -> None:
    export(stored(tmp_path / "elsewhere"), tmp_path / "scores")
    made_from = {"cells": 2, "commits": ["c0ffee"]}
    Finding("stepwise", "", "", made_from=made_from).write(tmp_path / "findings" / "stepwise.json")
    toy, stepwise = Overview.of([TOY, STEPWISE], Store(tmp_path / "empty"), tmp_path, tmp_path).standings
    assert (stepwise.exported, stepwise.made_from) == ((), made_from)
    assert toy.made_from == {}
