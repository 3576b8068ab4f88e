"""Which column is what: row numbers, times, series, values, covariates."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_tables import UNKNOWN, csv, days

from ompb.errors import DtypeError, InputError, TimeOrderError
from ompb.tables import Reading, read_table
from ompb.tables.layout import chosen

WIDE = pd.DataFrame({"date": days(1, 2, 3), "load": [1.0, 2.0, 3.0], "wind": [4.0, 5.0, 6.0]})
LONG = WIDE.melt("date", var_name="meter", value_name="kwh")


def test_the_index_that_pandas_writes_is_no_channel(tmp_path: Path) -> None:
    WIDE.to_csv(tmp_path / "table.csv")
    table = read_table(tmp_path / "table.csv")
    assert table.channels == ("load", "wind")
    assert table.notes == ("The column without a name holds row numbers and is left out.",)


@pytest.mark.parametrize("name", ["Unnamed: 0", "index", "level_0"])
def test_row_numbers_are_known_by_their_usual_names(tmp_path: Path, name: str) -> None:
    WIDE.reset_index(names=name).to_csv(tmp_path / "table.csv", index=False)
    table = read_table(tmp_path / "table.csv")
    assert table.channels == ("load", "wind")
    assert repr(name) in table.notes[0]
    assert read_table(tmp_path / "table.csv", Reading(target=(name,))).channels == (name,)  # unless it is asked for


def test_the_numbers_of_chosen_rows_are_row_numbers(tmp_path: Path) -> None:
    WIDE[WIDE.load != 2].to_csv(tmp_path / "table.csv")
    assert read_table(tmp_path / "table.csv").channels == ("load", "wind")


def test_an_index_column_that_is_no_index_is_a_channel(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "date,index\n2024-01-01,101.5\n2024-01-02,99\n"))
    assert table.channels == ("index",)


def test_an_index_of_dates_without_a_name_is_the_time(tmp_path: Path) -> None:
    WIDE.set_index("date").rename_axis(None).to_csv(tmp_path / "table.csv")
    table = read_table(tmp_path / "table.csv")
    np.testing.assert_array_equal(table.times, days(1, 2, 3))
    assert table.notes == ("The column without a name holds the times.",)


def test_row_numbers_are_the_time_where_there_is_no_other(tmp_path: Path) -> None:
    WIDE.drop(columns="date").to_csv(tmp_path / "table.csv")
    table = read_table(tmp_path / "table.csv")
    assert (table.times.tolist(), table.channels) == ([0, 1, 2], ("load", "wind"))
    assert "There is no column of times: the column without a name numbers the rows." in table.notes[0]


def test_rows_are_counted_where_there_are_no_times_at_all(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "a,b\n3,1.5\n2,1.5\n2,1.5\n"))
    assert (table.times.tolist(), table.channels) == ([0, 1, 2], ("a", "b"))
    assert table.notes == ("There is no column of times: rows are counted.",)


def test_targets_are_chosen_left_out_or_known_ahead(tmp_path: Path) -> None:
    path = csv(tmp_path, "date,a,b,holiday,note\n2024-01-01,1,2,True,x\n2024-01-02,3,4,False,y\n")
    with pytest.raises(
        DtypeError, match=r"'holiday' holds 'True' .*\(2 of 2 .*--exclude 'holiday', or .* --future 'holiday'"
    ):
        read_table(path)
    assert read_table(path, Reading(target=("b",))).values.tolist() == [[2.0], [4.0]]
    table = read_table(path, Reading(exclude=("note", "b"), future=("holiday",)))
    assert table.channels == ("a",)
    assert table.future is not None
    assert (table.future.names, table.future.values.tolist()) == (("holiday",), [[1.0], [0.0]])
    for wrong in (Reading(target=("c",)), Reading(exclude=("c",)), Reading(future=("c",))):
        with pytest.raises(InputError, match=r"no column 'c'; the (file|table) has"):
            read_table(path, wrong)
    with pytest.raises(InputError, match="No column is left"):
        read_table(path, Reading(exclude=("a", "b", "holiday", "note")))


@pytest.mark.parametrize("names", [("meter", "kwh"), ("variable", "value"), ("unique_id", "y"), ("Filiale", "Umsatz")])
def test_long_tables_are_known_under_any_names(tmp_path: Path, names: tuple[str, str]) -> None:
    frame = LONG.rename(columns=dict(zip(("meter", "kwh"), names, strict=True)))
    for shuffled in (frame, frame.sort_values("date"), frame.sample(frac=1, random_state=1), frame.iloc[::-1]):
        shuffled.to_csv(tmp_path / "table.csv", index=False)
        table = read_table(tmp_path / "table.csv")
        np.testing.assert_array_equal(table.select(("load", "wind")).values, WIDE[["load", "wind"]])
        np.testing.assert_array_equal(table.times, days(1, 2, 3))


def test_series_may_be_numbered(tmp_path: Path) -> None:
    LONG.assign(meter=[7] * 3 + [9] * 3).rename(columns={"meter": "Store"}).to_csv(tmp_path / "t.csv", index=False)
    assert read_table(tmp_path / "t.csv").channels == ("7", "9")


def test_columns_of_a_long_table_can_be_named(tmp_path: Path) -> None:
    frame = LONG.assign(shop="north", temperature=9.0)
    frame.to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(InputError, match=r"2 columns of numbers beside them \('kwh', 'temperature'\); .* --value"):
        read_table(tmp_path / "table.csv")
    table = read_table(tmp_path / "table.csv", Reading(id=("shop", "meter"), value="kwh", time="date"))
    assert table.channels == ("north/load", "north/wind")
    assert table.notes == ("Not used: 'temperature'; the values are in the column 'kwh'.",)
    table = read_table(tmp_path / "table.csv", Reading(id=("meter",), value="kwh", target=("wind",)))
    assert table.channels == ("wind",)
    for said in (Reading(target=("kwh",)), Reading(exclude=("temperature", "shop"), id=("meter",))):
        np.testing.assert_array_equal(read_table(tmp_path / "table.csv", said).values, WIDE[["load", "wind"]])
    ahead = read_table(tmp_path / "table.csv", Reading(value="kwh", future=("temperature",), exclude=("load",))).future
    assert ahead is not None
    assert (ahead.names, ahead.values.tolist()) == (("temperature of wind",), 3 * [[9.0]])


def test_series_that_two_columns_tell_apart_are_asked_for(tmp_path: Path) -> None:
    frame = pd.concat([LONG.assign(shop=shop) for shop in ("north", "south")])
    frame.to_csv(tmp_path / "table.csv", index=False)
    with pytest.raises(
        InputError, match=r"'meter', 'shop' tell the series apart together; .* --id 'meter' --id 'shop'"
    ):
        read_table(tmp_path / "table.csv")
    assert len(read_table(tmp_path / "table.csv", Reading(id=("shop", "meter"))).channels) == 4


def test_rows_in_any_order_are_sorted_and_copies_left_out(tmp_path: Path) -> None:
    newest_first = read_table(csv(tmp_path, "date,a\n2024-01-03,3\n2024-01-02,2\n2024-01-01,1\n"))
    assert (newest_first.values.ravel().tolist(), newest_first.notes) == ([1.0, 2.0, 3.0], ())
    mixed = read_table(csv(tmp_path, "date,a\n2024-01-01,1\n2024-01-03,3\n2024-01-03,3\n2024-01-02,2\n"))
    assert mixed.values.ravel().tolist() == [1.0, 2.0, 3.0]
    assert mixed.notes == (
        "1 row left out: copies of another one, cell by cell.",
        "The rows were not in the order of time and are sorted.",
    )
    with pytest.raises(TimeOrderError, match=r"2024-01-01T00:00:00 appears twice in the column 'date' .* --id"):
        read_table(csv(tmp_path, "date,a\n2024-01-01,1\n2024-01-01,3\n"))


def test_cells_that_mean_missing_can_be_named(tmp_path: Path) -> None:
    path = csv(tmp_path, "date,a,b\n2024-01-01,-999,1\n2024-01-02,-999.0,off\n2024-01-03,2,OFF\n")
    table = read_table(path, Reading(missing=("-999", "off")))
    np.testing.assert_array_equal(table.values, [[UNKNOWN, 1], [UNKNOWN, UNKNOWN], [2, UNKNOWN]])


def test_choosing_among_many_series_compares_each_name_a_few_times() -> None:
    compared = 0

    class Counted(str):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    names = [Counted(f"meter {number}") for number in range(300)]
    assert chosen(names, Reading()) == tuple(map(str, names))
    assert chosen(names, Reading(target=("meter 7",), exclude=("meter 8",))) == ("meter 7",)
    assert compared < 10 * len(names)
