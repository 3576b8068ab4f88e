"""Studies of many series at once are those of each alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ompb
from ompb.errors import InputError, OptionError, TooShortError
from ompb.studies import study_each
from ompb.tables import Table
from ompb.types import Floats

SIZES: dict[str, Any] = {"context": 12, "horizon": 4, "season": 6}
DAYS = np.datetime64("2024-01-01", "us") + np.arange(400) * np.timedelta64(1, "D")


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


def write_long(path: Path, tables: dict[str, Floats], first: dict[str, int] | None = None) -> Path:
    """Daily series, each from some day on."""
    parts = [
        pl.DataFrame({"unique_id": [one] * len(rows), "ds": DAYS[start : start + len(rows)], "y": rows})
        for one, rows in tables.items()
        for start in [(first or {}).get(one, 0)]
    ]
    pl.concat(parts).fill_nan(None).write_csv(path)
    return path


def test_series_that_come_late_or_go_early_are_left_out_by_name(tmp_path: Path) -> None:
    tables = {
        "whole": load(0),
        "ended": load(1)[:150],
        "born": load(2)[:90],
        "late": load(3)[:130],
        "empty": np.full(300, np.nan),
    }
    path = write_long(tmp_path / "meters.csv", tables, {"born": 210, "late": 170})
    found = study_each(path, source_end="2024-07-01", **SIZES)  # day 182
    assert list(found) == ["whole"]
    assert found.left_out["ended"].startswith("source_end = '2024-07-01' does not split the 150 rows in two")
    assert found.left_out["born"].startswith("source_end = '2024-07-01' does not split the 90 rows in two")
    assert found.left_out["late"].startswith("the source has 12 rows; it needs at least 16 (context + horizon)")
    assert "'y' has no value at all" in found.left_out["empty"]
    assert repr(found) == "Studies('1 series of meters.csv, followed by ompb': 1 series, 4 left out)"
    alone = ompb.study(load(0)[:, None], source_end=182, **SIZES)
    np.testing.assert_array_equal(found["whole"].run.mean, alone.run.mean)
    with pytest.raises(TooShortError, match=r"none of 5 series can be followed; series 'whole': source_end = '2025"):
        study_each(path, source_end="2025-07-01", **SIZES)


def test_too_few_rows_for_the_certificate_or_the_season_are_too_few() -> None:
    tables = {"long": load(0)[:, None], "short": load(1)[:70, None]}
    shares = {"long": 200, "short": 60}
    frames = {
        one: pl.DataFrame({"ds": DAYS[200 - shares[one] :][: len(rows)], "y": rows[:, 0]})
        for one, rows in tables.items()
    }
    date = str(DAYS[200])[:10]
    found = study_each(frames, source_end=date, **SIZES)
    assert found.left_out["short"].startswith("the source has 60 rows, which leaves 15 for the certificate part")
    found = study_each(frames, source_end=date, **{**SIZES, "season": 90})
    assert found.left_out["short"].startswith("the source has 60 rows, less than the season of 90")
    found = study_each(frames, source_end=date, **SIZES, unseen=80)
    assert found.left_out["short"].startswith("the source has 60 rows, and unseen = 80 leaves one side")


def test_each_series_has_its_own_record(tmp_path: Path) -> None:
    tables = {"a": load(0), "b": load(1)}
    path = write_long(tmp_path / "meters.csv", tables, {"b": 20})
    said = {one: rows + np.arange(len(rows)) % 3 for one, rows in tables.items()}
    lines = [
        (one, DAYS[start + origin + lead].item(), DAYS[start + origin].item(), said[one][origin] + lead)
        for one, start in (("b", 20), ("a", 0))
        for origin in range(11, 300)
        for lead in range(1, 5)
    ]
    lines.append(("z", DAYS[1].item(), DAYS[0].item(), 1.0))
    mine = tmp_path / "mine.parquet"
    pl.DataFrame(lines, schema=["unique_id", "ds", "cutoff", "Naive"], orient="row").write_parquet(mine)
    found = study_each(path, source_end="2024-07-01", forecasts=mine, unseen=60, **SIZES)
    for one, start in (("a", 0), ("b", 20)):
        record = ompb.Recorded(
            np.array([[[value + lead] for lead in range(1, 5)] for value in said[one]]), times=DAYS[start : start + 300]
        )
        alone = ompb.study(
            pl.DataFrame({"ds": DAYS[start : start + 300], "y": tables[one]}),
            source_end="2024-07-01",
            forecaster=record,
            unseen=60,
            **SIZES,
        )
        np.testing.assert_allclose(found[one].run.mean, alone.run.mean, rtol=0, atol=1e-12)
        assert found[one].facts["forecaster"] == "forecasts recorded in mine.parquet"
    assert "Forecasts of z are not used: there is no such series." in found.notes
    pl.read_parquet(mine).filter(pl.col("unique_id") != "b").write_parquet(mine)
    rest = study_each(path, source_end="2024-07-01", forecasts=mine, **SIZES)
    assert list(rest) == ["a"]
    assert rest.left_out["b"] == "there are no recorded forecasts of it; bring some."
    pl.read_parquet(mine).filter(pl.col("unique_id") == "z").write_parquet(mine)
    with pytest.raises(InputError, match="unique_id 'z'; the series are a, b"):
        study_each(path, source_end="2024-07-01", forecasts=mine, **SIZES)
    with pytest.raises(OptionError, match="pass one of them"):
        study_each(path, source_end="2024-07-01", forecasts=mine, forecaster=record, **SIZES)


def test_notes_are_said_once_and_name_their_series(tmp_path: Path) -> None:
    tables = {"a": load(0), "b": load(1), "c": load(2)}
    tables["b"][40] = -999
    kept = write_long(tmp_path / "meters.csv", tables)
    lines = kept.read_text().splitlines()
    kept.write_text(
        "\n".join([*lines[:50], *lines[52:], lines[-1]]) + "\n"
    )  # two days of a are gone, one line is a copy
    found = study_each(kept, source_end="2024-07-01", **SIZES)
    assert found.notes[0] == "3 series of 300 rows, 2 missing time stamps inserted in 1 of them."
    assert found.notes[1] == "1 row left out: copies of another one, cell by cell."
    assert found.notes[2].startswith("b: 'y' is -999 once, at 2024-02-10T00:00:00")
    assert found["a"].notes[0] == "a: 300 rows of 1 channel, 2 missing time stamps inserted."


@pytest.mark.parametrize(
    ("source_end", "error", "words"),
    [
        (
            300,
            TooShortError,
            r"series 1: source_end = 300 does not split the 300 rows in two, which are too few for it; pass 1 to 299",
        ),
        ("0", TooShortError, "series 1: source_end = 0 does not split"),
        ("2024-07-01", OptionError, "series 1: source_end = '2024-07-01' is a date and the table's times are integers"),
        (10, TooShortError, "series 1: the source has 10 rows"),
    ],
)
def test_errors_name_the_series(source_end: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        study_each({1: load(1)[:, None]}, source_end=source_end, **SIZES)


def test_tables_are_called_by_their_ids() -> None:
    table = Table(load(0)[:, None], np.arange(300), ("y",), "row", notes=("Rounded.",))
    found = study_each({"a": table, "b": table, "c": load(1)[:, None]}, source_end=200, **SIZES)
    assert [study.title for study in found.values()] == [f"{one}, followed by ompb" for one in "abc"]
    assert found.notes[1] == "a, b: Rounded."
