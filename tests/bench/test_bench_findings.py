"""Findings as files."""

from __future__ import annotations

from pathlib import Path

import pytest

from ompb.bench.findings import Curve, Figure, Finding, Panel, Section
from ompb.errors import FormatError

FINDING = Finding(
    analysis="delay",
    title="Feedback that comes late",
    text="The later, the worse.",
    sections=(Section("etth", ("a note",), ("method", "MAE"), (("ompb", "0.5"),), keys=1),),
    figures=(
        Figure(
            "rolling",
            "Rolling MAE",
            "A caption.",
            (
                Panel("ETTh2", "row", "MAE", (Curve("ompb", (0.0, 1.0), (0.5, None)),)),
                Panel("ILI", "week", "MAE", (Curve("spread", ("a", "b"), (0.0, 1.0), "band", (1.0, 2.0)),)),
            ),
        ),
    ),
    made_from={"cells": 4},
)


def test_a_finding_is_read_back(tmp_path: Path) -> None:
    FINDING.write(tmp_path / "deep" / "delay.json")
    assert Finding.read(tmp_path / "deep" / "delay.json") == FINDING


@pytest.mark.parametrize("text", [None, "", "{}", '{"sections": [{}], "figures": []}'])
def test_what_is_no_finding_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "other.json").write_text(text)
    with pytest.raises(FormatError, match="is not a finding"):
        Finding.read(tmp_path / "other.json")
