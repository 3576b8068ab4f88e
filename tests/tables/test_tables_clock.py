"""Zones and offsets: both hours of autumn are kept, none is missing in spring, results are told by the same clock."""

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from small_tables import csv

from ompb.errors import OptionError, TimeOrderError, TooShortError
from ompb.tables import Reading, Table, read_table, regular, split_row, write_table

BERLIN = Reading(timezone="Europe/Berlin")
# pandas is the oracle: hours over both changes of the clock in 2024
UTC = pd.date_range("2024-03-01", "2024-11-15", freq="h", tz="UTC")
LOCAL = UTC.tz_convert("Europe/Berlin")


def written(folder: Path, stamps: pd.DatetimeIndex) -> Path:
    pd.DataFrame({"date": stamps, "load": np.arange(len(stamps))}).to_csv(folder / "load.csv", index=False)
    return folder / "load.csv"


def assert_whole(table: Table) -> None:
    """Every hour once, none inserted."""
    np.testing.assert_array_equal(table.times, UTC.tz_localize(None).to_numpy())
    assert regular(table)[1] == 0
    np.testing.assert_array_equal(table.values[:, 0], np.arange(len(UTC)))


def test_offsets_are_understood(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, LOCAL))
    assert_whole(table)
    assert str(table.clock) == "+01:00 and +02:00"
    assert_whole(read_table(tmp_path / "load.csv", BERLIN))


def test_local_times_without_offset_need_the_zone_and_keep_both_hours(tmp_path: Path) -> None:
    path = written(tmp_path, LOCAL.tz_localize(None))
    with pytest.raises(TimeOrderError, match=r"2024-10-27T02:00:00 appears twice in the column 'date'.*--timezone"):
        read_table(path)
    assert_whole(read_table(path, BERLIN))


@pytest.mark.parametrize("order", ["series", "time", "newest first"])
def test_both_hours_are_kept_in_every_series(tmp_path: Path, order: str) -> None:
    one = pd.DataFrame({"date": LOCAL.tz_localize(None), "y": np.arange(len(UTC)), "place": np.arange(len(UTC))})
    frame = pd.concat([one.assign(unique_id="a"), one.assign(unique_id="b")], ignore_index=True)
    if order != "series":
        frame = frame.sort_values(["place", "unique_id"], ascending=order == "time", kind="stable")
    frame.drop(columns="place").rename(columns={"date": "ds"}).to_csv(tmp_path / "load.csv", index=False)
    table = read_table(tmp_path / "load.csv", BERLIN)
    for name in "ab":
        assert_whole(table.select((name,)))


def test_half_hours_are_told_apart_too(tmp_path: Path) -> None:
    half = pd.date_range("2024-10-26", "2024-10-29", freq="30min", tz="Europe/Berlin")
    table = read_table(written(tmp_path, half.tz_localize(None)), BERLIN)
    np.testing.assert_array_equal(table.times, half.tz_convert("UTC").tz_localize(None).to_numpy())


def test_results_are_told_by_the_clock_of_the_table(tmp_path: Path) -> None:
    for name, local in {"offsets": LOCAL, "bare": LOCAL.tz_localize(None)}.items():
        table = read_table(written(tmp_path, local), BERLIN)
        write_table(tmp_path / f"{name}.csv", {"ds": table.times, "a": table.values[:, 0]}, table.clock)
        back = pd.to_datetime(pd.read_csv(tmp_path / f"{name}.csv")["ds"], utc=True)
        assert (back == UTC).all()
        texts = (tmp_path / f"{name}.csv").read_text()
        assert "2024-10-27T02:00:00+02:00" in texts
        assert "2024-10-27T02:00:00+01:00" in texts
        write_table(tmp_path / "out.parquet", {"ds": table.times, "a": table.values[:, 0]}, table.clock)
        assert pl.read_parquet(tmp_path / "out.parquet").schema["ds"] == pl.Datetime("us", "Europe/Berlin")
        assert_whole(read_table(tmp_path / "out.parquet"))


