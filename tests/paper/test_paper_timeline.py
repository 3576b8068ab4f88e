"""Signals down a stream: quarters by hand, panels over the same rows."""

from pathlib import Path

import numpy as np
import pytest
from made_up_runs import CONTEXT, made_up_data, made_up_runs, made_up_steps, use_data

from ompb.bench.store import Cell
from ompb.paper.analysis import Scope
from ompb.paper.timeline import cells, reduce

QUICK = Scope(quick=True)
OURS, BARE = (Cell("etth", "tcn", 24, "ood", "honest", method, 0) for method in ("ompb", "original"))
STEPS = made_up_steps(8, value=np.arange(8.0), mae=np.arange(8.0) * 2)


def test_cells_are_ours_and_the_bare_forecaster() -> None:
    assert cells(QUICK) == [OURS, BARE]
    assert {(cell.dataset, cell.split) for cell in cells(Scope())} == {
        ("etth", "ood"), ("ili", "ood"), ("weather-stand-in", "ood_far"),
    }  # fmt: skip


def test_quarters_are_means_over_two_steps_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_data(monkeypatch, None)
    finding = reduce(made_up_runs(tmp_path, {OURS: STEPS}), QUICK)
    headings = finding.sections[0].headings
    lines = finding.sections[0].lines
    assert [line[headings.index("certificate")] for line in lines] == ["0.500", "2.500", "4.500", "6.500"]
    assert [line[headings.index("MAE")] for line in lines] == ["1.000", "5.000", "9.000", "13.000"]
    assert {line[headings.index("KS")] for line in lines} == {line[-1] for line in lines} == {""}
    assert "original" in finding.text
    assert "etth was not found" in finding.text


def test_panels_run_over_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_data(monkeypatch, made_up_data(rows=15))
    bare = made_up_steps(8, mae=np.full(8, 0.25))
    (figure,) = reduce(made_up_runs(tmp_path, {OURS: STEPS, BARE: bare}), QUICK).figures
    assert [panel.title for panel in figure.panels] == [
        "Certificate", "Disagreement", "Novelty", "Shift severity", "Error",
    ]  # fmt: skip
    for panel in figure.panels:
        for curve in panel.curves:
            assert curve.x == tuple(float(CONTEXT - 1 + step) for step in range(8))
    errors = {curve.name: curve.y for curve in figure.panels[-1].curves}
    assert errors["issued"] == tuple(2.0 * step for step in range(8))
    assert errors["bare forecaster"] == (0.25,) * 8
    assert set(errors) == {"issued", "bare forecaster", "expected before the outcome"}
