from pathlib import Path

import numpy as np
import polars as pl
import pytest
from tables_on_disk import assert_refused, ompb, stamps

from ompb.bench.findings import Curve, Figure, Finding, Panel
from ompb.datasets.etth import CHANNELS

ROWS, HORIZON = 700, 4


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with small files of etth."""
    place = tmp_path_factory.mktemp("data")
    for number in (1, 2):
        wave = np.sin(2 * np.pi * np.arange(ROWS) / 24)[:, None]
        values = number * wave + np.random.default_rng(number).normal(0, 0.3, (ROWS, len(CHANNELS)))
        columns = {"date": stamps(ROWS), **dict(zip(CHANNELS, values.T, strict=True))}
        pl.DataFrame(columns).write_csv(place / f"ETTh{number}.csv", datetime_format="%Y-%m-%d %H:%M:%S")
    return place


def small(folder: Path, store: Path) -> tuple[object, ...]:
    return ("bench", "run", "--dataset", "etth", "--backbone", "ridge", "--folder", folder, "--store", store)


def test_run_list_table_and_export(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMPB_DATA", str(tmp_path))  # one more finding is made where the public data are at hand
    store = tmp_path / "store"
    words = (
        *("--horizon", 4, 6, "--split", "id", "ood", "--method", "original", "copy"),
        *("--protocol", "honest", "one-step", "--seed", 0, 1, "--log"),
    )
    answer = ompb(capsys, *small(folder, store), *words)
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.count(": finished") == 32
    assert "etth ridge 6 ood one-step copy 1: finished" in answer.out
    assert f"32 cells finished, 0 were there already, 0 failed: {store}" in answer.out

    again = ompb(capsys, *small(folder, store), *words)
    assert "0 cells finished, 32 were there already" in again.out

    listed = ompb(capsys, "bench", "list", "--store", store, "--results", tmp_path)
    assert f"32 finished cells in {store}\n" in listed.out
    assert f"among the 0 exported to {tmp_path / 'scores'}" in listed.out
    (line,) = (line for line in listed.out.splitlines() if line.startswith("etth ridge one-step"))
    assert line.split()[3:] == ["4", "6", "id", "ood", "0", "1", "2", "16"]

    table = ompb(capsys, "bench", "table", "etth_all_split", "--store", store, "--format", "markdown")
    assert table.code == 0
    assert table.out.count("### etth_all_split: etth, protocol ") == 2
    assert table.out.count("LEAKS: a delay of 1 shows a method H-1 of the H rows it is scored on.") == 1

    out = tmp_path / "scores"
    exported = ompb(capsys, "bench", "export", "--store", store, "--out", out)
    finding = tmp_path / "findings" / "etth_all_split.json"
    assert exported.out == f"32 cells: {out}\nFinding: {finding}\n"
    assert Finding.read(finding).made_from["cells"] == 32
    assert len(pl.read_csv(out)) == 32
    fresh = ompb(capsys, "bench", "list", "--store", tmp_path / "none", "--results", tmp_path)
    assert f"0 finished cells in {tmp_path / 'none'}\n" in fresh.out
    assert f"among the 32 exported to {out}" in fresh.out
    (line,) = (line for line in fresh.out.splitlines() if line.startswith("etth_all_split "))
    assert line.split()[-2:] == ["32", "cells"]
    assert pl.read_csv(tmp_path / "made.csv").columns == ["id", "commit", "device", "versions", "trained_on"]


def test_a_method_that_does_not_fit_is_left_out_of_all_and_refused_by_name(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    one = (*small(folder, tmp_path), "--horizon", HORIZON, "--split", "id", "--protocol", "full")
    assert_refused(ompb(capsys, *one, "--method", "ompb"), "learns from rows only")
    assert not list(tmp_path.iterdir())
    answer = ompb(capsys, *one, "--method", "all")
    *reasons, counted = answer.out.splitlines()
    assert reasons[0].startswith("ompb, ompb+history left out: the live head learns from rows only")
    (trains,) = (reason for reason in reasons if " left out: it trains the weights of a network" in reason)
    assert {"solid", "gd", "tafas"} <= set(trains.replace(",", "").split())
    assert counted.startswith("11 cells finished")


def test_failed_cells_give_exit_code_1_and_a_line_for_each_cause(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--horizon", HORIZON, "--seed", 0, 1, 2, "--method", "last", 'ompb[gates="open"]', "copy[rate=1]")
    answer = ompb(capsys, *small(folder, tmp_path), *words, "--split", "id")
    assert answer.code == 1
    first, second, counted = answer.out.splitlines()
    named = "etth ridge 4 id honest {0} 0, etth ridge 4 id honest {0} 1 and 1 more failed: "
    assert first.startswith(named.format('ompb[gates="open"]') + "unknown option 'gates'; did you mean 'gate'?")
    assert second.startswith(named.format("copy[rate=1]") + "the method 'copy[rate=1]' cannot be made")
    assert counted == f"3 cells finished, 0 were there already, 6 failed: {tmp_path}"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("--backbone", "lstm"), "no backbone 'lstm'"),
        (("--backbone", "gpt4ts"), "--gpt2-weights"),
        (("--dataset", "ett"), "no data set 'ett'"),
        (("--split", "far"), "no split 'far'"),
        (("--protocol", "delay=0"), "delay=0"),
        (("--method", "magic"), "no method 'magic'"),
        (("--jobs", "0"), "jobs = 0"),
        (("--seed", "one"), "--seed"),
    ],
)
def test_bad_choices_are_refused(
    wrong: tuple[str, str], words: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    choice = {
        "--dataset": "etth",
        "--backbone": "ridge",
        "--horizon": str(HORIZON),
        "--method": "last",
        **dict([wrong]),
    }
    arguments = [word for pair in choice.items() for word in pair]
    assert_refused(ompb(capsys, "bench", "run", *arguments, "--folder", folder, "--store", tmp_path), words)


def test_an_analysis_from_its_cells_to_its_picture(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    store, results = tmp_path / "store", tmp_path / "results"
    words = ("bench", "run", "--analysis", "delay", "--quick", "--folder", folder, "--store", store)
    chosen = (*words, "--method", "original", "copy", "--protocol", "honest", "delay=12")
    assert "3 cells finished, 0 were there already" in ompb(capsys, *chosen).out
    assert "0 cells finished, 3 were there already" in ompb(capsys, *chosen).out

    listed = ompb(capsys, "bench", "list", "--store", store, "--results", results, "--folder", tmp_path).out
    (line,) = (line for line in listed.splitlines() if line.startswith("delay "))
    assert line.split() == ["delay", "0", "/", "168", "3", "/", "19"]  # ILI has no profile; steps are not exported
    (line,) = (line for line in listed.splitlines() if line.startswith("partial "))
    assert line.split()[7:10] == ["2", "/", "17"]  # cells are shared

    table = ompb(capsys, "bench", "table", "delay", "--store", store, "--results", results)
    assert "LEAKS: a delay of 12" in table.out
    assert "Missing: 16 of 19 cells" in table.out
    assert "copy      H/2" in table.out

    picture = tmp_path / "delay.svg"
    assert ompb(capsys, "bench", "figure", "delay", "--out", picture, "--store", store).out == f"Figure: {picture}\n"
    assert "<svg" in picture.read_text(encoding="utf-8")

    written = ompb(capsys, "bench", "export", "--store", store, "--out", results / "scores").out
    assert f"Finding: {results / 'findings' / 'delay.json'}" in written
    again = ompb(capsys, "bench", "table", "delay", "--store", tmp_path / "none", "--results", results)
    assert again.out == table.out

    fresh = ("bench", "list", "--store", tmp_path / "none", "--results", results, "--folder", tmp_path)
    lines = {line.partition(" ")[0]: line.split()[1:] for line in ompb(capsys, *fresh).out.splitlines()}
    assert lines["delay"] == ["0", "/", "168", "0", "/", "19", "3", "cells"]
    assert lines["partial"][6:] == ["0", "/", "17", "2", "/", "17", "2", "cells"]


def test_an_analysis_asks_for_no_cell_that_the_data_are_too_short_for(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """PROCEED at 72 rows of ILI, 2 splits: as published around 3 backbones by 2 protocols, tuned around 2 by one.

    Around these two, honestly, both with two seeds more.
    """
    pytest.importorskip("torch")
    asked = []
    for folder in (data_dir, tmp_path):
        listed = ompb(capsys, "bench", "list", "--store", tmp_path, "--results", tmp_path, "--folder", folder).out
        (line,) = (line for line in listed.splitlines() if line.startswith("ili_results "))
        asked.append(int(line.split()[3]))
    there, anywhere = asked
    assert anywhere - there == 2 * (3 * 2 + 2 * 1 + 2 * 2 * 2)


def test_several_analyses_as_far_as_the_time_allows(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (
        "bench",
        "run",
        "--analysis",
        "etth_all_split",
        "delay",
        "--method",
        "copy",
        "--dataset",
        "etth",
        "--quick",
    )
    answer = ompb(capsys, *words, "--minutes", 0, "--folder", folder, "--store", tmp_path)
    assert "0 cells finished, 0 were there already, 0 failed" in answer.out
    assert "7 cells are left: the time was over. The same command goes on with them." in answer.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--analysis", "main"), "no analysis 'main'; accepted: etth_all_split"),
        (("--dataset", "etth"), "pass --dataset and --backbone, or --analysis"),
        (("--dataset", "etth", "--backbone", "ridge", "--quick"), "--quick is for an analysis"),
    ],
)
def test_bad_choices_of_analyses_are_refused(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(ompb(capsys, "bench", "run", *words, "--store", tmp_path), said)


def test_a_table_or_figure_needs_a_known_name_and_something_to_show(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ("--store", tmp_path, "--results", tmp_path)
    assert_refused(ompb(capsys, "bench", "table", "main", *places), "no analysis 'main'", "ili_results")
    said = ("no cell of the analysis", "ompb bench run --analysis ili_results --quick", "--results DIR")
    assert_refused(ompb(capsys, "bench", "table", "ili_results", *places), *said)


def test_several_figures_bear_their_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    panel = Panel("", "x", "y", (Curve("c", (0.0, 1.0), (0.0, 1.0)),))
    figures = tuple(Figure(name, name, "", (panel,)) for name in ("one", "two"))
    Finding("delay", "", "", figures=figures).write(tmp_path / "findings" / "delay.json")
    places = ("--store", tmp_path, "--results", tmp_path)
    answer = ompb(capsys, "bench", "figure", "delay", "--out", tmp_path / "d.svg", *places)
    assert [Path(line.removeprefix("Figure: ")).name for line in answer.out.splitlines()] == ["d-one.svg", "d-two.svg"]


def test_an_empty_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listed = ompb(capsys, "bench", "list", "--store", tmp_path).out
    assert "0 finished cells" in listed
    assert "Methods: original" in listed


def test_bench_alone_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ompb(capsys, "bench")
    assert answer.code == 0
    for command in ("run", "list", "table", "figure", "export", "page"):
        assert command in answer.out


def test_the_two_options_of_devices_name_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    words = " ".join(ompb(capsys, "bench", "run", "--help").out.split())
    assert "networks are trained unless --train-on names another" in words
    assert "by default that of --device" in words
