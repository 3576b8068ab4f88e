"""The certificate's parts as a table, full bounds beside the paper's, and curves over the number of windows."""

import math
from pathlib import Path

import numpy as np
import pytest
from made_up_runs import made_up_runs, made_up_steps

from ompb.bench.store import Cell
from ompb.paper.analysis import Scope
from ompb.paper.prefixes import gammas
from ompb.paper.printed import diagnostics
from ompb.paper.proxy import SAYS_NOTHING, cells, reduce
from ompb.paper.tightness import KINDS


def cell(split: str, method: str = "ompb", backbone: str = "tcn", horizon: int = 24) -> Cell:
    return Cell("etth", backbone, horizon, split, "honest", method, 0)


def test_cells_name_the_kinds_and_the_forecaster_that_has_not_seen_the_windows() -> None:
    quick = cells(Scope(quick=True))
    assert len(quick) == len(set(quick)) == 2 * 2 * len(KINDS)
    assert cell("ood", 'ompb[kind="iid"]') in quick
    assert cell("ood", "ompb[unseen=0.25]", "tcn@unseen") in quick
    assert cell("id", 'ompb[kind="freedman",unseen=0.25]', "tcn@unseen") in quick
    full = cells(Scope(gpt4ts="gpt4ts[random]"))
    assert set(quick) <= set(full)
    assert Cell("ili", "gpt4ts[random]", 48, "ood", "honest", "ompb", 0) in full
    assert {one.horizon for one in full if one.dataset == "ili"} == {24, 48}


def test_a_line_holds_the_parts(tmp_path: Path) -> None:
    steps = made_up_steps(
        2, mse=[0.5, 0.3], value=[0.6, 0.2], source_risk=[0.3, 0.1], gamma=[0.2, 0.1], disagreement=[0.2, 0.0]
    )
    kept = {cell("ood"): steps, cell("ood", 'ompb[kind="iid",unseen=0.25]', "tcn@unseen"): steps}
    finding = reduce(made_up_runs(tmp_path, kept), Scope(quick=True))
    numbers = ("0.400", "0.200", "0.150", "0.050", "0.400", "0.000", "50.0%")
    assert finding.sections[0].lines == (
        ("etth", "tcn", "24", "ood", "in-sample", "betting", *numbers, "", "2"),
        ("etth", "tcn@unseen", "24", "ood", "unseen", "iid", *numbers, "137", "2"),
    )
    at_137, at_136 = (math.sqrt(math.log(40 * math.sqrt(windows)) / (2 * windows)) for windows in (137, 136))
    assert at_137 < 0.15 < at_136  # the median of Gamma
    assert "Missing: 14 of 16 cells" in finding.text
    assert "betting 1 of 1, iid 1 of 1." in finding.text


def test_full_bounds_stand_beside_the_printed_ones(tmp_path: Path) -> None:
    zero = np.zeros(30)
    steps = made_up_steps(
        30, mse=zero + 0.9, source_risk=zero + 0.1, gamma=zero + 0.2, source_disagreement=zero, target_disagreement=zero
    )
    section = reduce(made_up_runs(tmp_path, {cell("ood", horizon=96): steps}), Scope()).sections[1]
    line = section.lines[1]
    assert line[:5] == ("etth", "tcn", "96", "ood", "full bound, betting")
    assert (line[5], line[6][:6], line[7]) == ("1.1000 [a]", "1.0853", "")  # realised risk and Gamma: more than 1
    assert f"[a] {SAYS_NOTHING}" in section.notes
    assert section.lines[0][5:] == ("0.9000", "0.9859", "0.913")
    assert section.lines[3][5] == ""  # that kind was not run
    assert len(section.lines) == 16


def test_a_bound_above_one_says_nothing_ours_as_the_papers() -> None:
    bound = diagnostics("reg_proxy_full_cert")["ili", "gpt4ts/H48/ood", "full_iid_bound"]
    assert bound.doubt == SAYS_NOTHING


