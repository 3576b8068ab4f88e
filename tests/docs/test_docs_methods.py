"""The page of the benchmark names every method that there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ompb.bench.methods import method_names

PAGE = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", method_names())
def test_a_method_is_named(name: str) -> None:
    assert f"`{name}`" in PAGE
