"""All signals, the best marked, the paper's correlations beside ours."""

from pathlib import Path

import numpy as np
import pytest
from made_up_runs import made_up_data, made_up_runs, made_up_steps, use_data

from ompb.bench.store import Cell
from ompb.paper.analysis import Runs, Scope
from ompb.paper.association import SEVERITIES, SIGNALS
from ompb.paper.correlation import cells, reduce

QUICK = Scope(quick=True)
OOD, BARE = (Cell("etth", "tcn", 24, "ood", "honest", method, 0) for method in ("ompb", "original"))


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """The expected error is the MAE itself, the certificate its opposite, and the novelty the bare forecaster's MAE."""
    use_data(monkeypatch, made_up_data())
    mae = np.random.default_rng(5).uniform(size=60)
    ours = made_up_steps(60, mae=mae, mse=mae**2, expected_error=mae, value=1 - mae)
    return made_up_runs(tmp_path, {OOD: ours, BARE: made_up_steps(60, 1, mae=ours["novelty"])})


def test_cells_have_three_seeds_in_full_and_one_in_short() -> None:
    assert cells(QUICK) == [
        Cell("etth", "tcn", 24, split, "honest", method, 0)
        for split in ("id", "ood")
        for method in ("ompb", "original")
    ]
    full = cells(Scope())
    assert len(full) == len(set(full)) == (2 * 2 + 2 * 2 + 2 * 3) * 2 * 3


def test_every_signal_is_shown_and_the_best_marked(runs: Runs) -> None:
    lines = {line[4]: line for line in reduce(runs, QUICK).sections[0].lines}
    assert set(lines) == set(SIGNALS | SEVERITIES)
    assert lines["expected_error"][6:8] == ("1.000", "1.000 *")
    assert lines["expected_error"][9:] == ("1.000 *", "60", "1")
    assert lines["value"][7] == "-1.000"
    assert sum("*" in line[7] for line in lines.values()) == 1
    bare = {line[4]: line for line in reduce(runs, QUICK).sections[1].lines}
    assert bare["novelty"][6:8] == ("1.000", "1.000 *")


def test_the_paper_stands_beside_the_certificate_the_expected_error_and_the_best(runs: Runs) -> None:
    lines = reduce(runs, QUICK).sections[3].lines
    assert [line[4] for line in lines] == [
        error for error in ("MAE", "MSE", "MAE, bare", "MSE, bare") for _ in range(2)
    ]
    assert lines[5][8:11] == ("1.000", "novelty", "0.278")
    line = lines[1]
    assert line[4:10] == ("MAE", "spearman", "-1.000", "1.000", "1.000", "expected_error")
    assert line[10] == "0.278"
    assert line[11:] == ("-1.278", "+0.722", "+0.722")


def test_nothing_is_a_ratio_that_could_change_its_sign(runs: Runs) -> None:
    finding = reduce(runs, QUICK)
    assert not any("ratio" in heading for section in finding.sections for heading in section.headings)
    severity = finding.sections[4].lines[0]
    assert float(severity[8]) == pytest.approx(float(severity[6]) - float(severity[7]), abs=1.1e-3)


def test_the_text_says_what_ranks_best(runs: Runs) -> None:
    text = reduce(runs, QUICK).text
    assert "`expected_error` ranks the MAE of what was issued best (mean rho 1.000, of those" in text
    assert "by MAE on etth (0.278) at H = 24" in text
    assert "correlations on etth." in text


def test_no_signal_is_chosen_over_all_streams(runs: Runs) -> None:
    lines = {line[0]: line for line in reduce(runs, QUICK).sections[2].lines}
    assert lines["expected_error"][2:5] == ("shifted", "1.000", "1.000")
    assert lines["expected_error"][-2:] == ("1.000", "1 of 1")
    assert lines["novelty"][5] == "1.000"
    assert lines["value"][-1] == "0 of 1"


def test_disagreement_stands_beside_severity(runs: Runs) -> None:
    section = reduce(runs, QUICK).sections[4]
    assert [line[4:6] for line in section.lines[:2]] == [("KS", "pearson"), ("KS", "spearman")]
    assert [line[7] for line in section.lines[:2]] == ["0.247", "0.180"]
    assert all(line[9] == "60" for line in section.lines)


def test_scatter_figures_of_shifted_streams(runs: Runs) -> None:
    (figure,) = reduce(runs, QUICK).figures
    assert figure.name == "correlation-etth-ood-24"
    assert all(curve.mark == "points" for panel in figure.panels for curve in panel.curves)
    panels = {panel.title: {curve.name: curve for curve in panel.curves} for panel in figure.panels}
    assert panels["expected_error"]["issued"].x == panels["expected_error"]["issued"].y
    assert panels["novelty"]["bare forecaster"].x == panels["novelty"]["bare forecaster"].y


def test_without_data_the_severity_is_missing_and_said_so(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    use_data(monkeypatch, None)
    finding = reduce(runs, QUICK)
    assert "etth was not found" in finding.text
    assert "Missing: 2 of 4 cells" in finding.text
    lines = {line[4]: line for line in finding.sections[0].lines}
    assert lines["severity_ks"][6:] == ("",) * 6
    assert all(line[6] == "" for line in finding.sections[4].lines)
