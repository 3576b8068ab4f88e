"""benchmarks/adapters_speed.py still runs, at a tiny size."""

from pathlib import Path

import pytest

from adapters_speed import MODELS, WAYS, main
from ompb.adapters.finding import ADAPTERS

SIZES = ("--context=60", "--horizon=4", "--channels=2", "--rows=200", "--many=3", "--rounds=1")


def test_every_library_has_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    libraries = ("scikit-learn", "lightgbm", "statsforecast")
    main([*SIZES, "--libraries", *libraries, "--out", str(tmp_path / "speed.md")])
    lines = [line for line in (tmp_path / "speed.md").read_text().splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert [line[0].split()[0] for line in cells[2:5]] == list(libraries)
    assert [line[:2] for line in cells[7:]] == [
        ["direct", "4"],
        ["recursive", "1"],
        ["joint", "8"],
        ["joint, recursive", "2"],
    ]
    assert all(float(rate.replace(",", "")) > 0 for line in (*cells[2:5], *cells[7:]) for rate in line[-2:])
    assert capsys.readouterr().out.count("\n") == len(libraries) + len(WAYS)


def test_all_that_is_found_by_its_model_is_measured() -> None:
    """But torch modules and pipelines, which are as fast as they are, and xgboost, which is asked as lightgbm is."""
    unmeasured = {"chronos", "sklearn", "timesfm", "torch", "xgboost"}
    assert set(MODELS) - {"scikit-learn"} == set(ADAPTERS) - unmeasured
