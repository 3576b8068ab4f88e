"""benchmarks/adapters_speed.py still runs, at a tiny size."""

from pathlib import Path

import pytest

from adapters_speed import MODELS, main
from ompb.adapters.finding import ADAPTERS

SIZES = ("--context=60", "--horizon=4", "--channels=2", "--rows=200", "--many=3", "--rounds=1")


def test_every_library_has_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    libraries = ("scikit-learn", "statsforecast", "mlforecast")
    main([*SIZES, "--libraries", *libraries, "--out", str(tmp_path / "speed.md")])
    lines = [line for line in (tmp_path / "speed.md").read_text().splitlines() if line.startswith("| ")][2:]
    assert [line.split()[1] for line in lines] == list(libraries)
    assert all(
        float(cell.replace(",", "")) > 0
        for line in lines
        for cell in line.split(" | ")[2:]
        for cell in [cell.strip(" |")]
    )
    assert capsys.readouterr().out.count("\n") == len(libraries)


def test_all_that_is_found_by_its_model_is_measured() -> None:
    """But torch modules, which are as fast as they are, and xgboost, which is asked as lightgbm is."""
    assert set(MODELS) - {"scikit-learn"} == set(ADAPTERS) - {"sklearn", "torch", "xgboost"}
