from dataclasses import replace
from pathlib import Path

import numpy as np
from made_up import line, result, runs, with_steps

from ompb.bench.findings import Finding
from ompb.bench.store import Result
from ompb.paper import delay
from ompb.paper.analysis import Scope
from ompb.paper.networks import BROKEN
from ompb.paper.rolling import rolling_curve, rolling_mean


def at(method: str, mae: float, protocol: str = "honest", seed: int = 0) -> Result:
    return result(method, mae, horizon=96, split="ood", protocol=protocol, seed=seed)


RESULTS = [
    at("original", 2.0),
    at("ompb", 0.5),
    at("ompb-paper", 0.557, "one-step"),
    at("ompb-paper", 1.0, "delay=48"),
    at("ompb-paper", 3.0, "delay=192"),
    at("copy", 0.9, "delay=48"),
]
KEYS = ("etth", "tcn", "96", "ood")


def test_each_delay_beside_the_papers() -> None:
    finding = delay.reduce(runs(RESULTS), Scope())
    section = finding.sections[1]
    assert line(section, *KEYS, "ompb-paper", "1")[:3] == ("0.5570", "0.5570 [b]", "1.000")
    assert line(section, *KEYS, "ompb-paper", "H/2")[:3] == ("1.0000", "0.8867", "1.128")
    assert line(section, *KEYS, "ompb-paper", "H")[:2] == ("", "1.0047")
    assert line(section, *KEYS, "ompb-paper", "2H")[:2] == ("3.0000", "1.8608 [c]")
    assert line(section, *KEYS, "copy", "H/2")[:2] == ("0.9000", "")
    assert line(section, *KEYS, "ompb", "honest")[0] == "0.5000"
    assert line(section, *KEYS, "original", "none")[:2] == ("2.0000", "2.5636 [a]")
    leaks = [note for note in section.notes if note.startswith("LEAKS")]
    assert [note.split()[4] for note in leaks] == ["1", "48"]
    assert finding.figures == ()


def test_each_delay_relative_to_the_bare_backbone() -> None:
    """The paper has 0.5570 of 2.5636 at once, of which both are doubted, and 0.8867 after half of the horizon."""
    finding = delay.reduce(runs(RESULTS), Scope())
    short = finding.sections[0]
    assert short.headings[5:] == ("ratio, 1", "ratio, H/2", "ratio, H", "ratio, 2H", "ratio, honest")
    assert line(short, *KEYS, "ompb-paper") == ("0.279", "0.500", "", "1.500", "")  # 0.557, 1 and 3 by 2
    assert line(short, *KEYS, "ompb") == ("", "", "", "", "0.250")
    assert line(short, *KEYS, "paper")[:2] == ("0.217 [a]", "0.346 [b]")
    assert "The sensitivity tables" in short.notes[1]
    assert "2.5635" in short.notes[1]
    assert finding.text.startswith(
        "MAE relative to that of the bare backbone, `ompb-paper` with a delay of 1: 0.28 on etth; `ompb` as rows come: "
        "0.25 on etth."
    )


def test_a_delay_at_which_a_method_diverges_is_called_so() -> None:
    late = [at("ompb-paper", 1e40, "delay=96"), at("ompb-paper", 1e40, "delay=48")]
    finding = delay.reduce(runs([*RESULTS[:3], *late]), Scope())
    assert line(finding.sections[0], *KEYS, "ompb-paper") == ("0.279", "diverged", "diverged", "", "")
    assert BROKEN in finding.sections[0].notes
    assert "with a delay of H: diverged on etth;" in finding.text


def test_a_stream_that_ends_before_any_outcome_comes_teaches_nothing() -> None:
    """A hundred forecasts, and outcomes that come 192 rows later: only a 193rd forecast would know the first."""
    assert "On etth no outcome is shown with a delay of 2H, as the stream ends after 100 forecasts" in (
        delay.reduce(runs(RESULTS), Scope()).text
    )
    longer = [replace(found, facts={"windows": 193}) for found in RESULTS]
    assert "no outcome" not in delay.reduce(runs(longer), Scope()).text


def test_what_the_leak_alone_is_worth() -> None:
    text = delay.reduce(runs([*RESULTS, at("copy", 0.4, "one-step")]), Scope()).text
    assert "With a delay of 1 `copy` is ahead of `ompb-paper` on 1 of 1 streams." in text


def test_curves_from_steps(tmp_path: Path) -> None:
    """A stream of 100 forecasts: means over 5 of them, from the fifth on."""
    columns = {"origin": range(95, 195), "mae": np.arange(100.0)}
    kept = [found.cell for found in RESULTS if found.cell.method in ("original", "copy") or found.metrics["mae"] == 3.0]
    store = with_steps(tmp_path, dict.fromkeys(kept, columns))
    finding = delay.reduce(runs(RESULTS, store.folder), Scope())
    (figure,) = finding.figures
    assert figure.name == "delay-etth-ood"
    assert {panel.title: [curve.name for curve in panel.curves] for panel in figure.panels} == {
        "Delay of H/2": ["original", "copy"],
        "Delay of 2H": ["original", "ompb-paper"],
    }
    curve = figure.panels[0].curves[0]
    assert (len(curve.x), curve.x[0], curve.x[-1]) == (96, 99.0, 194.0)
    assert (curve.y[0], curve.y[-1]) == (2.0, 97.0)
    finding.write(tmp_path / "delay.json")
    assert Finding.read(tmp_path / "delay.json") == finding


def test_curves_of_a_panel_are_of_one_seed(tmp_path: Path) -> None:
    """The bare backbone has two seeds, what is delayed by half of the horizon the second, by twice of it neither."""
    late = (("delay=48", 1), ("delay=192", 2))
    results = [*(at("original", 2.0, seed=seed) for seed in (0, 1)), *(at("copy", 1.0, by, seed) for by, seed in late)]
    rows = {found.cell: {"origin": range(95, 195), "mae": [found.cell.seed] * 100} for found in results}
    store = with_steps(tmp_path, rows)
    (figure,) = delay.reduce(runs(results, store.folder), Scope()).figures
    assert {panel.title: {curve.name: curve.y[0] for curve in panel.curves} for panel in figure.panels} == {
        "Delay of H/2": {"original": 1.0, "copy": 1.0}
    }


def test_rolling_means_are_those_of_slices() -> None:
    values = np.random.default_rng(0).normal(size=50)
    expected = [values[end - 7 : end].mean() for end in range(7, 51)]
    np.testing.assert_allclose(rolling_mean(values, 7), expected, rtol=1e-10)


def test_long_curves_are_thinned_from_end_to_end() -> None:
    curve = rolling_curve("", range(10_000), np.ones(10_000))
    assert len(curve.x) == len(curve.y) == 400
    assert (curve.x[0], curve.x[-1]) == (499.0, 9999.0)
    assert set(curve.y) == {1.0}


def test_cells() -> None:
    quick = delay.wanted(Scope(quick=True))
    paper = {cell.protocol for cell in quick if cell.method == "ompb-paper"}
    assert paper == {"honest", "one-step", "delay=12", "delay=24", "delay=48"}
    assert {cell.protocol for cell in quick if cell.method in ("ompb", "original", "last")} == {"honest"}
    full = delay.wanted(Scope())
    assert len(set(full)) == len(full)
    assert {(cell.dataset, cell.horizon) for cell in full} == {("etth", 96), ("ili", 48), ("weather-stand-in", 96)}
    assert delay.ANALYSIS.per_step


def test_nothing_has_run() -> None:
    finding = delay.reduce(runs([]), Scope())
    assert (finding.sections, finding.figures) == ((), ())
