"""A message that speaks of a row names the line of the user's file."""

import gzip
import re
from pathlib import Path

import pytest
from small_tables import csv, daily

from ompb.errors import FormatError, InputError, OmpbError
from ompb.tables import Reading, read_forecasts, read_table

WIDE = {
    "plain": "date,a\n2024-01-01,1\n2024-01-02,wet\n2024-01-03,3\n",
    "copies": "date,a\n2024-01-01,1\n2024-01-01,1\n2024-01-01,1\n2024-01-02,wet\n",
    "byte order mark": "\ufeffdate,a\r\n2024-01-01,1\r\n2024-01-02,wet\r\n",
    "titles": "# load of a house\n# in kW\n\ndate,a\n2024-01-01,1\n2024-01-02,wet\n",
    "title in Excel": "Load;\n\ndate;a\n2024-01-01;1\n2024-01-02;wet\n",
    "empty lines": "\n\ndate,a\n2024-01-01,1\n\n2024-01-02,wet\n",
    "units": "date,a\n,kW\n2024-01-01,1\n2024-01-02,wet\n",
    "newest first": "date,a\n2024-01-03,3\n2024-01-02,wet\n2024-01-01,1\n",
    "lines in cells": 'date,"a\nlong name",b\n2024-01-01,1,"2"\n2024-01-02,wet,2\n',
    "old lines": "date,a\r2024-01-01,1\r2024-01-02,wet\r",
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("kind", WIDE)
def test_a_bad_cell_is_told_by_its_line(tmp_path: Path, kind: str, packed: bool) -> None:
    content = WIDE[kind].encode()
    line = 1 + len(re.findall(rb"\r\n|\n|\r", content[: content.index(b"wet")]))
    path = tmp_path / "table.csv"
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(OmpbError, match=rf"holds 'wet' in line {line} of the file"):
        read_table(path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("a,2024-01-02,inf", "'y' is infinite in line 6 of the file"),
        (",2024-01-02,2", "'unique_id' is empty in line 6 of the file"),
        ("a,,2", "'ds' has no time in line 6 of the file"),
        ("a,2024-01-01,2", r"appears twice in the series 'a' \(second time: line 6 of the file\)"),
        ("a,Total,2", r"holds 'Total' in line 6 of the file; delete that line if it is no row"),
    ],
)
def test_every_fault_of_a_long_table_with_copies_is_told_by_its_line(tmp_path: Path, line: str, words: str) -> None:
    text = "unique_id,ds,y\na,2024-01-01,1\na,2024-01-01,1\na,2024-01-01,1\nb,2024-01-01,1\n"
    with pytest.raises(InputError, match=words):
        read_table(csv(tmp_path, f"{text}{line}\n"))


def test_forecasts_are_told_by_their_line(tmp_path: Path) -> None:
    """Lines of other series come before it, and are not read."""
    head = "unique_id,ds,cutoff,y_hat\nz,2024-01-02,2024-01-01,1\na,2024-01-02,2024-01-01,1\n"
    table = daily(3, ("a",))
    for line, words in (
        ("a,2024-01-01,2024-01-02,1", "has lead -1"),
        ("a,2024-01-02,2024-01-01,2", "repeats one of the same series"),
        ("a,2024-01-03,2024-01-02,wet", "which is not a number"),
    ):
        with pytest.raises(InputError, match=f"in line 4 of the file.*{words}"):
            read_forecasts(csv(tmp_path, f"{head}{line}\n"), table, 1)


def test_a_line_with_too_many_cells_is_named(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="line 3 of the file has 3 cells and line 1, the names, 2"):
        read_table(csv(tmp_path, "date,a\n2024-01-01,1\n2024-01-02,1,5\n2024-01-03,1\n"))


def test_what_is_left_out_above_the_rows_is_told(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "Load;;\nof 2024\n\ndate;a;b\n;kW;°C\n2024-01-01;1,5;2\n;;\n\n2024-01-02;2;3\n"))
    assert (table.channels, table.values.tolist()) == (("a", "b"), [[1.5, 2.0], [2.0, 3.0]])
    assert table.notes == (
        "Lines 1 to 2 of the file stand above the names and are left out.",
        "Line 5 of the file is left out: no row, but kW, °C.",
        "2 empty lines left out.",
    )


def test_a_row_that_is_merely_missing_stays(tmp_path: Path) -> None:
    """Without times each line is a row: one of missing cells is no line of units, and an empty one no empty line."""
    table = read_table(csv(tmp_path, "a,b\nNA,out\n1,2\n,\n3,4\n"), Reading(missing=("out",)))
    assert table.values.shape == (4, 2)


@pytest.mark.parametrize(
    ("missing", "notes"),
    [
        (("-999",), ()),
        (("OUT",), ()),
        (("-99",), ("No cell is -99, which --missing names: nothing was left out for it.",)),
        (("-999", "off"), ("No cell is off, which --missing names: nothing was left out for it.",)),
    ],
)
def test_a_code_that_no_cell_has_is_told(tmp_path: Path, missing: tuple[str, ...], notes: tuple[str, ...]) -> None:
    path = csv(tmp_path, "date,a,b\n2024-01-01,-999.0,1\n2024-01-02,2,\n2024-01-03,3,4\n")
    if "OUT" in missing:
        path.write_text(path.read_text().replace("-999.0", " out"))
    assert read_table(path, Reading(missing=missing)).notes == notes
