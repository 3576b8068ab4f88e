from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ompb.datasets.tables import (
    Table,
    common_channels,
    read_forecasts,
    read_table,
    regular,
    split_row,
    write_table,
)
from ompb.datasets.times import with_future
from ompb.errors import (
    DtypeError,
    FormatError,
    InputError,
    NotFiniteError,
    OptionError,
    ShapeError,
    TimeOrderError,
    TooShortError,
)
from ompb.times import Times

UNKNOWN = np.nan


def csv(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text)
    return path


def days(*numbers: int) -> Times:
    return np.array([f"2024-01-{n:02d}" for n in numbers], dtype="datetime64[us]")


def daily(count: int, channels: tuple[str, ...] = ("a", "b")) -> Table:
    values = np.arange(count * len(channels), dtype=np.float64).reshape(count, -1)
    return Table(values, days(*range(1, count + 1)), channels, "ds")


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
    table = read_table(csv(tmp_path, "step,date,a\n1,20,3\n2,30,4\n"), time="step")
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
        ("date,a\n2024-01-01,1\n2024-01-02,-inf\n", NotFiniteError, "Column 'a' is infinite in data row 2"),
        (
            "date,a\n2024-01-02,1\n2024-01-01,2\n",
            TimeOrderError,
            "2024-01-01T00:00:00 comes after 2024-01-02",
        ),
        ("date,a\n2024-01-02,1\n2024-01-02,2\n", TimeOrderError, "2024-01-02T00:00:00 appears twice"),
        ("date,a\n2024-01-02,1\n,2\n", TimeOrderError, "no time in data row 2"),
        ("date,a\n1/31/2024,1\n", DtypeError, "'date' holds '1/31/2024'"),
        ("date,a\n1,1\nlater,2\n", DtypeError, "'date' holds 'later'"),
        ("date,a\n1,1\n2024-01-01,2\n", DtypeError, "'date' holds '1'"),
        ("date,a\n0001-01-01T00:00:00+09:00,1\n", DtypeError, "0001-01-01"),
        ("date,a\n-9000000000000000000,1\n9000000000000000000,2\n", TimeOrderError, "within 4e18"),
        ("date,a\n99999999999999999999,1\n", DtypeError, "'date' holds '99999999999999999999'"),
        ("date,a\n12024-01-01,1\n", DtypeError, "'date' holds '12024-01-01'"),
        ("a,b\n1,2\n", InputError, "no time column among a, b"),
        ("date,time,a\n2024-01-01,12,2\n", InputError, "2 time columns"),
        ("date,a\n2024-01-01,1,2,3\n", FormatError, "cannot be read as csv"),
        ("unique_id,ds,y\na,2,1\nb,2,1\na,1,1\n", TimeOrderError, "1 comes after 2 in the series 'a'"),
        ("unique_id,ds,y\na,1,1\nb,1,1\na,1,1\n", TimeOrderError, "1 appears twice in the series 'a'"),
        ("unique_id,ds,y\na,1,1\n,2,1\n", InputError, "'unique_id' is empty in data row 2"),
        ("unique_id,ds,y\na,1,wet\n", DtypeError, "Column 'y' holds 'wet'"),
    ],
)
def test_bad_tables_are_refused_by_name(tmp_path: Path, text: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_table(csv(tmp_path, text))


def test_bad_paths_and_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        read_table(tmp_path / "absent.csv")
    with pytest.raises(OptionError, match=r"only \.csv and \.parquet"):
        read_table(tmp_path / "table.xlsx")
    with pytest.raises(InputError, match="no column 'day'; the file has date, a"):
        read_table(csv(tmp_path, "date,a\n2024-01-01,1\n"), time="day")


def test_bad_parquet_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    path.write_text("not parquet")
    with pytest.raises(FormatError, match="cannot be read as parquet"):
        read_table(path)
    pl.DataFrame({"date": [1, 2], "a": [True, False]}).write_parquet(path)
    with pytest.raises(DtypeError, match="Column 'a' has the type Boolean"):
        read_table(path)
    pl.DataFrame({"date": [1.5, 2.5], "a": [1, 2]}).write_parquet(path)
    with pytest.raises(DtypeError, match="'date' has the type Float64"):
        read_table(path)


# Channels


def test_channels_can_be_chosen_and_matched() -> None:
    one, two = daily(3, ("a", "b", "c")), daily(2, ("c", "x", "a"))
    assert common_channels(one, two) == ("a", "c")
    chosen = one.select(("c", "a"))
    assert chosen.channels == ("c", "a")
    np.testing.assert_array_equal(chosen.values, one.values[:, [2, 0]])
    with pytest.raises(InputError, match="no channel 'x'; it has a, b, c"):
        one.select(["x"])
    with pytest.raises(InputError, match="No channel is in both tables: one has a, the other b"):
        common_channels(one.select(["a"]), one.select(["b"]))


# Gaps


@given(st.sets(st.integers(0, 60), min_size=2), st.sampled_from(["h", "D", "M", "row"]))
def test_regular_fills_gaps_and_keeps_what_is_there(kept: set[int], unit: str) -> None:
    # The unbroken run at the start makes one unit the most frequent step, whatever is left out after it.
    numbers = np.array(sorted({n + 70 for n in kept} | set(range(70))))
    since_1970 = numbers - 1
    times = since_1970 if unit == "row" else since_1970.astype(f"datetime64[{unit}]").astype("datetime64[us]")
    table = Table(numbers[:, None].astype(float), times, ("a",), "ds")
    full, inserted = regular(table)
    assert inserted == numbers[-1] + 1 - len(numbers)
    present = np.isin(full.times, times)
    np.testing.assert_array_equal(full.times[present], times)
    np.testing.assert_array_equal(full.values[present], table.values)
    assert np.isnan(full.values[~present]).all()
    assert regular(full)[1] == 0


def test_regular_steps_by_calendar_months() -> None:
    months = ["2024-01-15", "2024-02-15", "2024-05-15"]
    table = Table(np.ones((3, 1)), np.array(months, dtype="datetime64[us]"), ("a",), "ds")
    full, inserted = regular(table)
    assert inserted == 2
    assert full.times[2:4].astype("datetime64[D]").astype(str).tolist() == ["2024-03-15", "2024-04-15"]


def test_regular_takes_a_single_row_as_it_is() -> None:
    table = daily(1)
    assert regular(table) == (table, 0)


def test_regular_refuses_a_stamp_off_the_grid() -> None:
    times = np.array(["2024-01-01", "2024-01-02", "2024-01-03", "2024-01-03T07"], dtype="datetime64[us]")
    with pytest.raises(TimeOrderError, match="2024-01-03T07:00:00 is off the grid"):
        regular(Table(np.ones((4, 1)), times, ("a",), "ds"))


def test_regular_does_not_invent_most_of_the_table() -> None:
    with pytest.raises(TimeOrderError, match="999997 new rows beside the 3"):
        regular(Table(np.ones((3, 1)), np.array([0, 1, 999_999]), ("a",), "ds"))


def test_the_future_ends_with_the_year_9999(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "date,a\n9999-12-30,1\n9999-12-31,2\n"))
    assert len(with_future(daily(3).times, 2)) == 5
    with pytest.raises(TimeOrderError, match="1 steps of 1 day, 0:00:00 after 9999-12-31T00:00:00 go too far"):
        with_future(table.times, 1)


