import dataclasses
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest
from made_up import result, runs, with_steps, write_etth

from ompb.bench.findings import Curve, Figure, Finding, Panel
from ompb.bench.store import FACTS, Cell, Store, export, exported
from ompb.datasets.benchmark import BenchmarkData, load
from ompb.errors import OptionError
from ompb.floor import registry
from ompb.paper import running
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.catalogue import ANALYSES
from ompb.paper.running import QUICK, Exported, export_all, export_steps, finding_in, finding_of, possible, runnable

SHORT, LONG = result("copy", 0.1).cell, result("copy", 0.2, horizon=96).cell


def cells(scope: Scope) -> list[Cell]:
    return [SHORT] if scope.quick else [LONG, dataclasses.replace(LONG, seed=1)]


def reduce(runs: Runs, scope: Scope) -> Finding:
    return Finding("toy", "", "quick" if scope.quick else "full", made_from={"cells": len(runs.found(cells(scope)))})


TOY = Analysis("toy", "", (), cells, reduce)


def stored(folder: Path, *results: object) -> Store:
    store = Store(folder)
    for one in results:
        store.write(one)  # type: ignore[arg-type]
    return store


def written(done: Exported) -> tuple[int, int]:
    """How many cells and findings."""
    return done.cells, len(done.findings)


def test_the_full_scope_first_then_the_quick_one_then_the_exported_finding(tmp_path: Path) -> None:
    assert finding_in(runs([]), TOY) is None
    store, results = tmp_path / "store", tmp_path / "results"
    with pytest.raises(OptionError, match=r"no cell of the analysis 'toy' is in .*--analysis toy --quick"):
        finding_of(TOY, Store(store), results)
    quick = finding_of(TOY, stored(store, result("copy", 0.1)), results)
    assert (quick.finding.text, quick.is_exported) == ("quick", False)
    assert quick.told() == f"Made now from 1 cell in {store}."
    done = export_all(Store(store), results / "scores", [TOY])
    assert (done.cells, done.findings) == (1, (results / "findings" / "toy.json",))
    path = results / "findings" / "toy.json"
    written = finding_of(TOY, Store(tmp_path / "empty"), results)
    assert (written.finding, written.is_exported) == (quick.finding, True)
    assert written.told() == f"As exported to {path}: the store {tmp_path / 'empty'} has nothing that it is made from."
    full = finding_of(TOY, stored(store, result("copy", 0.2, horizon=96)), results)
    assert full.finding.text == "full"
    assert full.told() == f"Made now from 1 cell in {store}. As exported, with another --store: {path}."


def test_what_reads_steps_is_shown_as_exported_where_the_store_has_cells_without(tmp_path: Path) -> None:
    store, results = tmp_path / "store", tmp_path / "results"
    stepwise = dataclasses.replace(TOY, per_step=True)
    path = results / "findings" / "toy.json"
    Finding("toy", "", "exported", made_from={"cells": 1}).write(path)
    cell_alone = stored(store, result("copy", 0.1))
    assert finding_of(stepwise, cell_alone, results).finding.text == "exported"
    with_steps(store, {SHORT: {"mae": [0.1]}})
    assert finding_of(stepwise, cell_alone, results).finding.text == "quick"


def test_a_small_store_joins_results_and_takes_nothing_away(tmp_path: Path) -> None:
    """Its cells are added, and findings are of all; one of single steps that was made from more stays."""

    def counted(there: Runs, _: Scope) -> Finding:
        return Finding("toy", "", "", made_from={"cells": len(there.found([SHORT, LONG]))})

    def found() -> int:
        return int(Finding.read(tmp_path / "findings" / "toy.json").made_from["cells"])

    cells = tmp_path / "scores"
    plain = dataclasses.replace(TOY, cells=lambda _: [SHORT, LONG], reduce=counted)
    stepwise = dataclasses.replace(plain, per_step=True)
    both = stored(tmp_path / "both", result("copy", 0.1), result("copy", 0.2, horizon=96))
    assert export_all(both, cells, [plain]).cells == found() == 2

    strangers = stored(tmp_path / "strangers", result("last", 0.3, horizon=48))
    nothing = dataclasses.replace(plain, cells=lambda _: [])
    assert written(export_all(strangers, cells, [nothing], add=True)) == (
        3,
        0,
    )  # what needs no cells is not made of these
    assert written(export_all(strangers, cells, [plain], add=True)) == (3, 1)
    assert found() == 2
    assert written(export_all(both, cells, [stepwise], add=True)) == (3, 0)  # it has the cells, and no steps of them
    again = stored(tmp_path / "again", result("copy", 0.4))
    with_steps(tmp_path / "again", {SHORT: {"mae": [0.4]}})
    assert written(export_all(again, cells, [stepwise], add=True)) == (3, 0)  # it has the steps of one cell, not of two
    assert found() == 2
    assert written(export_all(again, cells, [plain], add=True)) == (3, 1)
    assert found() == 2
    assert {one.cell.horizon: one.metrics["mae"] for one in exported(cells)} == {24: 0.4, 48: 0.3, 96: 0.2}
    assert export_all(again, cells, [plain]).cells == found() == 1  # without add, the store is all there is


