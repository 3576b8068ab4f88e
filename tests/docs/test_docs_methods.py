"""The page of the benchmark names every method, backbone and protocol that there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from ompb.bench.backbones import backbone_names
from ompb.bench.methods import method_names
from ompb.bench.protocols import ACCEPTED

PAGE = (Path(__file__).parents[2] / "docs" / "benchmark.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", method_names())
def test_a_method_is_named(name: str) -> None:
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", [*backbone_names(), *(words.partition(" ")[0] for words in ACCEPTED)])
def test_a_backbone_or_protocol_is_named(name: str) -> None:
    assert f"`{name}`" in PAGE
