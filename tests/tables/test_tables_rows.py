from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tables import csv, daily

from ompb.errors import (
    InputError,
    OptionError,
    TimeOrderError,
    TooShortError,
)
from ompb.tables import (
    Table,
    common_channels,
    read_table,
    regular,
    split_row,
    with_future,
)

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
    assert split_row(table, "05.01.2024") == 4


def test_a_split_may_be_written_as_the_times_of_a_table_are() -> None:
    months = np.arange("2023-11", "2024-07", dtype="datetime64[M]").astype("datetime64[us]")
    table = Table(np.ones((8, 1)), months, ("a",), "month")
    assert [split_row(table, place) for place in ("2024-01", "Jan 2024", "2024Q2", "2024-W10")] == [2, 2, 5, 5]


@pytest.mark.parametrize("end", ["0", "5", "-1", "2024-01-01", "2023-06-01", "2024-01-06"])
def test_a_split_leaves_rows_on_both_sides(end: str) -> None:
    with pytest.raises(TooShortError, match=r"does not split the 5 rows in two.*; pass 1 to 4 rows"):
        split_row(daily(5), end)


def test_a_split_must_be_rows_or_a_date() -> None:
    with pytest.raises(OptionError, match="'soon' is neither a number of rows nor a date"):
        split_row(daily(5), "soon")
    by_row = Table(np.ones((3, 1)), np.arange(3), ("a",), "row")
    with pytest.raises(OptionError, match="is a date and the table's times are integers"):
        split_row(by_row, "2024-01-02")


def test_no_date_is_asked_for_where_times_are_integers() -> None:
    table = Table(np.zeros((5, 1)), np.arange(5) * 3600, ("y",), "timestamp")
    with pytest.raises(TooShortError, match=r"pass 1 to 4 rows\.$"):
        split_row(table, "7200")