def test_steps_of_another_run_are_drawn_and_cells_stay(tmp_path: Path) -> None:
    """What only draws steps has its tables of the exported cells; what lacks steps, or was made from more, stays."""

    def told(there: Runs, _: Scope) -> Finding:
        found = there.found([SHORT, LONG])
        curves = sum(there.steps(one.cell) is not None for one in found)
        text = f"{[one.metrics['mae'] for one in found]} {curves}"
        return Finding("toy", "", text, made_from={"cells": len(found)})

    def text() -> str:
        return Finding.read(tmp_path / "findings" / "toy.json").text

    cells = tmp_path / "scores"
    reads = dataclasses.replace(TOY, cells=lambda _: [SHORT, LONG], reduce=told, per_step=True)
    draws = dataclasses.replace(reads, draws_steps=True)
    export_all(stored(tmp_path / "first", result("copy", 0.1), result("copy", 0.2, horizon=96)), cells, [])
    before = (cells / "etth.csv").read_text()
    second = stored(tmp_path / "second", result("copy", 0.3))
    assert export_steps(second, cells, [draws, reads]) == ()
    with_steps(tmp_path / "second", {SHORT: {"mae": [0.3]}})
    assert len(export_steps(second, cells, [reads])) == 1
    assert text() == "[0.3] 1"
    assert len(export_steps(second, cells, [draws])) == 1
    assert text() == "[0.1, 0.2] 1"
    assert export_steps(second, cells, [reads]) == ()
    assert (cells / "etth.csv").read_text() == before


def test_figures_that_a_store_cannot_draw_stay_beside_tables_made_anew(tmp_path: Path) -> None:
    def told(there: Runs, _: Scope) -> Finding:
        """A figure for each horizon, of a panel whose curves are of the seeds that have steps."""
        found = there.found(asked)
        drawn: dict[int, list[Curve]] = {}
        for one in found:
            if (steps := there.steps(one.cell)) is not None:
                drawn.setdefault(one.cell.horizon, []).append(Curve("", (0,), (float(steps["mae"][0]),)))
        figures = (Figure(f"{key}", "", "", (Panel("", "", "", tuple(curves)),)) for key, curves in drawn.items())
        text = f"{[one.metrics['mae'] for one in found]}"
        return Finding("toy", "", text, figures=tuple(figures), made_from={"cells": len(found)})

    def shown() -> tuple[str, dict[str, list[float | None]]]:
        there = Finding.read(tmp_path / "findings" / "toy.json")
        return there.text, {one.name: [curve.y[0] for curve in one.panels[0].curves] for one in there.figures}

    asked = [SHORT, LONG, dataclasses.replace(LONG, seed=1)]
    draws = dataclasses.replace(TOY, cells=lambda _: asked, reduce=told, per_step=True, draws_steps=True)
    first = stored(tmp_path / "first", *(dataclasses.replace(result("", 0.1 * n), cell=c) for n, c in enumerate(asked)))
    with_steps(tmp_path / "first", {cell: {"mae": [place]} for place, cell in enumerate(asked)})
    scores = tmp_path / "scores"
    export_all(first, scores, [draws])
    assert shown() == ("[0.0, 0.1, 0.2]", {"24": [0.0], "96": [1.0, 2.0]})
    second = stored(tmp_path / "second", result("copy", 0.5), result("copy", 0.6, horizon=96))
    assert written(export_all(second, scores, [draws], add=True)) == (3, 1)
    assert shown() == ("[0.5, 0.6, 0.2]", {"24": [0.0], "96": [1.0, 2.0]})
    with_steps(tmp_path / "second", {SHORT: {"mae": [7.0]}, LONG: {"mae": [8.0]}})
    assert len(export_steps(second, scores, [draws])) == 1
    assert shown() == ("[0.5, 0.6, 0.2]", {"24": [7.0], "96": [1.0, 2.0]})


