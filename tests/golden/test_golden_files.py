"""Files saved by earlier versions still open, and go on as they did."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ompb

FOLDER = Path(__file__).parent
VERSIONS = sorted(int(path.stem.split("-")[1]) for path in FOLDER.glob("calibrator-*.ompb"))


def writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_writer", FOLDER / "write.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_is_one_for_the_present_version() -> None:
    assert ompb.archive.VERSION in VERSIONS


@pytest.mark.parametrize("version", VERSIONS)
def test_golden_files_continue(version: int) -> None:
    golden = writer()
    cal = ompb.Calibrator.load(FOLDER / f"calibrator-{version}.ompb")
    stream = ompb.Stream.load(FOLDER / f"stream-{version}.ompb", cal, golden.forecaster)
    expected = json.loads((FOLDER / f"forecasts-{version}.json").read_text())
    for found, kept in zip(golden.next_forecasts(stream), expected, strict=True):
        np.testing.assert_allclose(found["mean"], kept["mean"], rtol=1e-9)
        assert found["certificate"] == pytest.approx(kept["certificate"], rel=1e-9)
