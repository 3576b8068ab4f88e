"""Files as offices, meters and banks write them: each is read as it was meant, or refused in words that help."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_tables import UNKNOWN, csv, days

from ompb.errors import DtypeError, FormatError, InputError
from ompb.tables import Reading, read_table

HOUR = np.datetime64("2024-12-31T14:00", "us")


@pytest.mark.parametrize(
    "cells",
    [
        ['"1,234.50"', '"-2,000"'],
        ['"$1,234.50"', '"-$2,000.00"'],
        ['"1,234.50 €"', '"(2,000.00 €)"'],
        ["1234.5%", "−2000%"],
        ["1'234.50", "-2'000"],
        ["1\u202f234.50", "-2\u00a0000"],
    ],
)
def test_numbers_as_people_write_them(tmp_path: Path, cells: list[str]) -> None:
    text = f"date,a\n2024-01-01,{cells[0]}\n2024-01-02,{cells[1]}\n2024-01-03,#DIV/0!\n"
    np.testing.assert_array_equal(read_table(csv(tmp_path, text)).values[:, 0], [1234.5, -2000, UNKNOWN])


def test_a_sign_beside_every_number_is_told_and_one_beside_some_is_refused(tmp_path: Path) -> None:
    assert read_table(csv(tmp_path, "date,a\n2024-01-01,45%\n")).notes == (
        "'%' beside the numbers of the column 'a' is left out.",
    )
    with pytest.raises(DtypeError, match="holds '45%' in line 3 of the file, which is not a number"):
        read_table(csv(tmp_path, "date,a\n2024-01-01,0.4\n2024-01-02,45%\n"))


@pytest.mark.parametrize("number", ["1.234,50", "1\u00a0234,50", "1234,50"])
def test_decimal_commas_are_found_beside_thousands(tmp_path: Path, number: str) -> None:
    assert read_table(csv(tmp_path, f"Datum;a\n01.01.2024;{number}\n")).values.tolist() == [[1234.5]]


@pytest.mark.parametrize(
    ("text", "doubted"),
    [
        ("day;a\n2024-01-01;1.234\n2024-01-02;12.345\n2024-01-03;987\n", True),
        ("day;a\n2024-01-01;1,234\n2024-01-02;12,345\n", True),
        ("day;a\n2024-01-01;1.234\n2024-01-02;0.345\n", False),
        ("day;a;b\n2024-01-01;1.234;5.5\n2024-01-02;1.345;6\n", False),
        ("day,a\n2024-01-01,1.234\n2024-01-02,1.345\n", False),
        ("day;a\n2024-01-01;12\n2024-01-02;13\n", False),
    ],
)
def test_thousands_that_look_like_decimals_are_told(tmp_path: Path, text: str, doubted: bool) -> None:
    notes = read_table(csv(tmp_path, text)).notes
    assert ["if the sign sets thousands apart, say --decimal" in note for note in notes] == [True] * doubted


@pytest.mark.parametrize(
    "text",
    [
        "31.12.2024 14:00",
        "31.12.24 14:00",
        "12/31/24 2:00 PM",
        "12/31/2024 02:00:00 PM",
        "31-Dec-2024 14:00",
        "31 December 2024 14:00",
        "Dec 31, 2024 2:00 PM",
        "31-12-2024 14:00",
        "2024-12-31 2:00 PM",
        "2024-12-31 14:00:00 UTC",
    ],
)
def test_times_as_people_write_them(tmp_path: Path, text: str) -> None:
    assert read_table(csv(tmp_path, f'when,a\n"{text}",1\n')).times == HOUR


@pytest.mark.parametrize("month", ["Dec 2024", "December 2024", "Dec-24", "Dec-2024"])
def test_a_month_stands_for_its_first_day(tmp_path: Path, month: str) -> None:
    assert read_table(csv(tmp_path, f"when,a\n{month},1\n")).times == np.datetime64("2024-12-01", "us")


def test_two_digits_of_a_year_are_no_century(tmp_path: Path) -> None:
    with pytest.raises(DtypeError, match="whether the day or the month comes first"):
        read_table(csv(tmp_path, "date,a\n01/02/24,1\n01/03/24,2\n"))


def test_times_of_day_in_a_column_of_their_own_are_joined_to_the_dates(tmp_path: Path) -> None:
    hours = ("22:00", "23:00")
    text = "Datum;Uhrzeit;a\n" + "".join(f"{day}.01.2024;{hour};1\n" for day in (1, 2) for hour in hours)
    table = read_table(csv(tmp_path, text), even=False)
    assert [str(time)[8:13] for time in table.times] == ["01T22", "01T23", "02T22", "02T23"]
    assert (table.channels, table.notes) == (("a",), ("'Uhrzeit' is the time of day of 'Datum'.",))
    asked = read_table(csv(tmp_path, text), Reading(id=("Uhrzeit",)))
    assert asked.channels == hours


def test_names_that_come_twice_are_numbered_and_told(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "date, load,load,,\n2024-01-01,1,2,,\n2024-01-02,3,4,,\n"))
    assert (table.channels, table.values.tolist()) == (("load", "load (2)"), [[1.0, 2.0], [3.0, 4.0]])
    assert table.notes == ("'load' names 2 columns; they are called load, load (2).",)


@pytest.mark.parametrize(
    "head",
    [
        "Load report,,\nStation:,Berlin,\n\ndate,a,b\n",
        "date,a,b\n,kW,°C\n",
        "Load report\ndate,a,b\nday,kW,°C\n",
        "# made by a meter\n# 5 rows\ndate,a,b\n",
    ],
)
def test_lines_around_the_names_are_left_out(tmp_path: Path, head: str) -> None:
    table = read_table(csv(tmp_path, f"{head}2024-01-01,1,2\n2024-01-02,3,4\n"))
    assert (table.channels, table.values.tolist()) == (("a", "b"), [[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(table.times, days(1, 2))
    assert "left out" in table.notes[0]


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        (
            "date,a\n2024-01-01,1\nTotal,1\n",
            DtypeError,
            "'Total' in line 3 of the file; delete that line if it is no row",
        ),
        ("date,a\n2024-01-01,1\n,1\n", InputError, "no time in line 3 of the file"),
        ("date,a\n31.01.2024,1\n01.02.2024,2\nSumme,3\n", DtypeError, "'Summe' in line 4"),
        ("date,a,open\n2024-01-01,1,TRUE\n", DtypeError, "--exclude 'open', or take it as known ahead with --future"),
        (
            "date,a,w\n2024-01-01,1,wet\n",
            DtypeError,
            r"\(1 of 1 cell is no number\); leave it out with --exclude 'w', or wr",
        ),
        ("date,a\n2024-01-01,5 kW\n2024-01-02,6 kW\n", DtypeError, "write its cells as plain numbers"),
        ('date,a\n2024-01-01,1.5\n2024-01-02,"1,5"\n', DtypeError, "comma stands before decimals, say --decimal ,"),
        ("date a\n2024-01-01 1\n", InputError, "one column only, date a; .* --sep space"),
        (
            "span;a\n1.1.2024 to 2.1.2024;1\n",
            InputError,
            "'1.1.2024 to 2.1.2024' in the column 'span' is no time: write",
        ),
        (
            "date,a\n2024-01-01,1,5\n2024-01-02,2,5\n",
            FormatError,
            "line 2 of the file has 3 cells and line 1, the names, 2",
        ),
    ],
)
def test_what_cannot_be_read_is_refused_in_words_that_help(
    tmp_path: Path, text: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        read_table(csv(tmp_path, text))


def test_yes_and_no_may_be_known_ahead(tmp_path: Path) -> None:
    path = csv(tmp_path, "date,a,open\n2024-01-01,1,yes\n2024-01-02,2,No\n")
    ahead = read_table(path, Reading(future=("open",))).future
    assert ahead is not None
    assert ahead.values.tolist() == [[1.0], [0.0]]


def test_spaces_between_cells_can_be_named(tmp_path: Path) -> None:
    assert read_table(csv(tmp_path, "date a\n2024-01-01 1\n"), Reading(sep="space")).values.tolist() == [[1.0]]


def test_dates_and_hours_of_the_day_in_columns_of_their_own_are_joined(tmp_path: Path) -> None:
    begun = [np.datetime64(f"2024-01-0{day}T{hour:02d}", "us") for day in (1, 2) for hour in (22, 23)]
    for first, note in ((0, "'Hour' is the hour of 'Day'."), (1, "'Hour' is the hour of 'Day', from 1 to 24: ")):
        lines = [f"{day:02d}.01.2024,{hour + first},1\n" for day in (1, 2) for hour in (22, 23)]
        table = read_table(csv(tmp_path, "Day,Hour,a\n" + "".join(lines)), even=False)
        assert (table.channels, table.times.tolist()) == (("a",), np.array(begun).tolist())
        assert table.notes[0].startswith(note)
    typed = pl.DataFrame({"day": np.repeat(days(1, 2), 2), "hour": [22, 23, 22, 23], "a": [1.0] * 4})
    typed.write_parquet(tmp_path / "typed.parquet")
    assert read_table(tmp_path / "typed.parquet", even=False).times.tolist() == np.array(begun).tolist()
    daily = read_table(csv(tmp_path, "Day,Hour,a\n2024-01-01,5,1\n2024-01-02,7,2\n"))
    assert daily.channels == ("Hour", "a")  # one row a day: an hour of something else


@pytest.mark.parametrize(
    ("head", "rows", "stamps"),
    [
        ("Year,Month", ("2023,12", "2024,1"), ("2023-12-01", "2024-01-01")),
        ("Year,Month", ("2023.0,12.0", "2024.0,1.0"), ("2023-12-01", "2024-01-01")),
        ("year,quarter", ("2023,4", "2024,1"), ("2023-10-01", "2024-01-01")),
        ("year,month,day", ("2023,12,31", "2024,1,1"), ("2023-12-31", "2024-01-01")),
        ("year,month,day,hour", ("2023,12,31,23", "2024,1,1,0"), ("2023-12-31T23", "2024-01-01T00")),
        ("ISO_YEAR,ISO_WEEK", ("2015,53", "2016,1"), ("2015-12-28", "2016-01-04")),
        ("YEAR,WEEK", ("2014,53", "2015,1"), ("2014-12-28", "2015-01-04")),  # no week of ISO 8601, but of CDC
    ],
)
def test_years_and_their_parts_in_columns_of_their_own_are_joined(
    tmp_path: Path, head: str, rows: tuple[str, str], stamps: tuple[str, str]
) -> None:
    table = read_table(csv(tmp_path, f"{head},a\n{rows[0]},5\n{rows[1]},6\n"))
    assert table.channels == ("a",)
    np.testing.assert_array_equal(table.times, np.array(stamps, dtype="datetime64[us]"))
    assert "are parts of one time" in table.notes[0]


def test_parts_of_dates_are_joined_in_a_long_table_and_left_alone_where_they_do_not_tell_rows_apart(
    tmp_path: Path,
) -> None:
    months = [f"{name},{year},{month},5\n" for name in "ab" for year in (2023, 2024) for month in range(1, 13)]
    table = read_table(csv(tmp_path, "region,year,month,cases\n" + "".join(months)))
    assert (table.channels, table.values.shape) == (("a", "b"), (24, 2))
    days = [f"2024,{1 + day // 30},{day % 7}\n" for day in range(60)]  # the days have no column
    assert read_table(csv(tmp_path, "year,month,load\n" + "".join(days))).time_name == "row number"


def test_parts_of_a_date_beside_a_date_or_that_make_none_are_left_alone(tmp_path: Path) -> None:
    beside = read_table(csv(tmp_path, "date,year,month,a\n2024-01-01,2024,1,5\n2024-01-02,2024,1,6\n"))
    assert beside.channels == ("year", "month", "a")
    for row in ("2024,13", "24,1", "2024,x"):
        with pytest.raises((InputError, DtypeError)):
            read_table(csv(tmp_path, f"year,month,word\n2024,1,a\n{row},b\n"))


def test_a_row_that_tells_its_beginning_and_its_end_counts_by_its_beginning(tmp_path: Path) -> None:
    text = "MTU (CET)\tload\n01.01.2024 00:00 - 01.01.2024 01:00\t5\n01.01.2024 01:00 - 01.01.2024 02:00\t6\n"
    table = read_table(csv(tmp_path, text))
    assert [str(time)[11:13] for time in table.times] == ["00", "01"]
    assert table.notes == ("'MTU (CET)' tells when a row begins and ends: it counts by its beginning.",)


@pytest.mark.parametrize("midnight", ["2024-01-01 24:00", "2024-01-01T24:00:00", "01.01.2024 24:00"])
def test_midnight_at_the_end_of_a_day_is_that_of_the_next(tmp_path: Path, midnight: str) -> None:
    before = midnight.replace("24:00", "23:00", 1) if "T" not in midnight else "2024-01-01T23:00:00"
    table = read_table(csv(tmp_path, f"when,a\n{before},1\n{midnight},2\n"))
    assert [str(time)[:13] for time in table.times] == ["2024-01-01T23", "2024-01-02T00"]


@pytest.mark.parametrize(
    ("cells", "stamps"),
    [
        (("202311", "202312", "202401"), ("2023-11-01", "2023-12-01", "2024-01-01")),
        (("202352", "202401", "202402"), ("2023-12-25", "2024-01-01", "2024-01-08")),
        (("201452", "201453", "201501"), ("2014-12-21", "2014-12-28", "2015-01-04")),
    ],
)
def test_months_and_weeks_without_a_sign_between(tmp_path: Path, cells: list[str], stamps: list[str]) -> None:
    table = read_table(csv(tmp_path, "date,a\n" + "".join(f"{cell},1\n" for cell in cells)))
    np.testing.assert_array_equal(table.times, np.array(stamps, dtype="datetime64[us]"))


@pytest.mark.parametrize(
    "cells", [("202311", "202312", "202313"), ("200099", "200100", "200101"), ("202311", "202312")]
)
def test_numbers_that_merely_count_are_no_months(tmp_path: Path, cells: list[str]) -> None:
    table = read_table(csv(tmp_path, "date,a\n" + "".join(f"{cell},1\n" for cell in cells)))
    assert table.times.tolist() == [int(cell) for cell in cells]
