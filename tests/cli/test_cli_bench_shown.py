"""What tables, figures and exports are made from, and which places are refused."""

import os
from pathlib import Path

import numpy as np
import pytest
from tables_on_disk import assert_refused, ompb

from ompb.bench.findings import Curve, Figure, Finding, Panel
from ompb.bench.store import Cell, Result, Store

REPOSITORY = Path(__file__).parents[2]
DRAWN = Figure("toy", "toy", "", (Panel("", "x", "y", (Curve("c", (0.0, 1.0), (0.0, 1.0)),)),))


def result(method: str, horizon: int = 24, split: str = "id") -> Result:
    cell = Cell("etth", "tcn", horizon, split, "honest", method, 0)
    return Result(cell, {"mae": 0.5, "mse": 0.3}, {"windows": 100}, {}, {}, "cpu", None, {"seconds_per_step": 0.1})


def written(results: Path, name: str, *figures: Figure) -> Path:
    path = results / "findings" / f"{name}.json"
    Finding(name, "", "", figures=figures, made_from={"cells": 7}).write(path)
    return path


def test_beside_a_table_stands_what_it_is_made_from(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """On the second stream: the first may go to a file of Markdown."""
    store, path = tmp_path / "store", written(tmp_path, "etth_all_split")
    Store(store).write(result("copy"))
    words = ("bench", "table", "etth_all_split", "--results", tmp_path, "--store")
    made = ompb(capsys, *words, store)
    assert made.err == f"Made now from 1 cell in {store}. As exported, with another --store: {path}.\n"
    assert "copy" in made.out
    shown = ompb(capsys, *words, tmp_path / "none")
    assert shown.err == f"As exported to {path}: the store {tmp_path / 'none'} has nothing that it is made from.\n"
    assert "Made now" not in made.out + shown.out


@pytest.mark.parametrize("name", ["x.png", "x", "x.svg.gz"])
def test_a_figure_is_svg_alone(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path, "delay", DRAWN)
    answer = ompb(capsys, "bench", "figure", "delay", "--results", tmp_path, "--out", tmp_path / name)
    assert_refused(answer, f"{name} does not end in .svg")
    assert not (tmp_path / name).exists()


def test_a_figure_that_never_is_and_one_that_too_little_has_run_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "store"
    bare = result("original", 24, "ood")  # the errors that curves of ours would stand beside
    Store(store).write(bare)
    Store(store).write_steps(bare.cell, {"origin": np.arange(9), "mae": np.ones(9)})
    words = ("--out", tmp_path / "x.svg", "--store", store, "--results", tmp_path)
    said = f"what is in {store} of the analysis 'timeline' "
    assert_refused(ompb(capsys, "bench", "figure", "timeline", *words), f"{said}gives no figure")
    path = written(tmp_path, "timeline", DRAWN)
    too_little = ompb(capsys, "bench", "figure", "timeline", *words)
    assert_refused(too_little, f"{said}is too little for its figure", f"as exported to {path}")
    written(tmp_path, "ablation")
    for place in (store, tmp_path / "none"):
        none = ompb(capsys, "bench", "figure", "ablation", *words[:2], "--store", place, "--results", tmp_path)
        assert_refused(none, "'ablation' has no figure, only tables", "see ompb bench table ablation")


@pytest.mark.parametrize("command", ["table", "figure"])
def test_an_analysis_of_data_finds_them_in_the_folder_named(
    command: str, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPB_DATA", str(tmp_path / "nowhere"))
    for name in ("ETTh1.csv", "ETTh2.csv"):
        (tmp_path / name).symlink_to(data_dir / name)
    places = ("--store", tmp_path / "none", "--results", tmp_path)
    words = ("bench", command, "shift", *(("--out", tmp_path / "s.svg") if command == "figure" else ()), *places)
    assert_refused(ompb(capsys, *words), "the data that the analysis 'shift' is made from are not at hand", "--folder")
    answer = ompb(capsys, *words, "--folder", tmp_path)
    assert (answer.code, answer.err) == (0, "Made now from the data at hand: etth.\n")
    assert_refused(ompb(capsys, *words), "not at hand")  # the folder was for that command alone


@pytest.mark.parametrize("words", [("report", "--out", "page"), ("bench", "page")])
def test_outside_a_clone_results_are_asked_for(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = ("results has no exported results", "run in the clone", "--results DIR", "ompb bench export")
    answer = ompb(capsys, *words)
    assert_refused(answer, *said)
    assert "Errno" not in answer.err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("list",), ("table", "delay"), ("export",), ("run", "--analysis", "delay")])
def test_a_store_is_a_folder(words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "store.txt"
    file.touch()
    assert_refused(ompb(capsys, "bench", *words, "--store", file), "'--store'", "is a file")


def test_cells_are_not_exported_among_other_things(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPB_DATA", str(tmp_path / "none"))  # a finding made from data takes a while
    store, docs = tmp_path / "store", tmp_path / "docs"
    Store(store).write(result("copy"))
    docs.mkdir()
    (docs / ".keep").touch()
    assert ompb(capsys, "bench", "export", "--store", store, "--out", docs).code == 0  # nothing that is seen
    (docs / "index.md").touch()
    before = sorted(tmp_path.rglob("*"))
    answer = ompb(capsys, "bench", "export", "--store", store, "--out", docs)
    assert_refused(answer, "docs has index.md, which is no table of cells")
    assert sorted(tmp_path.rglob("*")) == before


def test_single_steps_are_exported_with_the_data_of_the_folder_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Severities of a correlation are read off the data."""
    store, scores = Store(tmp_path / "store"), tmp_path / "scores"
    monkeypatch.setenv("OMPB_DATA", str(tmp_path / "none"))
    store.write(result("copy"))
    assert ompb(capsys, "bench", "export", "--store", store.folder, "--out", scores).code == 0
    asked: list[str | None] = []

    def noted(*_: object) -> tuple[Path, ...]:
        asked.append(os.environ.get("OMPB_DATA"))
        return ()

    monkeypatch.setattr("ompb.cli.bench.export_steps", noted)
    words = ("bench", "export", "--steps", "--store", store.folder, "--out", scores, "--folder", tmp_path)
    assert ompb(capsys, *words).code == 0
    assert asked == [str(tmp_path)]


def test_cells_whose_steps_were_not_kept_are_not_said_to_be_absent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Store(tmp_path / "store").write(result("original", 24, "ood"))
    words = ("bench", "table", "timeline", "--store", tmp_path / "store", "--results", tmp_path)
    assert_refused(ompb(capsys, *words), "no cell of the analysis 'timeline' is in", "with its single steps")
    written(tmp_path, "timeline", DRAWN)
    assert "has nothing that it is made from" in ompb(capsys, *words).err


def test_here_is_a_folder_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPB_DATA", str(tmp_path / "none"))
    Store(tmp_path / "store").write(result("copy"))
    (tmp_path / "results" / "scores").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "results" / "scores")
    assert ompb(capsys, "bench", "export", "--store", tmp_path / "store", "--out", ".").code == 0
    assert sorted(path.name for path in tmp_path.rglob("*.csv")) == ["etth.csv", "made.csv"]


def test_a_folder_without_exported_cells_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("bench", "list", "--store", tmp_path / "none", "--results")
    assert ompb(capsys, *words, REPOSITORY / "results").err == ""
    answer = ompb(capsys, *words, tmp_path)
    assert (answer.code, answer.err.count("\n")) == (0, 1)
    assert answer.err.startswith(f"There is no {tmp_path / 'scores'}: stand in the clone")
