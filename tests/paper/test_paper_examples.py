"""Forecasts to look at: the one half way down, its window before it."""

from pathlib import Path

import numpy as np
import pytest
from made_up_runs import CONTEXT, made_up_data, made_up_runs, made_up_steps, use_data

from ompb.bench.findings import Panel
from ompb.bench.store import Cell
from ompb.paper.analysis import Scope
from ompb.paper.examples import cells, reduce

QUICK = Scope(quick=True)
OOD = Cell("etth", "tcn", 24, "ood", "honest", "ompb", 0)
STEPS = made_up_steps(40, horizon=24)


def test_cells_are_three_horizons_by_three_places() -> None:
    full = cells(Scope(gpt4ts="gpt4ts[random]"))
    assert {(cell.horizon, cell.split) for cell in full} == {
        (horizon, split) for horizon in (24, 96, 336) for split in ("id", "ood_near", "ood_far")
    }
    assert {cell.backbone for cell in full} == {"gpt4ts[random]"}


def panel(tmp_path: Path) -> Panel:
    (figure,) = reduce(made_up_runs(tmp_path, {OOD: STEPS}), QUICK).figures
    (only,) = figure.panels
    return only


def test_the_forecast_half_way_down_is_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made_up_data()
    use_data(monkeypatch, data)
    drawn = panel(tmp_path)
    curves = {curve.name: curve for curve in drawn.curves}
    assert drawn.y_label == "a"
    assert drawn.title == f"ood, origin {CONTEXT - 1 + 20}"
    assert curves["ompb"].x == tuple(float(lead) for lead in range(1, 25))
    np.testing.assert_allclose(np.array(curves["ompb"].y, dtype=float), STEPS["shown_mean"][1, :, 0], rtol=1e-4)
    np.testing.assert_allclose(np.array(curves["outcome"].y, dtype=float), STEPS["shown_outcome"][1, :, 0], rtol=1e-4)
    band = curves["80% interval"]
    np.testing.assert_allclose(np.array(band.top, dtype=float) - np.array(band.y, dtype=float), 2, rtol=1e-3)
    origin, mean, sd = CONTEXT - 1 + 20, data.source[:, 0].mean(), data.source[:, 0].std()
    known = (data.streams["ood"][origin - CONTEXT + 1 : origin + 1, 0] - mean) / sd
    np.testing.assert_allclose(np.array(curves["window"].y, dtype=float), known, rtol=1e-4)
    assert curves["window"].x == tuple(float(row) for row in range(1 - CONTEXT, 1))


def test_without_data_there_is_no_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_data(monkeypatch, None)
    assert "window" not in {curve.name for curve in panel(tmp_path).curves}


def test_all_that_were_kept_are_in_the_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_data(monkeypatch, None)
    lines = reduce(made_up_runs(tmp_path, {OOD: STEPS}), QUICK).sections[0].lines
    assert [line[4] for line in lines] == [str(CONTEXT - 1 + place) for place in (10, 20, 30)]
    for place, line in enumerate(lines):
        mean, base, outcome = (STEPS[f"shown_{name}"][place] for name in ("mean", "base", "outcome"))
        ours, bare = (np.abs(values - outcome).mean() for values in (mean, base))
        assert line[5:8] == (f"{bare:.3f}", f"{ours:.3f}", f"{ours / bare:.2f}")
        assert line[8] == f"{np.mean(np.abs(mean - outcome) <= 1):.0%}"
