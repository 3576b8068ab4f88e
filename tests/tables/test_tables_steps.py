"""Steps that people have: business days, ends of months, clocks that are some seconds off."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tables import csv

from ompb.errors import OptionError, TimeOrderError
from ompb.floor.times import Grid
from ompb.tables import Reading, Table, read_table, regular
from ompb.tables.steps import grid_of, placed


def table_of(folder: Path, stamps: pd.DatetimeIndex, reading: Reading | None = None) -> Table:
    pd.DataFrame({"date": stamps, "a": np.arange(len(stamps))}).to_csv(folder / "table.csv", index=False)
    return read_table(folder / "table.csv", reading)


@pytest.mark.parametrize(
    "freq", ["15min", "h", "6h", "D", "B", "W", "MS", "ME", "QS", "QE", "YS", "YE", "30s", "2D", "250ms"]
)
def test_names_mean_what_pandas_means(freq: str) -> None:
    stamps = pd.date_range("2021-01-01", periods=40, freq=freq)
    times = stamps.as_unit("us").to_numpy()
    grid = grid_of(freq)
    np.testing.assert_array_equal(grid.places(times), np.arange(40))
    np.testing.assert_array_equal(grid.after(times[0], 39), times[1:])
    assert placed(times, freq, "the column").rows == 0


@pytest.mark.parametrize("freq", ["H", "T", "M", "Q", "A", "1mo", "1d", "W-SUN", "2 hours", "QE-DEC"])
def test_old_and_other_names_are_known(freq: str) -> None:
    assert grid_of(freq).step >= 1


@pytest.mark.parametrize("freq", ["", "0h", "fortnight", "h h", "-1h", "1.5h"])
def test_other_names_are_refused(freq: str) -> None:
    with pytest.raises(OptionError, match=r"freq = .* accepted: names such as 15min, h, D, B"):
        grid_of(freq)


@pytest.mark.parametrize("said", [None, "B"])
def test_business_days_have_no_weekends_to_fill(tmp_path: Path, said: str | None) -> None:
    stamps = pd.bdate_range("2022-01-03", "2023-12-29").delete([10, 11, 200])  # three holidays
    full, inserted = regular(table_of(tmp_path, stamps, Reading(freq=said)))
    assert inserted == 3
    assert len(full.values) == len(pd.bdate_range("2022-01-03", "2023-12-29"))
    assert full.grid == Grid(1, "business day")
    every_day = regular(table_of(tmp_path, stamps, Reading(freq="D")))[0]
    assert len(every_day.values) == 726


@pytest.mark.parametrize("said", [None, "ME"])
@pytest.mark.parametrize("freq", ["ME", "BME"])
def test_ends_of_months_are_even_even_if_they_are_business_days(tmp_path: Path, freq: str, said: str | None) -> None:
    stamps = pd.date_range("2020-01-01", "2023-12-31", freq=freq)
    table = table_of(tmp_path, stamps, Reading(freq=said))
    np.testing.assert_array_equal(table.times, pd.date_range("2020-01-01", "2023-12-31", freq="ME").to_numpy())
    assert regular(table)[1] == 0
    assert bool(table.notes) == (freq == "BME")


@given(st.sampled_from(["10s", "min", "15min", "h", "D"]), st.integers(0, 2**32 - 1), st.booleans())
def test_jitter_is_rounded_to_where_it_came_from(freq: str, seed: int, at_half: bool) -> None:
    phase = 0.5 if at_half and freq in ("h", "D") else 0.0
    exact = pd.date_range("2024-01-01", periods=300, freq=freq).as_unit("us").to_numpy()
    exact = exact + (phase * (exact[1] - exact[0])).astype("timedelta64[us]")
    rng = np.random.default_rng(seed)
    kept = np.unique(np.concatenate([[0, 1, 2], rng.integers(0, 300, 250)]))
    noise = (rng.uniform(-0.04, 0.04, len(kept)) * (exact[1] - exact[0]).astype(np.int64)).astype("timedelta64[us]")
    found = placed(exact[kept] + noise, None, "the column")
    np.testing.assert_array_equal(found.times, exact[kept])
    assert found.moved == np.abs(noise.astype(np.int64)).max()


def test_jitter_is_told(tmp_path: Path) -> None:
    seconds = pd.to_timedelta(np.tile([0, 3, -2, 1], 25), unit="s")
    table = table_of(tmp_path, pd.date_range("2024-01-01", periods=100, freq="h") + seconds)
    assert table.notes == ("75 times rounded to steps of 1:00:00, by 0:00:03 at most.",)
    np.testing.assert_array_equal(table.times, pd.date_range("2024-01-01", periods=100, freq="h").to_numpy())


def test_times_without_even_steps_are_refused_until_a_step_is_named(tmp_path: Path) -> None:
    minutes = pd.to_timedelta(np.tile([0, 25, -20, 10], 25), unit="min")
    stamps = pd.date_range("2024-01-01", periods=100, freq="h") + minutes
    with pytest.raises(TimeOrderError, match=r"the column 'date' keep no even steps: .* Name the step with --freq"):
        table_of(tmp_path, stamps)
    table = table_of(tmp_path, stamps, Reading(freq="h"))
    assert regular(table)[1] == 0
    with pytest.raises(TimeOrderError, match="fall on the same step of 1 day"):
        table_of(tmp_path, stamps, Reading(freq="D"))
    with pytest.raises(OptionError, match="freq = 'h' speaks of dates"):
        read_table(csv(tmp_path, "time,a\n1,2\n2,3\n"), Reading(freq="h"))


def test_a_finer_step_can_be_named(tmp_path: Path) -> None:
    table = table_of(tmp_path, pd.date_range("2024-01-01", periods=5, freq="2h"), Reading(freq="h"))
    full, inserted = regular(table)
    assert (inserted, len(full.values)) == (4, 9)