def test_curves_take_every_hth_forecast_and_are_compared_with_iid(tmp_path: Path) -> None:
    losses = np.random.default_rng(0).uniform(0, 0.3, 24 * 50)
    home, away = (made_up_steps(24 * 50, seed, mse=losses + shift) for seed, shift in ((0, 0.0), (1, 0.5)))
    finding = reduce(made_up_runs(tmp_path, {cell("id"): home, cell("ood"): away}), Scope(quick=True))
    spaced = losses[::24]
    lines = {line[4]: line for line in finding.sections[2].lines if line[3] == "id"}
    for kind in KINDS:
        own = gammas(kind, spaced)
        assert lines[kind][5:8] == (f"{own[9]:.3f}", f"{own[29]:.3f}", "")
        assert lines[kind][9] == "50"
    own, rival = gammas("betting", spaced), gammas("iid", spaced)
    first = int(lines["betting"][-1])
    assert (own[first - 1 :] < rival[first - 1 :]).all()
    assert first == 1 or own[first - 2] >= rival[first - 2]
    assert lines["iid"][-1] == ""
    of_both = sorted(int(line[-1]) for line in finding.sections[2].lines if line[4] == "betting")
    assert "On 2 series of losses (different streams: 2) Gamma is below that for independent windows" in finding.text
    assert f"betting from {of_both[0]} to {of_both[1]} windows on" in finding.text
    assert "curves of" not in finding.text

    (figure,) = finding.figures
    assert [panel.title for panel in figure.panels] == ["Gamma", "Full bound, id", "Full bound, ood"]
    curves = {curve.name: curve for curve in figure.panels[2].curves}
    realised = curves["realised"].y[0]
    assert realised == pytest.approx(np.minimum(losses + 0.5, 1).mean(), rel=1e-4)
    change = float(np.mean(away["target_disagreement"] - away["source_disagreement"]))
    risk = float(spaced.mean())
    left_over = float(np.minimum(losses + 0.5, 1).mean()) - risk - change / 2
    expected = risk + gammas("freedman", spaced)[-1] + max(change, 0) / 2 + max(left_over, 0)
    assert curves["freedman"].y[-1] == pytest.approx(expected, rel=1e-4)
    assert curves["freedman"].x[-1] == 50


def test_where_the_disagreement_fell_half_of_the_fall_is_in_the_bound(tmp_path: Path) -> None:
    """The mismatch is positive: realised risk, Gamma and half of 0.4."""
    zero = np.zeros(24 * 20)
    steps = made_up_steps(24 * 20, mse=zero + 0.5, source_disagreement=zero + 0.6, target_disagreement=zero + 0.2)
    (figure,) = reduce(made_up_runs(tmp_path, {cell("id"): steps}), Scope(quick=True)).figures
    curves = {curve.name: curve for curve in figure.panels[1].curves}
    gamma = gammas("iid", zero[::24] + 0.5)
    np.testing.assert_allclose(np.array(curves["iid"].y, dtype=float), 0.5 + gamma + 0.2, rtol=1e-4)
    assert "where the disagreement fell, half of that fall" in figure.caption


def test_one_stream_under_two_forecasters_is_one_stream(tmp_path: Path) -> None:
    steps = made_up_steps(24 * 20)
    kept = {cell("id"): steps, cell("id", "ompb[unseen=0.25]", "tcn@unseen"): steps}
    assert (
        "On 2 series of losses (different streams: 1)" in reduce(made_up_runs(tmp_path, kept), Scope(quick=True)).text
    )


def test_few_windows_make_no_curve(tmp_path: Path) -> None:
    finding = reduce(made_up_runs(tmp_path, {cell("id"): made_up_steps(24 * 5)}), Scope(quick=True))
    assert finding.figures == ()
    assert finding.sections[2].lines == ()
    assert "There are no curves of streams of fewer than 10 windows (etth: at most 5)." in finding.text


def test_without_a_stream_at_home_there_is_no_curve(tmp_path: Path) -> None:
    kept = {cell("ood"): made_up_steps(24 * 20), cell("id"): made_up_steps(24 * 5)}
    finding = reduce(made_up_runs(tmp_path, kept), Scope(quick=True))
    assert finding.figures == ()
    assert (
        "There are no curves of streams of fewer than 10 windows (etth: at most 5) and of forecasters whose stream at "
        "home has not run (etth, tcn, H = 24)." in finding.text
    )
