import csv
import dataclasses
import json
import math
import os
import re
import subprocess
import sys
from dataclasses import replace
from functools import partial
from multiprocessing import active_children
from pathlib import Path
from time import process_time

import numpy as np
import pytest
import small_etth
from small_etth import HORIZON, METHODS, small_cells, write_small_etth

import ompb
from ompb.bench import backbones, methods, work
from ompb.bench.added import add_file
from ompb.bench.backbones import RunContext, backbone_label, forecaster
from ompb.bench.contract import Method, Task
from ompb.bench.executors import InTurn, Processes
from ompb.bench.methods import make
from ompb.bench.runner import Grid, Report, run
from ompb.bench.steps import MEANS
from ompb.bench.store import BARE, FACTS, Cell, Result, Store, collect, export, exported
from ompb.datasets.benchmark import load
from ompb.errors import AddedCodeError, FormatError, InputError, OptionError
from ompb.floor.files import LEFTOVER
from ompb.metrics.point import mae, mse
from ompb.paper.networks import diverged
from ompb.rows.scaler import Scaler
from ompb.tables import read_table

POINT = ["mae", "mse"]
LAW = ("nll", "crps", "ece", "coverage80", "coverage95", "width80", "width95", "winkler80", "winkler95")
ALL_METRICS = (*POINT, *LAW)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_etth(tmp_path_factory.mktemp("data"))


@dataclasses.dataclass
class Undisturbed:
    run_context: RunContext
    cells: tuple[Cell, ...]
    report: Report
    seconds: float  # of the processor


