"""A scaled posterior: one line and one curve for each factor."""

from pathlib import Path

import numpy as np
from made_up_runs import made_up_runs, made_up_steps

from ompb.bench.store import Cell
from ompb.paper.analysis import Scope
from ompb.paper.miscalibration import SCALES, cells, reduce

QUICK = Scope(quick=True)
METRICS = {"coverage80": 0.81, "coverage95": 0.94, "width80": 1.5, "mae": 0.7}


def cell(method: str) -> Cell:
    return Cell("etth", "tcn", 24, "ood", "honest", method, 0)


def test_the_unscaled_posterior_is_the_plain_method() -> None:
    names = [one.method for one in cells(QUICK)]
    assert len(names) == len(SCALES)
    assert names[SCALES.index(1.0)] == "ompb"
    assert names[SCALES.index(4.0)] == "ompb[posterior_scale=4.0]"
    assert set(cells(QUICK)) < set(cells(Scope()))


def test_lines_and_curves_by_factor(tmp_path: Path) -> None:
    falling = np.linspace(1, 0.5, 50)
    plain = made_up_steps(50, value=falling, mae=falling**3, target_disagreement=np.full(50, 0.2))
    wide = made_up_steps(50, value=2 * falling, target_disagreement=np.full(50, 0.4))
    kept = {cell("ompb"): plain, cell("ompb[posterior_scale=4.0]"): wide}
    finding = reduce(made_up_runs(tmp_path, kept, METRICS), QUICK)
    headings = finding.sections[0].headings
    first, second = (dict(zip(headings, line, strict=True)) for line in finding.sections[0].lines)
    assert (first["factor"], first["value"], first["D stream"], first["rho"]) == ("1", "0.750", "0.200", "1.000")
    assert (second["factor"], second["value"], second["D stream"]) == ("4", "1.500", "0.400")
    assert [first[name] for name in ("coverage 80", "coverage 95", "width 80", "MAE")] == [
        "0.810", "0.940", "1.500", "0.700",
    ]  # fmt: skip
    (figure,) = finding.figures
    certificate, disagreement, coverage = figure.panels
    assert [curve.name for curve in certificate.curves] == ["x 1", "x 4"]
    assert disagreement.curves[1].y == (0.4,) * 50
    assert [(curve.x, curve.y) for curve in coverage.curves] == [(("1", "4"), (0.81, 0.81)), (("1", "4"), (0.94, 0.94))]
    assert "Missing: 3 of 5 cells" in finding.text
