from dataclasses import replace
from pathlib import Path

from made_up import line, result, runs

from ompb.bench.named import Named
from ompb.bench.store import Result, Store
from ompb.gradient.settings import PaperPreset
from ompb.paper import printed, sensitivity
from ompb.paper.analysis import Runs, Scope
from ompb.paper.costs import Cost, Costs
from ompb.paper.networks import BROKEN
from ompb.settings import Settings

WHERE = "etth", "tcn", 96
COSTS = Costs(
    {(WHERE, "ompb-paper[draws=2]"): Cost(50.0, 1.0), (WHERE, "ompb-paper"): Cost(10.0, 1.0)},
    "abc",
    "versions of then",
)


def at(method: str, mae: float, protocol: str = "one-step") -> Result:
    return result(method, mae, horizon=96, split="ood", protocol=protocol)


RESULTS = [
    at("ompb-paper", 0.5),
    at("ompb-paper[tau_d_factor=0.25]", 0.4),
    at("ompb-paper[draws=2]", 0.5),
    at("ompb", 0.3, "honest"),
    at("ompb[tau_d_factor=1.0]", 0.6, "honest"),
    at("original", 2.0),
]


def test_every_value_can_be_made_and_the_default_keeps_its_name() -> None:
    for sweep in sensitivity.SWEEPS:
        for name in sweep.names("ompb-paper").values():
            PaperPreset(**Named.of(name).options)
        for name in sweep.names("ompb").values():
            Settings.of(**Named.of(name).options)
        assert sweep.defaults["ompb-paper"] == getattr(PaperPreset(), sweep.option)
        assert sweep.defaults["ompb"] == getattr(Settings(), sweep.option)
        assert "ompb-paper" in sweep.names("ompb-paper").values()
        assert {word for word, _ in printed.sensitivity(sweep.table)} == set(sweep.values)
    tau, draws, variance, _ = sensitivity.SWEEPS
    assert tau.names("ompb")["3 (default)"] == "ompb"
    assert draws.names("ompb-paper")["5 (default)"] == "ompb-paper"
    assert list(draws.names("ompb-paper")) == ["2", "4", "5 (default)", "8", "16", "32"]
    assert variance.names("ompb")["2"] == 'ompb[kind="freedman",variance_factor=2.0]'


def test_a_quick_scope_has_some_values_of_every_sweep() -> None:
    few, every = (sensitivity.wanted(Scope(quick=quick)) for quick in (True, False))
    assert len(few) < len(every) / 2
    assert {cell.method for cell in few} < {cell.method for cell in every}
    names = " ".join(cell.method for cell in few)
    assert all(sweep.option in names for sweep in sensitivity.SWEEPS[:2])


def test_sweeps_beside_the_papers() -> None:
    said = {**RESULTS[0].metrics, "certificate": 1.5, "disagreement": 0.25}
    there = Runs(Store(Path("nowhere")), (replace(RESULTS[0], metrics=said), *RESULTS[1:]), COSTS)
    finding = sensitivity.reduce(there, Scope())
    _, tau, draws, variance, mode, bare = finding.sections
    assert line(tau, "ompb-paper", "one-step", "1") == (
        *("0.5000", "0.6728 [a]", "0.743", "0.2500", "0.7694 [a]", "0.325"),
        *("1.5000", "1.4375 [b]", "0.2500", "0.0000 [c]"),
    )
    assert line(tau, "ompb-paper", "one-step", "0.25")[6:8] == ("", "1.4375 [b]")
    assert line(tau, "ompb", "honest", "3 (default)")[:2] == ("0.3000", "")
    assert line(draws, "ompb-paper", "one-step", "2")[-2:] == ("50.00", "102.15")
    assert line(draws, "ompb-paper", "one-step", "5 (default)")[-2:] == ("10.00", "")
    assert line(variance, "ompb-paper", "one-step", "1")[0] == "0.5000"
    assert line(mode, "ompb-paper", "one-step", "clipped")[0] == "0.5000"
    assert line(bare, "original", "one-step")[0] == "2.0000"
    assert any("versions of then, commit abc" in note for note in draws.notes)