# Splitting


def test_split_by_rows_or_by_date() -> None:
    table = daily(5)
    assert split_row(table, "2") == 2
    assert split_row(table, "2024-01-04") == 3
    assert split_row(table, "2024-01-03 12:00") == 3
    assert split_row(table, "2024-01-05") == 4


@pytest.mark.parametrize("end", ["0", "5", "-1", "2024-01-01", "2023-06-01", "2024-01-06"])
def test_a_split_leaves_rows_on_both_sides(end: str) -> None:
    with pytest.raises(OptionError, match=r"does not split the 5 rows in two; pass 1 to 4 rows"):
        split_row(daily(5), end)


def test_a_split_must_be_rows_or_a_date() -> None:
    with pytest.raises(OptionError, match="'soon' is neither a number of rows nor a date"):
        split_row(daily(5), "soon")
    by_row = Table(np.ones((3, 1)), np.arange(3), ("a",), "row")
    with pytest.raises(OptionError, match="is a date and the table's times are integers"):
        split_row(by_row, "2024-01-02")


# Recorded forecasts


def test_forecasts_lie_at_their_origin_lead_and_channel(tmp_path: Path) -> None:
    text = (
        "unique_id,ds,cutoff,y_hat\n"
        "b,2024-01-02,2024-01-01,1.5\n"
        "a,2024-01-03,2024-01-01,2.5\n"
        "a,2024-01-04,2024-01-03,NA\n"
        "a,2024-01-06,2024-01-04,3.5\n"  # two days after the end of the table
    )
    expected = np.full((4, 2, 2), UNKNOWN)
    expected[0, 0, 1], expected[0, 1, 0], expected[3, 1, 0] = 1.5, 2.5, 3.5
    np.testing.assert_array_equal(read_forecasts(csv(tmp_path, text), daily(4), 2), expected)


def test_one_channel_needs_no_unique_id(tmp_path: Path) -> None:
    forecasts = read_forecasts(csv(tmp_path, "ds,cutoff,y_hat\n2024-01-02,2024-01-01,7\n"), daily(2, ("a",)), 1)
    np.testing.assert_array_equal(forecasts, [[[7.0]], [[UNKNOWN]]])


