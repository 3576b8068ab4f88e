from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tables import UNKNOWN, csv, days

from ompb.errors import (
    DtypeError,
    FormatError,
    InputError,
    NotFiniteError,
    TimeOrderError,
    TooShortError,
)
from ompb.tables import (
    Reading,
    read_table,
    regular,
    split_row,
    write_table,
)

# Wide layout


def test_wide_csv_with_every_way_to_say_missing(tmp_path: Path) -> None:
    cells = ["", "NA", "NaN", "X", "null", "n/a", " x ", "None"]
    lines = [f"2024-01-{day:02d},{cell},{day}.5" for day, cell in enumerate(["-1e1", *cells], start=1)]
    table = read_table(csv(tmp_path, "\n".join(["date,a,b", *lines])))
    assert table.channels == ("a", "b")
    assert table.time_name == "date"
    np.testing.assert_array_equal(table.times, days(*range(1, 10)))
    np.testing.assert_array_equal(table.values[:, 0], [-10.0] + 8 * [UNKNOWN])
    np.testing.assert_array_equal(table.values[:, 1], np.arange(1, 10) + 0.5)


def test_integer_times_are_row_numbers(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "Time,a\n5,1\n6,2\n"))
    assert table.times.dtype == np.int64
    np.testing.assert_array_equal(table.times, [5, 6])


@pytest.mark.parametrize(
    ("text", "utc"),
    [
        ("2024-01-31", "2024-01-31T00:00"),
        ("2024-01-31 23:00", "2024-01-31T23:00"),
        ("2024-03", "2024-03-01T00:00"),
        ("2024Q3", "2024-07-01T00:00"),
        ("31.01.2024 23:00", "2024-01-31T23:00"),
        ("1/31/2024 11:30 PM", "2024-01-31T23:30"),
        ("2024-01-31T23:00:01.25", "2024-01-31T23:00:01.25"),
        ("2024-01-31T23:00:00Z", "2024-01-31T23:00"),
        ("2024-01-31T23:00:00+02:00", "2024-01-31T21:00"),
    ],
)
def test_iso_times_are_understood(tmp_path: Path, text: str, utc: str) -> None:
    assert read_table(csv(tmp_path, f"date,a\n{text},1\n")).times == np.datetime64(utc, "us")


@pytest.mark.parametrize("header", ["when,a,b", "a,when,b"])
def test_the_only_column_of_dates_is_the_time(tmp_path: Path, header: str) -> None:
    row = {"when": "2024-01-01", "a": "1", "b": "X"}
    line = ",".join(row[name] for name in header.split(","))
    assert read_table(csv(tmp_path, f"{header}\n{line}\n")).time_name == "when"


def test_the_time_column_can_be_named(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "step,date,a\n1,20,3\n2,30,4\n"), Reading(time="step"))
    assert (table.time_name, table.channels) == ("step", ("date", "a"))


def test_a_column_with_nothing_known_is_a_channel(tmp_path: Path) -> None:
    assert np.isnan(read_table(csv(tmp_path, "date,a,b\n2024-01-01,1,\n")).values[0, 1])


@pytest.mark.parametrize("zone", [None, UTC, timezone(timedelta(hours=2))])
def test_wide_parquet_keeps_its_types(tmp_path: Path, zone: timezone | None) -> None:
    stamps = [datetime(2024, 1, 1, hour, tzinfo=zone) for hour in (3, 4)]
    path = tmp_path / "table.parquet"
    frame = pl.DataFrame({"ds": stamps, "a": [1, None], "b": [0.5, float("nan")], "c": [None, None]})
    frame.write_parquet(path)
    table = read_table(path)
    offset = zone.utcoffset(None) if zone else timedelta(0)
    expected = np.array(["2024-01-01T03", "2024-01-01T04"], dtype="datetime64[us]") - np.timedelta64(offset)
    np.testing.assert_array_equal(table.times, expected)
    np.testing.assert_array_equal(table.values, [[1, 0.5, UNKNOWN], [UNKNOWN, UNKNOWN, UNKNOWN]])