def test_a_sweep_that_needs_another_kind_says_which() -> None:
    needs = 'ompb[kind="freedman"]'
    results = [at(needs, 0.3, "honest"), at('ompb[kind="freedman",variance_factor=2.0]', 0.4, "honest")]
    finding = sensitivity.reduce(runs(results), Scope())
    variance = next(section for section in finding.sections if section.title.startswith("Variance"))
    assert [words[:3] for words in variance.lines] == [(needs, "honest", word) for word in ("1", "2")]
    assert line(finding.sections[0], "variance_factor", needs, "honest")[:3] == ("2", "0.3000", "0.4000")
    (panel,) = (panel for panel in finding.figures[0].panels if panel.title == "Variance in the complexity term: MAE")
    assert [curve.name for curve in panel.curves] == ["paper"]  # curves are relative to a value that ours lack


def test_all_options_in_short() -> None:
    """Two values of the paper's method, and two of ours that are alike to four digits."""
    ours = [at("ompb", 0.30001, "honest"), at("ompb[tau_d_factor=1.0]", 0.30002, "honest")]
    finding = sensitivity.reduce(runs([*RESULTS[:2], *ours]), Scope())
    short = finding.sections[0]
    assert line(short, "tau_d_factor", "ompb-paper", "one-step") == ("2", "0.4000", "0.5000", "", "")
    assert line(short, "draws", "paper", "one-step")[1:3] == ("0.672818824 [a]", "0.672819251 [a]")
    assert finding.text == (
        "Over all values of all options the MAE of `ompb-paper` (one-step) lies between 0.4000 and 0.5000, of `ompb` "
        "(honest) stays at 0.3000."
    )


def test_a_value_that_makes_a_method_diverge_is_in_no_range() -> None:
    said = {"certificate": 1e30, "disagreement": 1e30}
    lost = result("ompb-paper[tau_d_factor=4.0]", 1e40, horizon=96, split="ood", protocol="one-step", metrics=said)
    others = [result("original", 2.0, horizon=96, split="ood")]
    finding = sensitivity.reduce(runs([*RESULTS[:2], lost, *others]), Scope())
    short, tau, *_ = finding.sections
    told = line(tau, "ompb-paper", "one-step", "4")
    assert [told[place] for place in (0, 2, 3, 5, 6, 8)] == ["diverged", "", "diverged", "", "diverged", "diverged"]
    assert line(short, "tau_d_factor", "ompb-paper", "one-step") == ("3", "0.4000", "0.5000", "", "")
    assert BROKEN in tau.notes
    assert "the MAE of `ompb-paper` (one-step) lies between 0.4000 and 0.5000, but for 1 that has diverged" in (
        finding.text
    )
    curve = finding.figures[0].panels[0].curves[0]
    assert curve.y[:5] == (1.0, None, 1.25, None, None)


def test_curves_are_relative_to_the_first_value() -> None:
    (figure,) = sensitivity.reduce(runs(RESULTS), Scope()).figures
    tau = figure.panels[0]
    assert len({panel.title for panel in figure.panels}) == len(figure.panels)
    assert tau.title == "Scale of the disagreement: MAE"
    ours = {curve.name: curve for curve in tau.curves}
    assert set(ours) == {"ompb-paper, one-step", "paper"}
    assert ours["ompb-paper, one-step"].x == sensitivity.FACTORS
    assert ours["ompb-paper, one-step"].y == (1.0, None, 1.25, *(None,) * 6)
    assert ours["paper"].y[:2] == (1.0, 1.0)


def test_at_another_horizon_nothing_of_the_paper_stands_beside() -> None:
    finding = sensitivity.reduce(runs([result("ompb-paper", 0.5, split="ood", protocol="one-step")]), Scope(quick=True))
    assert line(finding.sections[1], "ompb-paper", "one-step", "1")[:3] == ("0.5000", "", "")
    assert not any("paper" in words[1:2] for words in finding.sections[0].lines)
    assert finding.figures == ()


def test_cells() -> None:
    full = sensitivity.wanted(Scope())
    assert len(set(full)) == len(full)
    assert {(cell.dataset, cell.backbone, cell.horizon, cell.split, cell.seed) for cell in full} == {
        ("etth", "tcn", 96, "ood", 0)
    }
    assert {cell.protocol for cell in full if cell.method.startswith("ompb[")} == {"honest"}
    assert 'ompb[kind="freedman"]' in {cell.method for cell in full}
    assert {cell.horizon for cell in sensitivity.wanted(Scope(quick=True))} == {24}


def test_nothing_has_run() -> None:
    assert sensitivity.reduce(runs([]), Scope(quick=True)).sections == ()