@given(st.data())
def test_forecasts_come_back_as_written_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    table = daily(6)
    cells = [(t, h, c) for t in range(6) for h in range(3) for c in range(2)]
    chosen = data.draw(st.lists(st.sampled_from(cells), unique=True, min_size=1))
    stamps = days(*range(1, 10))
    expected = np.full((6, 3, 2), UNKNOWN)
    for number, cell in enumerate(chosen):
        expected[cell] = number
    columns = {
        "unique_id": np.array([table.channels[c] for _, _, c in chosen]),
        "ds": stamps[[t + h + 1 for t, h, _ in chosen]],
        "cutoff": stamps[[t for t, _, _ in chosen]],
        "y_hat": np.arange(len(chosen), dtype=np.float64),
    }
    path = tmp_path_factory.mktemp("forecasts") / data.draw(st.sampled_from(["f.csv", "f.parquet"]))
    write_table(path, columns)
    np.testing.assert_array_equal(read_forecasts(path, table, 3), expected)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ("z,2024-01-02,2024-01-01,1", InputError, "unique_id 'z'; the table has the channels a, b"),
        (
            "a,2024-01-02,2023-12-31,1",
            TimeOrderError,
            "cutoff = 2023-12-31T00:00:00 is not on the table's steps",
        ),
        ("a,2024-01-06,2024-01-05,1", TimeOrderError, "cutoff = 2024-01-05T00:00:00"),
        ("a,2024-01-07,2024-01-04,1", TimeOrderError, "ds = 2024-01-07T00:00:00 is not on the table's steps"),
        ("a,2024-01-02T12:00,2024-01-01,1", TimeOrderError, "ds = 2024-01-02T12:00:00"),
        ("a,2024-01-02,2024-01-02,1", TimeOrderError, "has lead 0; leads go from 1 to 2"),
        ("a,2024-01-04,2024-01-01,1", TimeOrderError, "has lead 3"),
        ("a,2024-01-02,2024-01-01,1\na,2024-01-02,2024-01-01,1", TimeOrderError, "Data row 2 .* repeats"),
        ("a,2,1,1", DtypeError, "'cutoff' holds integers and the table's times are dates"),
        ("a,2024-01-02,2024-01-01,inf", NotFiniteError, "'y_hat' is infinite"),
    ],
)
def test_bad_forecasts_are_refused(tmp_path: Path, rows: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_forecasts(csv(tmp_path, f"unique_id,ds,cutoff,y_hat\n{rows}\n"), daily(4), 2)


def test_forecasts_need_their_columns_a_horizon_and_a_step(tmp_path: Path) -> None:
    path = csv(tmp_path, "ds,cutoff,y_hat\n2024-01-02,2024-01-01,1\n")
    with pytest.raises(InputError, match="no column 'unique_id'"):
        read_forecasts(path, daily(4), 2)
    with pytest.raises(OptionError, match="horizon = 0"):
        read_forecasts(path, daily(4, ("a",)), 0)
    with pytest.raises(TooShortError, match="1 rows; two are needed"):
        read_forecasts(path, daily(1, ("a",)), 1)
    with pytest.raises(InputError, match="no column 'y_hat'"):
        read_forecasts(csv(tmp_path, "ds,cutoff\n2024-01-02,2024-01-01\n"), daily(4, ("a",)), 2)


# Writing


@pytest.mark.parametrize("name", ["new/table.csv", "table.parquet"])
def test_what_is_written_reads_back(tmp_path: Path, name: str) -> None:
    times = np.array(["2024-01-01T00:00", "2024-01-01T00:00:00.5"], dtype="datetime64[us]")
    write_table(tmp_path / name, {"ds": times, "a": np.array([1 / 3, UNKNOWN]), "b": np.array([1, 2])})
    table = read_table(tmp_path / name)
    np.testing.assert_array_equal(table.times, times)
    np.testing.assert_array_equal(table.values, [[1 / 3, 1], [UNKNOWN, 2]])


def test_csv_is_plain_to_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_table(path, {"ds": days(1, 2), "a": np.array([0.5, UNKNOWN])})
    assert path.read_text() == "ds,a\n2024-01-01T00:00:00,0.5\n2024-01-02T00:00:00,\n"


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"ends in '\.json'"):
        write_table(tmp_path / "table.json", {"a": np.ones(2)})
    for columns in ({"a": np.ones(2), "b": np.ones(3)}, {"a": np.ones((2, 2))}, {}):
        with pytest.raises(ShapeError, match="flat columns of equal length"):
            write_table(tmp_path / "table.csv", columns)


# Real files


def test_electricity_transformer_file(data_dir: Path) -> None:
    table = read_table(data_dir / "ETTh1.csv")
    assert table.values.shape == (17_420, 7)
    assert table.channels == ("HUFL", "HULL", "MUFL", "MULL", "LUFL", "LULL", "OT")
    assert table.times[0] == np.datetime64("2016-07-01T00:00", "us")
    assert regular(table)[1] == 0
    assert split_row(table, "2018-01-01") == split_row(table, "13176")
