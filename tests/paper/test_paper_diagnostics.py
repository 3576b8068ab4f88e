"""What all diagnostics have in common: they can be kept, drawn and printed, with all cells or none."""

from pathlib import Path

import pytest
from made_up_runs import made_up_data, made_up_runs, made_up_steps, use_data

from ompb.bench.findings import Finding
from ompb.paper import correlation, examples, miscalibration, proxy, severity, shift, timeline
from ompb.paper.analysis import Analysis, Scope
from ompb.paper.drawing import MOST_POINTS

ALL = [module.ANALYSIS for module in (correlation, examples, miscalibration, proxy, shift, timeline)]
STREAMS = ("id", "ood", "ood_near", "ood_far")

every = pytest.mark.parametrize("analysis", ALL, ids=lambda analysis: analysis.name)


def kept(finding: Finding, folder: Path) -> Finding:
    """Written and read again."""
    finding.write(folder / "finding.json")
    return Finding.read(folder / "finding.json")


@every
@pytest.mark.parametrize("quick", [True, False])
def test_with_all_cells_nothing_is_missing(
    analysis: Analysis, quick: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_data(monkeypatch, made_up_data(STREAMS, rows=600))
    monkeypatch.setattr(severity, "ORIGINS", 40)
    scope = Scope(quick=quick)
    steps = {cell: made_up_steps(500, seed, cell.horizon) for seed, cell in enumerate(analysis.cells(scope))}
    finding = analysis.reduce(made_up_runs(tmp_path, steps), scope)
    assert kept(finding, tmp_path) == finding
    assert "Missing" not in finding.text
    assert finding.analysis == analysis.name
    assert finding.figures
    for section in finding.sections:
        assert all(len(line) == len(section.headings) for line in section.lines)
        assert 0 < section.keys < len(section.headings)
    names = [figure.name for figure in finding.figures]
    assert len(set(names)) == len(names)
    for curve in (curve for figure in finding.figures for panel in figure.panels for curve in panel.curves):
        assert 0 < len(curve.x) == len(curve.y) <= MOST_POINTS


@every
def test_with_no_cells_it_says_what_is_missing(
    analysis: Analysis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_data(monkeypatch, None)
    finding = analysis.reduce(made_up_runs(tmp_path, {}), Scope())
    assert kept(finding, tmp_path) == finding
    count = len(analysis.cells(Scope()))
    assert (f"None of the {count} cells asked for has run" in finding.text) == bool(count)
    assert finding.figures == ()
