"""Files as offices, meters and banks write them: each is read as it was meant, or refused in words that help."""

from pathlib import Path

import numpy as np
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
        ("span;a\n1.1.2024 - 2.1.2024;1\n", InputError, "'1.1.2024 - 2.1.2024' in the column 'span' is no time: write"),
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