@pytest.mark.parametrize(
    "analysis", [one for one in ANALYSES if not one.per_step and one.cells(QUICK)], ids=lambda one: one.name
)
def test_exported_cells_show_what_those_of_a_store_do(analysis: Analysis, tmp_path: Path) -> None:
    """Whatever tables read of a cell has to be exported with it."""
    cells = analysis.cells(QUICK)
    facts = {name: place + 5 for place, name in enumerate(FACTS)}
    scores = {"crps": 0.25, "nll": 0.5, "ece": 0.125, "coverage80": 0.75}
    found = [
        dataclasses.replace(result(cell.method, 1.0 + place, metrics=scores, facts=facts), cell=cell)
        for place, cell in enumerate(dict.fromkeys(cells))
    ]
    store = stored(tmp_path / "store", *found)
    export(store, tmp_path / "scores")
    back = Runs(Store(tmp_path / "empty"), tuple(exported(tmp_path / "scores")))
    assert analysis.reduce(back, QUICK) == analysis.reduce(Runs.of(store), QUICK)


@pytest.mark.parametrize(("data", "shows"), [(["etth"], True), ([], False)])
def test_an_analysis_may_be_made_from_data_alone(data: list[str], shows: bool) -> None:
    free = dataclasses.replace(TOY, reduce=lambda *_: Finding("toy", "", "", made_from={"data": data}))
    assert (finding_in(runs([]), free) is not None) == shows


def test_an_analysis_of_data_alone_says_from_which_or_asks_for_them(tmp_path: Path) -> None:
    def made_from(data: list[str]) -> Analysis:
        return dataclasses.replace(
            TOY, cells=lambda _: [], reduce=lambda *_: Finding("toy", "", "", made_from={"data": data})
        )

    assert (
        finding_of(made_from(["a", "b"]), Store(tmp_path), tmp_path).told() == "Made now from the data at hand: a, b."
    )
    with pytest.raises(OptionError, match=r"the data that the analysis 'toy' is made from are not at hand.*--folder"):
        finding_of(made_from([]), Store(tmp_path), tmp_path)


def test_what_cannot_be_run_here_is_left_out_with_the_reason(tmp_path: Path) -> None:
    """200 rows of ETTh leave a stream of 40, into which no window fits; 900 one of 180: enough for 24 rows, not 96."""
    honest, leaky = result("ompb", 0.0).cell, result("ompb", 0.0, protocol="one-step").cell
    elsewhere = result("copy", 0.0, dataset="ili").cell
    wanted = [SHORT, LONG, honest, leaky, elsewhere]
    write_etth(tmp_path, 200)
    assert runnable(wanted, tmp_path).cells == ()
    write_etth(tmp_path, 900)
    grid = runnable(wanted, tmp_path)
    assert grid.cells == (SHORT, honest)
    assert list(grid.left_out) == [LONG, leaky, elsewhere]
    assert [grid.left_out[cell].who for cell in (LONG, leaky, elsewhere)] == ["etth, id at 96 rows", "ompb", "ili"]
    assert "learns from rows only" in grid.left_out[leaky].why
    assert "ILINet" in grid.left_out[elsewhere].why


def test_what_nobody_can_tell_without_data_or_packages_counts_as_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaky = result("ompb", 0.0, protocol="one-step").cell
    elsewhere = result("copy", 0.0, dataset="ili").cell
    ghost = result("ghost", 0.0).cell
    brought = EntryPoints([EntryPoint("ghost", "a_package_nobody_has:ghost", "ompb.methods")])
    monkeypatch.setattr(registry, "entry_points", lambda **words: brought.select(**words))
    write_etth(tmp_path, 900)
    wanted = [SHORT, LONG, leaky, elsewhere, ghost]
    assert possible(wanted, tmp_path) == {SHORT, elsewhere, ghost}
    assert runnable(wanted, tmp_path).cells == (SHORT,)
    assert "a_package_nobody_has" in runnable(wanted, tmp_path).left_out[ghost].why


def test_every_data_set_and_method_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_etth(tmp_path, 900)
    asked: list[str] = []

    def loaded(name: str, folder: Path | None) -> BenchmarkData:
        asked.append(name)
        return load(name, folder)

    monkeypatch.setattr(running, "load", loaded)
    monkeypatch.setattr(running, "lacking", asked.append)
    wanted = {dataclasses.replace(SHORT, seed=seed) for seed in range(3)}
    assert possible(wanted, tmp_path) == wanted
    assert asked == ["etth", "copy"]