def test_a_zone_that_parquet_names_is_kept(tmp_path: Path) -> None:
    pl.DataFrame({"ds": UTC.tz_localize(None).to_numpy(), "a": np.arange(float(len(UTC)))}).with_columns(
        pl.col("ds").dt.cast_time_unit("us").dt.replace_time_zone("UTC").dt.convert_time_zone("Europe/Berlin")
    ).write_parquet(tmp_path / "load.parquet")
    table = read_table(tmp_path / "load.parquet")
    assert_whole(table)
    assert table.shown(0) == "2024-03-01T01:00:00+01:00"


def test_days_are_counted_by_the_wall(tmp_path: Path) -> None:
    local_days = pd.date_range("2024-03-01", "2024-11-15", tz="Europe/Berlin")
    for stamps in (local_days, local_days.tz_localize(None)):
        table = read_table(written(tmp_path, stamps), BERLIN)
        assert regular(table)[1] == 0
        np.testing.assert_array_equal(table.times, local_days.tz_localize(None).to_numpy())
        assert table.shown(0) == "2024-03-01T00:00:00"
    assert regular(read_table(written(tmp_path, local_days)))[1] == 0


@pytest.mark.parametrize(
    ("place", "rows"),
    [
        ("2024-03-01T01:00", 0 + 0),  # midnight of UTC, the first row
        ("2024-03-02T01:00", 24),
        ("2024-03-02T00:00Z", 24),
        ("2024-03-02T03:00+03:00", 24),
    ],
)
def test_the_place_of_a_split_is_read_by_the_clock(tmp_path: Path, place: str, rows: int) -> None:
    table = read_table(written(tmp_path, LOCAL), BERLIN)
    if rows:
        assert split_row(table, place) == rows
    else:
        with pytest.raises(TooShortError, match=r"after 2024-03-01T01:00:00\+01:00 and up to 2024-11-15T01:00:00\+01"):
            split_row(table, place)


@pytest.mark.parametrize(
    ("place", "rows"),
    [
        ("2024-03-02", 23),
        ("2024-03-31T02:30", 30 * 24 + 1),  # which clocks skip: the row of 03:00
        ("2024-07-01", 122 * 24 - 2),
        ("2024-10-27T02:00", 240 * 24),  # the first of the two
        ("2024-11-01", 245 * 24 - 1),
    ],
)
def test_a_split_needs_no_offset_where_those_of_the_table_change(tmp_path: Path, place: str, rows: int) -> None:
    path = tmp_path / "offsets.csv"
    path.write_text("time,y\n" + "".join(f"{stamp.isoformat()},1\n" for stamp in UTC.tz_convert("Europe/Berlin")))
    assert split_row(read_table(path), place) == rows


@pytest.mark.parametrize("place", ["2024-03-31T02:00", "2024-03-31T02:30", "2024-03-31 02:59:59"])
def test_a_split_at_an_hour_that_clocks_skip_is_told_the_next_one(tmp_path: Path, place: str) -> None:
    table = read_table(written(tmp_path, LOCAL), BERLIN)
    with pytest.raises(OptionError) as caught:
        split_row(table, place)
    assert str(caught.value) == (
        f"source_end = '{place}' does not exist in Europe/Berlin, where clocks go forward over it; the next time that "
        "does is 2024-03-31T03:00:00: write that."
    )
    assert split_row(table, "2024-03-31T03:00:00") == 30 * 24 + 1  # as the row of 01:00 UTC
    assert split_row(table, "2024-03-31T02:00Z") == 30 * 24 + 2


def test_a_clock_that_the_times_do_not_keep_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, UTC.tz_localize(None))  # which have an hour that Berlin skips
    with pytest.raises(TimeOrderError, match="2024-03-31T02:00:00 does not exist in Europe/Berlin"):
        read_table(path, BERLIN)
    with pytest.raises(OptionError, match="'Berlin' is no time zone; pass a name such as Europe/Berlin"):
        read_table(path, Reading(timezone="Berlin"))
    with pytest.raises(OptionError, match="the table's times are integers"):
        read_table(csv(tmp_path, "time,a\n1,2\n2,3\n"), BERLIN)
