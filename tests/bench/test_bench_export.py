"""Cells as a table for each data set and one of what made them, and back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ompb.bench.store import Cell, Result, Store, collect, export, exported
from ompb.errors import FormatError, OptionError

STRANGER = "dataset,backbone,horizon,split,protocol,method,seed,windows,mae,made\ne,t,1,id,honest,last,0,,1,7\n"
REPOSITORY = Path(__file__).parents[2]


def result(method: str, metrics: dict[str, float], commit: str = "0123456789ab", device: str = "cpu") -> Result:
    cell = Cell("etth", "gpt4ts[random]", 24, "id", "honest", method, 0)
    return Result(cell, metrics, {}, {}, {"numpy": "2.0", "python": "3.11"}, device, commit, {"seconds_per_step": 0.25})


def test_what_is_exported_comes_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.write(result('ompb[gate="open",draws=5]', {"mae": 0.5, "mse": 0.375, "crps": 1e-9}))
    store.write(
        replace(result("last", {"mae": 2.0, "mse": 4.0}, device="cuda"), facts={"windows": 31, "trainable": 780})
    )
    store.write(replace(result("copy", {"mae": 0.0, "mse": 0.0}), commit=None, timing={}, trained_on="cuda"))
    assert export(store, tmp_path / "scores") == 3
    assert exported(tmp_path / "scores") == collect(store)
    assert len((tmp_path / "made.csv").read_text().splitlines()) == 1 + 3


def test_earlier_cells_stay_unless_they_were_run_again(tmp_path: Path) -> None:
    before, after = Store(tmp_path / "before"), Store(tmp_path / "after")
    for method in ("last", "copy"):
        before.write(result(method, {"mae": 1.0}, commit="000000000000"))
    export(before, tmp_path / "scores")
    for method in ("copy", "bias"):
        after.write(result(method, {"mae": 2.0, "mse": 3.0}))
    assert export(after, tmp_path / "scores", exported(tmp_path / "scores")) == 3
    found = {one.cell.method: (one.metrics, one.commit) for one in exported(tmp_path / "scores")}
    again = ({"mae": 2.0, "mse": 3.0}, "0123456789ab")
    assert found == {"bias": again, "copy": again, "last": ({"mae": 1.0}, "000000000000")}


def test_cells_that_join_leave_the_lines_of_others_as_they_were(tmp_path: Path) -> None:
    """A commit that sorts before those of earlier cells gets the next number, not theirs."""
    before, after, folder = Store(tmp_path / "before"), Store(tmp_path / "after"), tmp_path / "scores"
    before.write(result("last", {"mae": 1.0}, commit="555555555555"))
    before.write(result("copy", {"mae": 1.0}, commit="999999999999"))
    export(before, folder)
    lines = (folder / "etth.csv").read_text().splitlines()
    after.write(result("bias", {"mae": 2.0}, commit="000000000000"))
    export(after, folder, exported(folder))
    assert set(lines) < set((folder / "etth.csv").read_text().splitlines())
    assert {one.cell.method: one.commit for one in exported(folder)}["bias"] == "000000000000"


def test_who_made_many_cells_is_written_once_and_commits_are_cut(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    for method in ("last", "copy"):
        store.write(result(method, {"mae": 1.0}, commit="0123456789ab" + "c" * 28))
    export(store, tmp_path / "scores")
    made = "id,commit,device,versions,trained_on\n0,0123456789ab,cpu,numpy=2.0 python=3.11,\n"
    assert (tmp_path / "made.csv").read_text() == made
    assert {one.commit for one in exported(tmp_path / "scores")} == {"0123456789ab"}


def test_six_digits_of_a_metric_and_three_of_a_timing_are_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.write(replace(result("last", {"mae": 0.1234567891}), timing={"seconds_per_step": 0.0001236, "start": 1.0}))
    export(store, tmp_path / "scores")
    (back,) = exported(tmp_path / "scores")
    assert (back.metrics, back.timing) == ({"mae": 0.123457}, {"seconds_per_step": 0.000124})


@pytest.mark.parametrize(
    ("cells", "made"),
    [
        ("a,b\n1,2\n", "id,commit,device,versions,trained_on\n0,,cpu,,\n"),
        (None, "id,commit,device,versions,trained_on\n0,,cpu,,\n"),
        (
            STRANGER,
            "id,commit\n",
        ),
        (STRANGER, None),
    ],
)
def test_what_is_not_a_table_of_cells_is_refused(tmp_path: Path, cells: str | None, made: str | None) -> None:
    for name, text in (("scores/etth.csv", cells), ("made.csv", made)):
        if text is not None:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(text)
    with pytest.raises(FormatError, match="bench export"):
        exported(tmp_path / "scores")


def test_the_committed_cells_can_be_read() -> None:
    assert {"mae", "mse"} <= set.intersection(
        *(set(one.metrics) for one in exported(REPOSITORY / "results" / "scores"))
    )


def test_a_table_of_a_data_set_that_is_no_longer_there_goes(tmp_path: Path) -> None:
    store, folder = Store(tmp_path / "store"), tmp_path / "scores"
    store.write(result("ompb", {"mae": 1.0}))
    export(store, folder)
    (mine,) = folder.iterdir()
    (folder / "gone.csv").write_text(mine.read_text())
    (folder / "readme.txt").write_text("stays")
    export(store, folder)
    assert {path.name for path in folder.iterdir()} == {mine.name, "readme.txt"}


def test_a_file_is_no_folder_for_tables(tmp_path: Path) -> None:
    store, file = Store(tmp_path / "store"), tmp_path / "cells.csv"
    store.write(result("ompb", {"mae": 1.0}))
    file.write_text("mine")
    with pytest.raises(OptionError, match="name a folder"):
        export(store, file)
    assert file.read_text() == "mine"


@pytest.mark.parametrize("name", ["sales.csv", "etth.csv"])
def test_files_that_are_no_tables_of_cells_are_left_alone(tmp_path: Path, name: str) -> None:
    store, folder = Store(tmp_path / "store"), tmp_path / "mine"
    store.write(result("ompb", {"mae": 1.0}))
    folder.mkdir()
    (folder / name).write_text("date,OT\n2016-07-01,1\n")
    with pytest.raises(OptionError, match=f"{name}, which is no table of cells; name a folder"):
        export(store, folder)
    assert {path.name: path.read_text() for path in folder.iterdir()} == {name: "date,OT\n2016-07-01,1\n"}
    assert not (tmp_path / "made.csv").exists()