@pytest.fixture(scope="module")
def undisturbed(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    run_context = RunContext(Store(tmp_path_factory.mktemp("store")), folder)
    cells = small_cells(folder)
    start = process_time()
    report = run(cells, run_context)
    return Undisturbed(run_context, cells, report, process_time() - start)


def timeless(store: Store) -> list[Result]:
    return [replace(result, timing={}) for result in collect(store)]


def test_once_the_time_is_over_nothing_is_begun_and_what_was_begun_is_finished(
    undisturbed: Undisturbed, tmp_path: Path
) -> None:
    run_context = replace(undisturbed.run_context, store=Store(tmp_path))
    begun: list[int] = []

    def is_over() -> bool:  # after the base forecasts and one method
        begun.append(len(collect(run_context.store)))
        return begun[-1] > 0

    report = run(undisturbed.cells, run_context, is_over=is_over)
    stored = [result.cell for result in collect(run_context.store)]
    assert 0 < len(stored) < len(undisturbed.cells)
    assert sorted(report.new) == stored
    assert report.left == len(undisturbed.cells) - len(stored)
    again = run(undisturbed.cells, run_context)
    assert (again.old, again.left) == (len(stored), 0)
    assert timeless(run_context.store) == timeless(undisturbed.run_context.store)
    assert run(undisturbed.cells, replace(run_context, store=Store(tmp_path / "new")), is_over=lambda: True).new == []


def test_a_run_finishes_every_cell(undisturbed: Undisturbed) -> None:
    assert (undisturbed.report.old, undisturbed.report.failed) == (0, {})
    assert set(undisturbed.report.new) == set(undisturbed.cells)
    results = collect(undisturbed.run_context.store)
    assert [result.cell for result in results] == sorted(undisturbed.cells)
    for result in results:
        assert set(result.metrics) == {*ALL_METRICS, BARE, *(MEANS if result.cell.method == "ompb" else ())}
        assert result.facts == {"windows": 180 - 96 - HORIZON + 1}
        assert {"ompb", "numpy", "python"} <= result.versions.keys()
        assert result.timing["seconds_per_step"] > 0
        assert undisturbed.run_context.store.read(result.cell) == result


def test_ompb_scores_as_a_backtest_does(undisturbed: Undisturbed, folder: Path) -> None:
    data = load("etth", folder)
    scaler = Scaler.fit(data.source)
    source, rows = (scaler.standardise(part) for part in (data.source, data.stream("ood", HORIZON)))
    forecaster = ompb.Ridge.fit(source, data.context, HORIZON)
    calibrator = ompb.Calibrator.fit(forecaster, source, context=data.context, horizon=HORIZON, season=data.season)
    backtest = ompb.backtest(calibrator, forecaster, rows)
    complete = np.isfinite(backtest.outcome).all(axis=(1, 2))
    forecast, outcome = backtest.mean[complete], backtest.outcome[complete]
    found = undisturbed.run_context.store.read(Cell("etth", "ridge", HORIZON, "ood", "honest", "ompb", 0))
    assert found is not None
    assert found.metrics["mae"] == pytest.approx(mae(forecast, outcome), rel=1e-5)  # base forecasts are kept in float32
    assert found.metrics["mse"] == pytest.approx(mse(forecast, outcome), rel=1e-5)


def test_finished_cells_are_not_run_again(undisturbed: Undisturbed) -> None:
    before = collect(undisturbed.run_context.store)
    report = run(undisturbed.cells, undisturbed.run_context)
    assert (report.old, report.new, report.failed) == (len(before), [], {})
    assert collect(undisturbed.run_context.store) == before  # timing included


def test_killing_changes_nothing(undisturbed: Undisturbed, folder: Path, tmp_path: Path) -> None:
    longest = undisturbed.seconds / 10
    killed = subprocess.run(
        [sys.executable, small_etth.__file__, folder, tmp_path, str(longest)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(killed.stdout) > small_etth.KILLS // 2
    run_context = RunContext(Store(tmp_path), folder)
    assert 0 < len(collect(run_context.store)) < len(undisturbed.cells)  # they did get on, and not to the end
    report = run(undisturbed.cells, run_context)
    assert not report.failed
    assert timeless(run_context.store) == timeless(undisturbed.run_context.store)


def test_several_processes_give_the_same(undisturbed: Undisturbed, folder: Path, tmp_path: Path) -> None:
    lines: list[str] = []
    ticks: list[tuple[int, int]] = []
    run_context = RunContext(Store(tmp_path), folder)
    run(
        undisturbed.cells,
        run_context,
        executor=Processes(2),
        progress=lambda *tick: ticks.append(tick),
        log=lines.append,
    )
    assert timeless(run_context.store) == timeless(undisturbed.run_context.store)
    assert ticks == [(done, len(undisturbed.cells)) for done in range(1, len(undisturbed.cells) + 1)]
    assert sorted(lines) == sorted(f"{cell}: finished" for cell in undisturbed.cells)


def test_what_stops_a_run_ends_its_processes(undisturbed: Undisturbed, folder: Path, tmp_path: Path) -> None:
    """Else the program would wait for them at its end, for ever."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        run(undisturbed.cells, RunContext(Store(tmp_path), folder), executor=Processes(2), progress=stop)
    assert active_children() == []
    assert stopped.traceback  # whose frames live on until here, and all that they hold


def test_splits_share_what_the_source_teaches(
    undisturbed: Undisturbed, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def counting(name: str, task: Task) -> Method:
        made.append(name)
        return make(name, task)

    monkeypatch.setattr(work, "make", counting)
    run_context = RunContext(Store(tmp_path), folder)
    run(undisturbed.cells, run_context)
    assert sorted(made) == sorted({(c.protocol, c.method): c.method for c in undisturbed.cells}.values())
    apart = RunContext(Store(tmp_path / "apart"), folder)
    for cell in undisturbed.cells:
        run([cell], apart)
    assert timeless(run_context.store) == timeless(apart.store)


def test_progress_follows_every_cell(folder: Path, tmp_path: Path) -> None:
    run_context = RunContext(Store(tmp_path), folder)
    cells = Grid.of(["etth"], ["ridge"], [HORIZON], methods=["bias", "copy"], folder=folder).cells
    stored: list[int] = []
    run(cells, run_context, progress=lambda *_: stored.append(len(collect(run_context.store))))
    assert stored == list(range(1, len(cells) + 1))


def test_a_method_that_cannot_be_copied_says_so(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "make", lambda name, task: lambda snapshot: snapshot)  # noqa: ARG005
    cells = Grid.of(["etth"], ["ridge"], [HORIZON], methods=["copy"], folder=folder).cells
    report = run(cells, RunContext(Store(tmp_path), folder))
    assert report.failed.keys() == set(cells)
    assert all("'copy' cannot be copied" in problem for problem in report.failed.values())


def test_a_damaged_result_is_run_again(undisturbed: Undisturbed, folder: Path, tmp_path: Path) -> None:
    run_context = RunContext(Store(tmp_path), folder)
    cell = Cell("etth", "ridge", HORIZON, "id", "honest", "original", 0)
    run([cell], run_context)
    (file,) = (tmp_path / "cells").iterdir()
    text = file.read_text()
    for damaged in (text[: len(text) // 2], "", "[]", json.dumps({"cell": {}})):
        file.write_text(damaged)
        with pytest.raises(FormatError, match="run its cell again"):
            collect(run_context.store)
        assert run([cell], run_context).new == [cell]
    assert timeless(run_context.store) == [r for r in timeless(undisturbed.run_context.store) if r.cell == cell]


def test_leftovers_are_swept_once_they_are_old(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "base").mkdir()
    old, young = (tmp_path / "base" / f".ompb-{16 * digit}.part" for digit in "ab")
    for file in (old, young):
        file.touch()
    past = young.stat().st_mtime - 2 * LEFTOVER
    os.utime(old, (past, past))
    run([], RunContext(Store(tmp_path), folder))
    assert (old.exists(), young.exists()) == (False, True)


def test_a_cell_that_fails_does_not_stop_the_others(folder: Path, tmp_path: Path) -> None:
    run_context = RunContext(Store(tmp_path), folder)
    good = Cell("etth", "ridge", HORIZON, "id", "honest", "last", 0)
    unfit = replace(good, method="ompb", protocol="full")
    homeless = replace(good, dataset="ili")
    report = run([unfit, homeless, good], run_context)
    assert report.new == [good]
    assert "learns from rows only" in report.failed[unfit]
    assert "ILINet" in report.failed[homeless]


def test_a_grid_is_checked_before_anything_runs(folder: Path) -> None:
    for wrong, words in (
        ({"horizons": [170]}, "too few"),
        ({"splits": ["ood_far"]}, "no split 'ood_far'"),
        ({"protocols": ["soon"]}, "protocol = 'soon'"),
        ({"methods": ["magic"]}, "no method 'magic'"),
        ({"seeds": [-1]}, "seed = -1"),
        ({"methods": ["ompb"], "protocols": ["one-step"]}, "learns from rows only"),
    ):
        with pytest.raises(InputError if "too few" in words else OptionError, match=words):
            Grid.of(["etth"], ["ridge"], **{"horizons": [HORIZON], "folder": folder, **wrong})  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="no data set 'nothing'"):
        Grid.of(["nothing"], ["ridge"], folder=folder)
    grid = Grid.of(["etth"], ["ridge"], [HORIZON], protocols=["one-step"], folder=folder)
    assert "ompb" in {cell.method for cell in grid.left_out}
    assert {*METHODS, "ompb-paper"} <= {cell.method for cell in grid.cells}


def test_history_is_used_where_a_split_continues_the_source_and_nowhere_else(folder: Path) -> None:
    data = load("etth", folder)
    home = read_table(folder / "ETTh1.csv").select(data.channels).values
    np.testing.assert_array_equal(np.concatenate([data.source, data.streams["id"]]), home)
    asked = partial(Grid.of, ["etth"], ["ridge"], [HORIZON], folder=folder)
    assert [cell.split for cell in asked(methods=["ompb+history"], splits=["id"]).cells] == ["id"]
    with pytest.raises(OptionError, match="does not go on where the source ends"):
        asked(methods=["ompb+history"], splits=["id", "ood"])
    grid = asked(methods=["all"], splits=["id", "ood"])
    assert [cell.split for cell in grid.cells if cell.method == "ompb+history"] == ["id"]
    assert [cell.split for cell in grid.left_out if cell.method == "ompb+history"] == ["ood"]


def test_export_has_a_line_per_cell(undisturbed: Undisturbed, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "scores"
    count = export(undisturbed.run_context.store, folder)
    (table,) = folder.iterdir()
    with table.open(newline="") as file:
        lines = list(csv.DictReader(file))
    results = collect(undisturbed.run_context.store)
    assert len(lines) == count == len(results)
    metrics = sorted({name for result in results for name in result.metrics})
    cell_fields = [field.name for field in dataclasses.fields(Cell)]
    assert list(lines[0]) == [*cell_fields, *FACTS, *metrics, "seconds_per_step", "made"]
    for result, line in zip(results, lines, strict=True):
        assert [line[name] for name in cell_fields] == [str(value) for value in dataclasses.astuple(result.cell)]
        assert {name for name in metrics if line[name]} == set(result.metrics)
        assert {name: line[name] for name in FACTS if line[name]} == {
            name: str(count) for name, count in result.facts.items()
        }
        for metric, value in result.metrics.items():
            assert float(line[metric]) == pytest.approx(value, rel=5e-6)
        assert float(line["seconds_per_step"]) == pytest.approx(result.timing["seconds_per_step"], rel=5e-3)


def test_single_steps_are_kept_on_request(folder: Path, tmp_path: Path) -> None:
    cell = Cell("etth", "ridge", HORIZON, "id", "honest", "copy", 0)
    doings: list[str] = []
    store = Store(tmp_path)
    run([cell], RunContext(store, folder, per_step=True), executor=InTurn(doings.append))
    steps, result = store.steps(cell), store.read(cell)
    assert steps is not None
    assert result is not None
    count = result.facts["windows"]
    assert steps["origin"].tolist() == list(range(95, 95 + count))
    for metric in POINT:
        assert steps[metric].mean() == pytest.approx(result.metrics[metric])
    assert steps["shown_origin"].tolist() == [95 + count // 4, 95 + count // 2, 95 + 3 * count // 4]
    gaps = np.abs(steps["shown_mean"] - steps["shown_outcome"]).mean(axis=(1, 2))
    assert gaps == pytest.approx(steps["mae"][steps["shown_origin"] - 95], rel=1e-5)
    assert (steps["shown_lower"] < steps["shown_mean"]).all()
    assert doings == ["forecasting source", "forecasting id", "copy learns from the source", str(cell)]
    other = Store(tmp_path / "other")
    run_context = RunContext(other, folder)
    run([cell], run_context)
    assert other.steps(cell) is None
    assert run([cell], replace(run_context, per_step=True)).new == [cell]  # finished, but without its steps
    again = other.steps(cell)
    assert again is not None
    assert all((again[name] == steps[name]).all() for name in steps)
    assert run([cell], replace(run_context, per_step=True)).new == []


def test_signals_of_a_method_are_kept_step_by_step(folder: Path, tmp_path: Path) -> None:
    cell = Cell("etth", "ridge", HORIZON, "id", "honest", "ompb", 0)
    run([cell], RunContext(Store(tmp_path), folder, per_step=True))
    steps = Store(tmp_path).steps(cell)
    assert steps is not None
    parts = steps["source_risk"] + steps["gamma"] + 0.5 * steps["disagreement"]
    assert steps["value"] == pytest.approx(parts, rel=1e-5)
    assert {"novelty", "gate", "expected_error", "warnings", "tau_y"} <= steps.keys()


def test_options_in_a_name_reach_the_method(folder: Path, tmp_path: Path) -> None:
    names = ("original", "ompb", 'ompb[gate="open"]', "ompb[backbone_prior=1.0]")
    cells = [Cell("etth", "ridge", HORIZON, "ood", "honest", name, 0) for name in names]
    store = Store(tmp_path)
    run(cells, RunContext(store, folder))
    bare, plain, opened, closed = (result.metrics["mae"] for result in map(store.read, cells) if result is not None)
    assert closed == bare
    assert len({bare, plain, opened}) == 3
    wrong = [replace(cells[0], method=name) for name in ("copy[rate=1]", 'ompb[gates="open"]')]
    copied, gated = run(wrong, RunContext(store, folder)).failed.values()
    assert "'rate'; accepted: no options." in copied
    assert "unknown option 'gates'" in gated


def test_a_torch_backbone_is_trained_once(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch_training = pytest.importorskip("ompb.forecasters.torch.training")
    run_context = RunContext(Store(tmp_path), folder)
    cell = Cell("etth", "tcn", HORIZON, "id", "honest", "original", 0)
    assert run([cell], run_context).new == [cell]
    (trained,) = (tmp_path / "backbones").iterdir()
    assert trained.suffix == ".safetensors"
    monkeypatch.setattr(torch_training, "_Run", None)  # training again would fail
    elsewhere = replace(cell, split="ood")
    assert run([cell, elsewhere], run_context).new == [elsewhere]
    assert len(list((tmp_path / "base").iterdir())) == 3


def test_base_forecasts_are_found_by_what_made_them(folder: Path, tmp_path: Path) -> None:
    def key(cell: Cell, run_context: RunContext) -> str:
        return backbones._Plan.of(cell, load(cell.dataset, run_context.folder), run_context).key

    pytest.importorskip("torch")
    cell = Cell("etth", "tcn", HORIZON, "id", "honest", "original", 0)
    run_context = RunContext(Store(tmp_path), folder)
    others = [
        key(replace(cell, backbone="autoformer"), run_context),
        key(replace(cell, horizon=HORIZON + 1), run_context),
        key(replace(cell, seed=1), run_context),
        key(cell, replace(run_context, device="cuda")),
    ]
    same = key(replace(cell, split="ood", method="copy", protocol="full"), run_context)
    assert key(cell, run_context) == same
    assert len({same, *others}) == 5
    checkpoints = [tmp_path / name for name in ("a.safetensors", "b.safetensors", "c.safetensors")]
    for path, content in zip(checkpoints, (b"one", b"one", b"two"), strict=True):
        path.write_bytes(content)
    partial = replace(cell, backbone="gpt4ts[gpt2-partial]")
    a, b, c = (key(partial, replace(run_context, gpt2_checkpoint=str(path))) for path in checkpoints)
    assert a == b != c  # content counts, not place


def test_backbones_by_name() -> None:
    assert backbone_label("ridge", None) == "ridge"
    with pytest.raises(OptionError, match=r"no backbone 'lstm'; accepted: tcn, .*, ridge"):
        backbone_label("lstm", None)
    with pytest.raises(OptionError, match="--gpt2-weights"):
        backbone_label("gpt4ts", None)
    pytest.importorskip("torch")
    labels = {weights: backbone_label("gpt4ts", weights) for weights in ("gpt2", "gpt2-partial", "random")}
    assert labels == {"gpt2": "gpt4ts", "gpt2-partial": "gpt4ts[gpt2-partial]", "random": "gpt4ts[random]"}
    with pytest.raises(OptionError, match="weights = 'gpt3'"):
        backbone_label("gpt4ts", "gpt3")


def test_a_real_cell(data_dir: Path, tmp_path: Path) -> None:
    """ETTh, ridge, H = 24: known to three digits."""
    if not list(data_dir.glob("ETTh1.csv")):
        pytest.skip(f"ETTh1.csv is not in {data_dir}")
    run_context = RunContext(Store(tmp_path), data_dir)
    grid = Grid.of(["etth"], ["ridge"], [24], ["ood"], methods=["original", "ompb"], folder=data_dir)
    run(grid.cells, run_context)
    scores = {result.cell.method: result.metrics for result in collect(run_context.store)}
    assert scores["original"]["mae"] == pytest.approx(0.6629, abs=5e-4)
    assert scores["ompb"]["mae"] < 0.56
    assert abs(scores["ompb"]["coverage80"] - 0.8) < 0.03


MINE = """
import numpy as np
from ompb.bench.backbones import forecaster
from ompb.bench.contract import Prediction
from ompb.bench.methods import method


@forecaster("mean of the window")
def window_mean(source, context, horizon, seed):
    return lambda windows: np.repeat(windows.mean(axis=1, keepdims=True), horizon, axis=1)


class Doubled:
    settings = {}

    def step(self, snapshot):
        return Prediction(2 * snapshot.base)


@method("doubled")
def doubled(task):
    return Doubled()
"""


def test_a_file_of_the_user_joins_the_benchmark(folder: Path, tmp_path: Path) -> None:
    """In a process of its own, so that its names do not stay in this one."""
    mine = tmp_path / "mine.py"
    mine.write_text(MINE)
    store = Store(tmp_path / "store")
    words = [
        "bench",
        "run",
        "--add",
        mine,
        "--dataset",
        "etth",
        "--backbone",
        "mean of the window",
        "--horizon",
        HORIZON,
    ]
    words += ["--method", "original", "doubled", "ompb", "--split", "ood", "--jobs", 2]
    words += ["--folder", folder, "--store", store.folder]
    command = [sys.executable, "-m", "ompb", *map(str, words)]
    subprocess.run(command, check=True)
    error = {result.cell.method: result.metrics["mae"] for result in collect(store)}
    assert error.keys() == {"original", "doubled", "ompb"}
    data = load("etth", folder)
    rows = Scaler.fit(data.source).standardise(data.stream("ood", HORIZON))
    every = np.lib.stride_tricks.sliding_window_view(rows, data.context + HORIZON, axis=0)
    mean, outcome = every[..., : data.context].mean(axis=-1)[..., None], every[..., data.context :]
    assert error["original"] == pytest.approx(np.abs(outcome - mean).mean(), rel=1e-5)
    assert error["doubled"] == pytest.approx(np.abs(outcome - 2 * mean).mean(), rel=1e-5)
    assert error["ompb"] < error["original"]
    mine.write_text(MINE.replace("2 * snapshot.base", "3 * snapshot.base"))
    again = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "3 cells finished, 0 were there already" in again.stdout  # none of another version is left
    tripled = {result.cell.method: result.metrics["mae"] for result in collect(store)}
    assert tripled["doubled"] == pytest.approx(np.abs(outcome - 3 * mean).mean(), rel=1e-5)
    assert tripled["original"] == error["original"]


def test_a_program_may_add_itself(folder: Path, tmp_path: Path) -> None:
    """Processes that it starts run it as their main program first."""
    program = tmp_path / "program.py"
    program.write_text(
        MINE
        + f"""
if __name__ == "__main__":
    from pathlib import Path
    from ompb.bench.backbones import RunContext
    from ompb.bench.executors import Processes
    from ompb.bench.runner import Grid, run
    from ompb.bench.store import Store

    folder = Path({str(folder)!r})
    cells = Grid.of(["etth"], ["mean of the window"], [{HORIZON}], methods=["doubled"], folder=folder).cells
    report = run(cells, RunContext(Store(Path("store")), folder, added=(Path(__file__),)), executor=Processes(2))
    print(len(report.new), report.failed)
"""
    )
    made = subprocess.run([sys.executable, program.name], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert made.stdout == "2 {}\n"


BROKEN = """
import numpy as np
from ompb.bench.backbones import forecaster
from ompb.bench.contract import Prediction
from ompb.bench.methods import method


class Says:
    settings = {}

    def __init__(self, factor):
        self.factor = factor

    def step(self, snapshot):
        return Prediction(snapshot.base * self.factor["factor"])


method("raises in step")(lambda task: Says({}))
method("says nothing finite")(lambda task: Says({"factor": np.nan}))
method("raises at once")(lambda task: 1 / 0)
method("returns nothing")(lambda task: None)


@forecaster("raises")
def raising(source, context, horizon, seed):
    return lambda windows: windows.no_such_thing


class GoesAstray(Says):
    said = 0

    def step(self, snapshot):
        self.said += 1
        return super().step(snapshot) if self.said <= 3 else Prediction(np.full_like(snapshot.base, -np.inf))


class IsSureOfNothing(Says):
    def step(self, snapshot):
        return Prediction(snapshot.base, sd=np.full_like(snapshot.base, np.nan))


class SaysAnArray(Says):
    def step(self, snapshot):
        return snapshot.base


class Grows(Says):
    said = 0

    def step(self, snapshot):
        self.said += 1
        return Prediction(snapshot.base * 1e5**self.said)


method("returns an array")(lambda task: SaysAnArray({}))
method("grows")(lambda task: Grows({}))
method("goes astray")(lambda task: GoesAstray({"factor": 1.0}))
method("is sure of nothing")(lambda task: IsSureOfNothing({}))
"""


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What `BROKEN` adds; its names do not stay beyond the test."""
    for module, registry in ((methods, "_METHODS"), (backbones, "_FITTED")):
        known = getattr(module, registry)
        monkeypatch.setattr(module, registry, replace(known, entered=dict(known.entered)))
    monkeypatch.delitem(sys.modules, "added_broken", raising=False)
    (tmp_path / "broken.py").write_text(BROKEN)
    add_file(tmp_path / "broken.py")


@pytest.mark.parametrize(
    ("backbone", "name", "words"),
    [
        ("ridge", "raises in step", r"'raises in step' failed with KeyError: 'factor' \(broken\.py, line 15\)"),
        ("ridge", "says nothing finite", "forecast 1 of the stream is not finite"),
        ("ridge", "is sure of nothing", "nll, crps, .* come to no finite number; return a positive sd"),
        ("ridge", "raises at once", r"'raises at once' failed with ZeroDivisionError: .* \(broken\.py, line 20\)"),
        ("ridge", "returns an array", r"a step returned an array of shape \(6, 7\); return an .*Prediction"),
        ("ridge", "returns nothing", "'returns nothing' returned None; return an object with the method `step`"),
        ("raises", "last", r"'raises' failed with AttributeError: .* \(broken\.py, line 26\)"),
    ],
)
@pytest.mark.usefixtures("broken")
def test_what_a_user_added_and_fails_is_a_failed_cell(
    backbone: str, name: str, words: str, folder: Path, tmp_path: Path
) -> None:
    bad = Cell("etth", backbone, HORIZON, "id", "honest", name, 0)
    good = replace(bad, backbone="ridge", method="last")
    report = run([bad, good], RunContext(Store(tmp_path), folder))
    assert report.new == [good]
    assert re.search(words, report.failed[bad])


@pytest.mark.usefixtures("broken")
def test_a_method_that_diverges_has_a_cell_that_says_so(folder: Path, tmp_path: Path) -> None:
    """Were it missing, a method would be ranked by the streams that it survived."""
    lost = Cell("etth", "ridge", HORIZON, "id", "honest", "goes astray", 0)
    bare = replace(lost, method="original")
    run_context = RunContext(Store(tmp_path), folder, per_step=True)
    report = run([lost, bare], run_context)
    assert (report.new, report.diverged) == ([lost, bare], [lost])
    assert report.told() == [f"{lost} diverged: forecasts grew without end, and so the error is infinite."]
    assert run([lost, bare], run_context).old == 2
    assert export(run_context.store, tmp_path / "scores") == 2
    for known in (collect(run_context.store), exported(tmp_path / "scores")):
        found = {result.cell: result for result in known}
        assert found[lost].metrics == {"mae": math.inf, "mse": math.inf, BARE: found[lost].metrics[BARE]}
        assert found[lost].metrics[BARE] == pytest.approx(found[bare].metrics["mae"], rel=1e-5)
        assert found[lost].facts == found[bare].facts
        assert diverged({0: found[lost]}, {0: found[bare]}) == {0}
    steps = run_context.store.steps(lost)
    assert steps is not None
    assert len(steps["mae"]) == 3


@pytest.mark.usefixtures("broken")
def test_what_grows_by_and_by_diverges_before_its_squares_are_too_large(folder: Path, tmp_path: Path) -> None:
    slow = Cell("etth", "ridge", HORIZON, "id", "honest", "grows", 0)
    report = run([slow], RunContext(Store(tmp_path), folder))
    assert (report.diverged, report.failed) == ([slow], {})
    (found,) = collect(Store(tmp_path))
    assert found.metrics["mae"] == math.inf


def test_a_file_that_cannot_be_run_says_where(tmp_path: Path) -> None:
    for content, words in (
        ("\nimport no_such_package\n", r"No module named 'no_such_package' \(wrong\.py, line 2\)\."),
        ("\n1 +\n", r"SyntaxError: .* \(wrong\.py, line 2\)\."),
    ):
        (tmp_path / "wrong.py").write_text(content)
        with pytest.raises(AddedCodeError, match=words):
            add_file(tmp_path / "wrong.py")
        assert "added_wrong" not in sys.modules


def test_an_empty_store_is_not_exported_over_a_table(tmp_path: Path) -> None:
    table = tmp_path / "scores" / "etth.csv"
    table.parent.mkdir()
    table.write_text("kept")
    with pytest.raises(OptionError, match="no finished cell"):
        export(Store(tmp_path / "store"), table.parent)
    assert table.read_text() == "kept"


def test_a_file_that_is_not_there_or_not_python_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"no file .*absent\.py"):
        add_file(tmp_path / "absent.py")
    (tmp_path / "mine.txt").write_text(MINE)
    with pytest.raises(OptionError, match=r"ends in \.py"):
        add_file(tmp_path / "mine.txt")


def test_a_name_is_taken_once() -> None:
    for taken in ("tcn", "ridge"):
        with pytest.raises(OptionError, match=f"'{taken}' already"):
            forecaster(taken)(lambda *_: lambda windows: windows)
