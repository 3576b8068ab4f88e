"""The page of results, from hand-made cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from ompb.bench.page import results_page
from ompb.bench.store import Cell, Result, Store, collect, export, exported
from ompb.errors import FormatError, OptionError


def result(method: str, mae: float, split: str = "id", protocol: str = "honest") -> Result:
    cell = Cell("etth", "tcn", 24, split, protocol, method, 0)
    return Result(cell, {"mae": mae, "mse": mae**2}, {}, {"numpy": "2.0"}, "cpu", "0123456789abcdef", {})


RESULTS = [
    result("original", 1.0),
    result("bias", 0.7),
    result("ompb", 0.8),
    result("original", 1.0, "ood"),
    result("bias", 2.0, "ood"),
    result("ompb", 1.2, "ood"),
    result("copy", 0.1, protocol="one-step"),
]


def test_the_page_says_where_the_default_loses() -> None:
    page = results_page(RESULTS, None)
    assert "2 cells. Median MAE relative to the bare backbone: 1.000" in page
    assert "more than 1% worse: 1." in page
    assert "| bias | 2 | 50% |" in page
    assert "| etth tcn 24 id seed 0 | 0.8000 | bias 0.7000 |" in page
    assert "| etth tcn 24 ood seed 0 | 1.2000 | original 1.0000 |" in page
    assert "7 cells; commit 0123456789ab; device cpu; numpy 2.0." in page
    assert "one-step" in page


def test_exported_cells_come_back(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for one in RESULTS:
        store.write(one)
    export(store, tmp_path / "cells.csv")
    assert exported(tmp_path / "cells.csv") == collect(store)


def test_what_is_not_a_table_of_cells(tmp_path: Path) -> None:
    (tmp_path / "cells.csv").write_text("a,b\n1,2\n")
    with pytest.raises(FormatError, match="bench export"):
        exported(tmp_path / "cells.csv")
    with pytest.raises(FormatError, match="bench export"):
        exported(tmp_path / "none.csv")
    with pytest.raises(OptionError, match="no finished cell"):
        results_page([], None)
