"""Distances beside the paper's, on its own files where they are at hand; projections by another formula."""

from pathlib import Path

import numpy as np
import pytest
from made_up_runs import made_up_data, made_up_runs, use_data

from ompb.metrics.shift import mmd, shift_table
from ompb.paper.analysis import Scope
from ompb.paper.shift import cells, parts, principal_axes, reduce
from ompb.types import Floats

QUICK = Scope(quick=True)


def test_it_needs_no_cell() -> None:
    assert cells(QUICK) == cells(Scope()) == []


def test_home_is_source_and_id_together() -> None:
    data = made_up_data()
    assert list(parts(data)) == ["home", "ood"]
    np.testing.assert_array_equal(parts(data)["home"], np.concatenate([data.source, data.streams["id"]]))


def test_tables_on_made_up_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = made_up_data()
    use_data(monkeypatch, data)
    finding = reduce(made_up_runs(tmp_path, {}), QUICK)
    paper, judged = finding.sections
    whole = shift_table(parts(data)["home"], data.streams["ood"], data.channels)
    assert [line[:4] for line in paper.lines[:2]] == [
        ("etth", "home", "ood", "KS"),
        ("etth", "home", "ood", "Wasserstein"),
    ]
    assert paper.headings[6] == "ours by paper's"  # no ratio, as if a smaller distance were the better one
    assert paper.lines[0][4:6] == (f"{whole.ks.mean():.3f}", "0.751")
    assert [line[1] for line in judged.lines] == ["id", "ood"]
    sd = data.source.std(axis=0)
    table = shift_table(data.source / sd, data.streams["ood"] / sd, data.channels)
    assert judged.lines[1][3] == f"{table.wasserstein.mean():.3f}"
    assert judged.lines[1][6] == data.channels[int(table.ks.argmax())]
    densities, projection = finding.figures
    assert [panel.title for panel in densities.panels] == ["a", "b"]
    for panel in densities.panels:
        for curve in panel.curves:
            x, y = np.array(curve.x, dtype=float), np.array(curve.y, dtype=float)
            assert np.sum(y) * np.diff(x).mean() == pytest.approx(1, abs=1e-3)  # a density
    assert [curve.name for curve in projection.panels[0].curves] == ["home", "ood"]


def test_without_data_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_data(monkeypatch, None)
    finding = reduce(made_up_runs(tmp_path, {}), Scope())
    assert finding.figures == ()
    assert finding.sections[0].lines == ()
    for name in ("etth", "ili", "weather-stand-in"):
        assert f"{name} was not found" in finding.text


def test_principal_axes_are_eigenvectors_of_the_correlation_matrix() -> None:
    pool = np.random.default_rng(2).normal(size=(200, 4)) @ np.random.default_rng(3).normal(size=(4, 4))
    axes, share = principal_axes(pool)
    values, vectors = np.linalg.eigh(np.corrcoef(pool.T))
    np.testing.assert_allclose(share, values[::-1][:2] / 4)
    np.testing.assert_allclose(np.abs(np.sum(axes * vectors[:, ::-1][:, :2], axis=0)), 1)


def test_mmd_in_the_units_of_the_data_by_three_loops() -> None:
    chance = np.random.default_rng(4)
    x, y = chance.normal(0, [1, 50], (7, 2)), chance.normal(1, [2, 60], (9, 2))
    pooled = np.concatenate([x, y])
    squares = [float(np.sum((a - b) ** 2)) for a in pooled for b in pooled]
    width = np.median([square for square in squares if square > 0])

    def mean_kernel(first: Floats, second: Floats) -> float:
        return float(np.mean([np.exp(-np.sum((a - b) ** 2) / (2 * width)) for a in first for b in second]))

    by_hand = mean_kernel(x, x) + mean_kernel(y, y) - 2 * mean_kernel(x, y)
    assert mmd(x, y, scaled=False) ** 2 == pytest.approx(by_hand)
    assert mmd(x, y) != pytest.approx(mmd(x, y, scaled=False), rel=1e-3)


def test_on_etth_all_four_printed_distances_are_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data_dir: Path
) -> None:
    monkeypatch.setenv("OMPB_DATA", str(data_dir))
    lines = {line[3]: line for line in reduce(made_up_runs(tmp_path, {}), QUICK).sections[0].lines}
    for name in ("KS", "Wasserstein", "JS", "MMD squared, unscaled"):
        assert float(lines[name][6]) == pytest.approx(1, abs=0.01)
    assert float(lines["MMD"][6]) < 0.95  # which is another quantity
