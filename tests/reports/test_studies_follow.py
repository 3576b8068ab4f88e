from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import ompb
from ompb.errors import InputError, OptionError, TimeOrderError, TooShortError
from ompb.studies import Phase, demo_study, study
from ompb.tables import Reading, Table
from ompb.types import Floats

CONTEXT, HORIZON, SOURCE, ROWS = 24, 6, 300, 400
SIZES: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": 12}
HOUR = np.timedelta64(1, "h")


def load() -> Floats:
    wave = np.sin(2 * np.pi * np.arange(ROWS)[:, None] / 12)
    return np.asarray(10 + wave + np.random.default_rng(1).normal(0, 0.2, (ROWS, 2)))


def hourly() -> Table:
    times = np.datetime64("2024-01-01T00", "us") + np.arange(ROWS) * HOUR
    return Table(load(), times, ("a", "b"), "date")


def test_it_is_ridge_calibrator_and_backtest_in_one() -> None:
    values = load()
    found = study(values, source_end=SOURCE, **SIZES)
    ridge = ompb.Ridge.fit(values[:225], CONTEXT, HORIZON)
    calibrator = ompb.Calibrator.fit(ridge, values[:SOURCE], unseen=75, **SIZES)
    run = ompb.backtest(calibrator, ridge, values[SOURCE - CONTEXT + 1 :])
    assert np.array_equal(found.run.mean, run.mean)
    assert found.phases == (Phase("target", CONTEXT - 1, CONTEXT - 1 + ROWS - SOURCE),)
    assert list(found.references) == ["seasonal profile", "last value", "running bias", "copied residual"]
    error = np.abs(run.mean - run.outcome) / run.scale
    assert found.scores()["target"][-1].mae == pytest.approx(np.nanmean(error))


def test_a_file_a_table_and_an_array_are_followed_alike(tmp_path: Path) -> None:
    table = hourly()
    path = tmp_path / "load.parquet"
    pl.DataFrame({"date": table.times, "a": table.values[:, 0], "b": table.values[:, 1]}).write_parquet(path)
    from_array = study(table.values, source_end=SOURCE, **SIZES)
    for data in (table, path, str(path)):
        found = study(data, source_end="2024-01-13T12:00", **SIZES)
        assert np.array_equal(found.run.mean, from_array.run.mean)
        assert found.times[CONTEXT - 1] == np.datetime64("2024-01-13T12:00")
        assert found.run.names == ("a", "b")
    assert np.array_equal(from_array.times, np.arange(SOURCE - CONTEXT + 1, ROWS))


def test_a_given_forecaster_is_used_on_both_parts() -> None:
    profile = ompb.SeasonalProfile(HORIZON, 12)
    found = study(load(), source_end=SOURCE, forecaster=profile, **SIZES)
    windows = load()[None, SOURCE - CONTEXT + 1 : SOURCE + 1]
    assert np.allclose(found.run.base[0], profile(windows)[0])
    assert found.calibrator.in_sample
    assert found.facts["not trained on"] == "not known"
    assert not study(load(), source_end=SOURCE, forecaster=profile, unseen=0.25, **SIZES).calibrator.in_sample


def test_phases_begin_where_they_are_said_to() -> None:
    begins: dict[str, str | int] = {"calm": SOURCE, "storm": "2024-01-15", "after": 380}
    found = study(hourly(), source_end=SOURCE, phases=begins, **SIZES)
    start = SOURCE - CONTEXT + 1
    assert found.phases == (
        Phase("calm", SOURCE - start, 336 - start),
        Phase("storm", 336 - start, 380 - start),
        Phase("after", 380 - start, ROWS - start),
    )
    assert list(found.scores()) == list(begins)


def test_progress_is_told_to_the_end() -> None:
    told: list[tuple[str, int, int]] = []
    study(load(), source_end=SOURCE, progress=lambda *step: told.append(step), **SIZES)
    assert told[-1] == ("Following the target", 123, 123)
    assert {doing for doing, _, _ in told} == {"Learning from the source", "Following the target"}
    assert all(done <= total for _, done, total in told)