def test_parquet_dates_and_integers_are_times(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    pl.DataFrame({"date": pl.Series(["2024-01-01"]).str.to_date(), "a": [1.0]}).write_parquet(path)
    np.testing.assert_array_equal(read_table(path).times, days(1))
    pl.DataFrame({"time": pl.Series([7], dtype=pl.UInt16), "a": [1.0]}).write_parquet(path)
    assert read_table(path).times.tolist() == [7]


# Long layout


def test_long_layout_is_pivoted_to_the_union_of_times(tmp_path: Path) -> None:
    text = "unique_id,ds,y\nz,2024-01-02,1\nz,2024-01-04,2\na,2024-01-01,3\na,2024-01-02,X\na,2024-01-04,5\n"
    table = read_table(csv(tmp_path, text))
    assert table.channels == ("z", "a")
    np.testing.assert_array_equal(table.times, days(1, 2, 4))
    np.testing.assert_array_equal(table.values, [[UNKNOWN, 3], [1, UNKNOWN], [2, 5]])


@given(st.data())
def test_long_and_wide_layouts_give_the_same_table(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    values = np.array(data.draw(st.lists(st.tuples(*3 * [st.floats(-9, 9) | st.just(UNKNOWN)]), min_size=1)))
    times = np.arange(len(values))
    folder = tmp_path_factory.mktemp("layouts")
    write_table(folder / "wide.csv", {"ds": times, "p": values[:, 0], "q": values[:, 1], "r": values[:, 2]})
    ids, stamps = np.repeat(["p", "q", "r"], len(times)), np.tile(times, 3)
    order = np.argsort(stamps, kind="stable") if data.draw(st.booleans()) else np.arange(len(stamps))
    long = {"unique_id": ids[order], "ds": stamps[order], "y": values.T.ravel()[order]}
    write_table(folder / "long.parquet", long)
    wide, pivoted = read_table(folder / "wide.csv"), read_table(folder / "long.parquet")
    assert wide.channels == pivoted.channels
    np.testing.assert_array_equal(wide.values, pivoted.values)
    np.testing.assert_array_equal(wide.times, pivoted.times)


# What cannot be read


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("", TooShortError, "is empty"),
        ("date,a\n", TooShortError, "no rows"),
        ("date\n2024-01-01\n", InputError, "no numeric column"),
        ("date,a,b\n2024-01-01,1,2\n2024-01-02,1,wet\n", DtypeError, "Column 'b' holds 'wet'"),
        ("date,a\n2024-01-01,1\n2024-01-02,-inf\n", NotFiniteError, "Column 'a' is infinite in line 3 of the file"),
        ("date,a\n2024-01-02,1\n2024-01-02,2\n", TimeOrderError, "2024-01-02T00:00:00 appears twice"),
        ("date,a\n2024-01-02,1\n,2\n", TimeOrderError, "no time in line 3 of the file"),
        ("date,a\n1/3/2024,1\n", DtypeError, "'1/3/2024', of which nobody can tell whether the day or the month"),
        ("date,a\nspring 2024,1\n", DtypeError, "'date' holds 'spring 2024' in line 2 of the file; write times as"),
        ("date,a\n1,1\nlater,2\n", DtypeError, "'date' holds 'later'"),
        ("date,a\n1,1\n2024-01-01,2\n", DtypeError, "'date' holds '1'"),
        ("date,a\n0001-01-01T00:00:00+09:00,1\n", TimeOrderError, "of the year 0"),
        ("date,a\n-9000000000000000000,1\n9000000000000000000,2\n", TimeOrderError, "within 4e18"),
        ("date,a\n99999999999999999999,1\n", DtypeError, "'date' holds '99999999999999999999'"),
        ("date,a\n12024-01-01,1\n", DtypeError, "'date' holds '12024-01-01'"),
        ("2024-01-01,1\n2024-01-02,2\n", InputError, "is 2024-01-01, 1: put a line of names above it"),
        ("a,b\n1,2\n5,2\n9,3\n", InputError, r"no time column among a, b; name it with --time \('a' may be it\)"),
        ("shop,2024-01-01,2024-01-02\nnorth,1,2\n", InputError, "are times; turn the table round"),
        ("a,b\n1,wet\n", InputError, "no time column among a, b; name it with --time, or add one of dates"),
        ("date,time,a\n2024-01-01,12,2\n", InputError, r"2 time columns \(date, time\) .* joined in one column"),
        ("date,a\n2024-01-01,1,2,3\n", FormatError, "cannot be read as CSV with ',' between cells"),
        ("date,a\n1,1\n1,2\n2,1\n2,2\n", TimeOrderError, "1 appears twice .*, and so does 1 other;"),
        ("date,a\n1,1\n1,2\n2,1\n2,2\n3,1\n3,2\n", TimeOrderError, "and so do 2 others;"),
        ("unique_id,ds,y\na,1,1\nb,1,1\na,1,2\n", TimeOrderError, "1 appears twice in the series 'a'"),
        ("unique_id,ds,y\na,1,1\n,2,1\n", InputError, "'unique_id' is empty in line 3 of the file"),
        ("unique_id,ds,y\na,1,wet\n", DtypeError, "Column 'y' holds 'wet'"),
    ],
)
def test_bad_tables_are_refused_by_name(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_table(csv(tmp_path, text))


def test_bad_paths_and_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(InputError, match="is a folder; name one file in it"):
        read_table(tmp_path)
    book = tmp_path / "table.xlsx"
    book.write_bytes(b"PK\x03\x04")
    with pytest.raises(FormatError, match="an Excel workbook; unpack it, or save the sheet as CSV"):
        read_table(book)
    with pytest.raises(InputError, match="no column 'day'; the file has date, a"):
        read_table(csv(tmp_path, "date,a\n2024-01-01,1\n"), Reading(time="day"))


def test_bad_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    path.write_text("not parquet")
    with pytest.raises(FormatError, match="cannot be read as Parquet"):
        read_table(path)
    pl.DataFrame({"date": [1, 2], "a": [True, False]}).write_parquet(path)
    with pytest.raises(DtypeError, match="Column 'a' has the type Boolean"):
        read_table(path)
    pl.DataFrame({"date": [1.5, 2.5], "a": [1, 2]}).write_parquet(path)
    with pytest.raises(DtypeError, match="'date' has the type Float64"):
        read_table(path)


# Real files


def test_electricity_transformer_file(data_dir: Path) -> None:
    table = read_table(data_dir / "ETTh1.csv")
    assert table.values.shape == (17_420, 7)
    assert table.channels == ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")
    assert table.times[0] == np.datetime64("2016-07-01T00:00", "us")
    assert regular(table)[1] == 0
    assert split_row(table, "2018-01-01") == split_row(table, "13176")
