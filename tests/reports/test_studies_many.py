"""Studies of many series at once are those of each alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import ompb
from ompb.errors import OptionError, TooShortError
from ompb.studies import study_each
from ompb.types import Floats

SIZES: dict[str, Any] = {"context": 12, "horizon": 4, "season": 6}
DAYS = np.datetime64("2024-01-01", "us") + np.arange(300) * np.timedelta64(1, "D")


def load(seed: int, rows: int = 300) -> Floats:
    rng = np.random.default_rng(seed)
    return np.asarray(np.sin(2 * np.pi * np.arange(rows) / 6) + 0.1 * rng.normal(size=rows).cumsum())


def test_each_is_its_own_study() -> None:
    lines = [(f"meter {seed}", DAYS[row], load(seed)[row]) for seed in range(3) for row in range(300 - 20 * seed)]
    ids, ds, y = zip(*lines, strict=True)
    frame = pl.DataFrame({"unique_id": list(ids), "ds": np.asarray(ds), "y": np.asarray(y)})
    told: list[tuple[str, int, int]] = []
    found = study_each(
        frame, source_end="2024-07-01", **SIZES, progress=lambda what, done, of: told.append((what, done, of))
    )
    assert list(found) == ["meter 0", "meter 1", "meter 2"]
    for one, many in found.items():
        alone = ompb.study(frame.filter(pl.col("unique_id") == one).drop("unique_id"), source_end="2024-07-01", **SIZES)
        for name in ("mean", "base", "sd", "gate", "outcome", "multipliers"):
            np.testing.assert_array_equal(getattr(many.run, name), getattr(alone.run, name), strict=True)
        assert many.run.warnings == alone.run.warnings
        assert [phase.rows for phase in many.phases] == [phase.rows for phase in alone.phases]
        for mine, its in zip(many.scores()["target"], alone.scores()["target"], strict=True):
            assert mine == its
    assert {what for what, _, _ in told} == {"Learning from the sources", "Following the targets"}
    assert told[-1][1] == told[-1][2]


def test_rows_without_times_and_a_given_forecaster() -> None:
    tables = {seed: load(seed)[:, None] for seed in range(2)}
    naive = ompb.SeasonalProfile(horizon=4, season=6)
    found = study_each(tables, source_end=200, **SIZES, forecaster=naive, unseen=60)
    for one, many in found.items():
        alone = ompb.study(tables[one], source_end=200, **SIZES, forecaster=naive, unseen=60)
        np.testing.assert_array_equal(many.run.mean, alone.run.mean, strict=True)
        assert not many.calibrator.in_sample


@pytest.mark.parametrize(
    ("source_end", "error", "words"),
    [
        (300, OptionError, r"series 1: source_end = 300 does not split the 300 rows"),
        ("0", OptionError, "series 1: source_end = '0' does not split"),
        ("2024-07-01", OptionError, "series 1: source_end = '2024-07-01' is a date, and the rows have none"),
        (10, TooShortError, "series 1: the source has 10 rows"),
    ],
)
def test_errors_name_the_series(source_end: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        study_each({1: load(1)[:, None]}, source_end=source_end, **SIZES)