def test_missing_stamps_are_inserted_and_told() -> None:
    whole = hourly()
    kept = np.delete(np.arange(ROWS), [50, 350])
    gappy = Table(whole.values[kept], whole.times[kept], whole.channels, "date")
    found = study(gappy, source_end=SOURCE, **SIZES)
    assert found.notes == ("data: 400 rows of 2 channels, 2 missing time stamps inserted.",)
    assert np.isnan(found.rows[350 - SOURCE + CONTEXT - 1]).all()


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"source_end": 20}, TooShortError, "the source has 20 rows; it needs at least 30"),
        ({"context": 10**9}, OptionError, "context = 1000000000"),
        ({"context": 10**6}, TooShortError, r"at least 1000006 \(context \+ horizon\)"),
        ({"season": 99999999999}, OptionError, "season = 99999999999 .* a whole number from 2"),
        ({"season": 301}, TooShortError, "the source has 300 rows, less than the season of 301"),
        ({"season": 1}, OptionError, "season = 1 "),
        ({"unseen": 0.0}, OptionError, "unseen = 0.0"),
        ({"unseen": 300}, TooShortError, "the source has 300 rows, and unseen = 300 leaves one side"),
        ({"unseen": True}, OptionError, "unseen = True"),
        ({"phases": {"early": 100}}, OptionError, "'early' begins at row 100 .* rows 300 to 399"),
        ({"phases": {"one": 350, "two": 320}}, OptionError, "'one' begins at row 350 and ends before row 320"),
        ({"phases": {"one": "soon"}}, OptionError, "phase 'one' = 'soon' is neither a number"),
        ({"gates": "shared"}, OptionError, "did you mean 'gate'"),
        ({"forecaster": ompb.SeasonalProfile(6, 12), "forecasts": "mine.csv"}, OptionError, "pass one of them"),
        ({"forecaster": ompb.Recorded(np.zeros((ROWS, 6, 2)))}, OptionError, "forecasts="),
        ({"forecasts": "nowhere.csv"}, InputError, "no file 'nowhere.csv'"),
    ],
)
def test_bad_arguments_are_refused(wrong: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        study(load(), **{"source_end": SOURCE, **SIZES, **wrong})


@pytest.mark.parametrize(
    "times",
    [
        2**63 - 1 - np.arange(ROWS)[::-1],
        np.linspace(-9e18, 9e18, ROWS).astype(np.int64),
        np.datetime64("9999-12-31T20:00", "us") + np.arange(ROWS) * HOUR,
        np.datetime64("9999-12-31T20:00", "us") - np.arange(ROWS)[::-1] * HOUR,  # whose next six hours are too late
        np.datetime64("0001-01-01T00:00", "us") + (np.arange(ROWS) - 3) * HOUR,
    ],
    ids=["last integers", "all integers", "late dates", "last dates", "early dates"],
)
def test_times_that_cannot_be_written_are_refused_before_anything_is_learned(times: Any, tmp_path: Path) -> None:
    def never(_: Floats) -> Floats:
        raise AssertionError("the forecaster was asked")

    path = tmp_path / "load.parquet"
    pl.DataFrame({"t": times, "a": load()[:, 0]}).write_parquet(path)
    with pytest.raises(TimeOrderError, match=r"accepted: .*(years 1 to 9999|integers)"):
        study(path, reading=Reading(time="t"), source_end=SOURCE, forecaster=never, **SIZES)


def test_the_last_times_that_can_be_written_are_followed_and_drawn(tmp_path: Path) -> None:
    times = np.datetime64("9999-12-31T17:00", "us") - np.arange(ROWS)[::-1] * HOUR
    found = study(Table(load(), times, ("a", "b"), "t"), source_end=SOURCE, **SIZES)
    assert ompb.report(found, tmp_path / "report.html").stat().st_size > 10_000


def test_the_demo_has_its_three_phases() -> None:
    found = demo_study(seed=3)
    assert repr(found) == (
        "Study('Demo: five feeders, three phases': 2880 forecasts of 24 leads, 5 channels; "
        "phases: no shift, covariate shift, concept shift)"
    )
    assert found.facts["data"] == "made up, hourly, seed 3"
    bare, ours = (found.scores()["concept shift"][place] for place in (0, -1))
    assert ours.mae < bare.mae
