from pathlib import Path

import pytest
from made_up import result, runs

from ompb.bench.findings import Finding
from ompb.bench.named import Named
from ompb.bench.store import Cell, Result
from ompb.errors import OptionError
from ompb.paper.analysis import Scope
from ompb.paper.catalogue import ANALYSES, find

TABLES = (
    "etth_all_split", "ili_results", "weather_all_split", "ablation", "partial", "epochs", "probabilistic",
    "sensitivity", "delay",
)  # fmt: skip
LAW = {"nll": 0.1, "crps": 0.2, "coverage80": 0.8, "coverage95": 0.95, "width80": 1, "width95": 2, "ece": 0.1}


def test_names_are_there_once() -> None:
    names = [analysis.name for analysis in ANALYSES]
    assert len(set(names)) == len(names)
    assert find("delay") is ANALYSES[names.index("delay")]
    with pytest.raises(OptionError, match="no analysis 'main'; accepted: etth_all_split, ili_results"):
        find("main")


@pytest.mark.parametrize("name", TABLES)
def test_whatever_of_its_cells_is_there_becomes_a_finding(name: str, tmp_path: Path) -> None:
    """All cells of a scope, every third of them, and none; what is kept of steps is not there."""
    found = find(name)
    for scope in (Scope(), Scope(quick=True)):
        cells = found.cells(scope)
        assert cells
        assert len(set(cells)) == len(cells)
        assert all(str(Named.of(cell.method)) == cell.method for cell in cells)  # one name for one method
        for some in (cells, cells[::3], []):
            results = [ran(cell.method, place, **_place(cell)) for place, cell in enumerate(some)]
            finding = found.reduce(runs(results, tmp_path), scope)
            assert finding.analysis == found.name
            assert bool(finding.sections) == bool(some)
            for section in finding.sections:
                assert section.lines
                assert {len(line) for line in section.lines} == {len(section.headings)}
            finding.write(tmp_path / "finding.json")
            assert Finding.read(tmp_path / "finding.json") == finding


def _place(cell: Cell) -> dict[str, object]:
    names = ("dataset", "backbone", "horizon", "split", "protocol", "seed")
    return {name: getattr(cell, name) for name in names}


def ran(method: str, place: int, **where: object) -> Result:
    return result(method, 0.5 + place / 1e4, metrics=LAW, **where)  # type: ignore[arg-type]
