"""Text files as people have them: any separator, any decimals, packed, from a pipe, from Excel."""

import gzip
import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tables import UNKNOWN, csv, days

from ompb.errors import FormatError, OptionError, TooShortError
from ompb.tables import Reading, read_table
from ompb.tables.contents import read_contents
from ompb.tables.dialect import Dialect

PLAIN = "date,a,b\n2024-01-01,1.5,-20\n2024-01-02,,1000.25\n"
VALUES = [[1.5, -20.0], [UNKNOWN, 1000.25]]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (PLAIN, "commas between cells"),
        ("date;a;b\n2024-01-01;1,5;-20\n2024-01-02;;1000,25\n", "semicolons between cells, decimal comma"),
        ("date;a;b\n01.01.2024;1,5;-20\n02.01.2024;;1.000,25\n", "semicolons between cells, decimal comma"),
        ("date;a;b;\n2024-01-01;1.5;-20;\n2024-01-02;;1000.25;\n", "semicolons between cells"),
        ("date\ta\tb\n2024-01-01\t1.5\t-20\n2024-01-02\t\t1000.25\n", "tabs between cells"),
        ("date\ta\tb\n2024-01-01\t1,5\t-20\n2024-01-02\t\t1000,25\n", "tabs between cells, decimal comma"),
        ("date|a|b\n2024-01-01|1.5|-20\n2024-01-02||1000.25\n", "bars between cells"),
        ('date,a,b\n2024-01-01,1.5,-20\n2024-01-02,,"1,000.25"\n', "commas between cells"),
        ("\ufeffdate,a,b\r\n2024/01/01,1.5,-20\r\n2024/01/02,,1000.25\r\n", "commas between cells"),
        ("date,a,b\n1/1/2024 0:00,1.5,-20\n1/2/2024 0:00,,1000.25\n1/13/2024 0:00,,\n", "commas between cells"),
        ("date,a,b\n20240101,1.5,-20\n20240102,,1000.25\n", "commas between cells"),
    ],
)
def test_the_signs_between_cells_and_before_decimals_are_found(tmp_path: Path, text: str, kind: str) -> None:
    table = read_table(csv(tmp_path, text, "any.txt"), even=False)
    np.testing.assert_array_equal(table.values[:2], VALUES)
    np.testing.assert_array_equal(table.times[:2], days(1, 2))
    assert table.channels == ("a", "b")
    assert table.kind.startswith(f"text, {kind}; wide")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252"])
def test_names_come_through_whatever_the_encoding(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes("Datum;Kälte °C\n2024-01-01;1,5\n".encode(encoding))
    table = read_table(path)
    assert (table.time_name, table.channels, table.values.tolist()) == ("Datum", ("Kälte °C",), [[1.5]])


def test_a_packed_file_and_a_pipe_are_read_alike(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(PLAIN.encode()))
    np.testing.assert_array_equal(read_table(packed).values, VALUES)
    assert "gzip" in read_table(packed).kind
    for content in (PLAIN.encode(), packed.read_bytes()):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        table = read_table("-")
        np.testing.assert_array_equal(table.values, VALUES)
        assert table.name == "standard input"


def test_what_is_said_goes_before_what_is_found(tmp_path: Path) -> None:
    path = csv(tmp_path, "date;a\n2024-01-01;1,234\n2024-01-02;5,678\n")
    assert read_table(path).values.ravel().tolist() == [1.234, 5.678]
    assert read_table(path, Reading(decimal=".")).values.ravel().tolist() == [1234.0, 5678.0]
    path = csv(tmp_path, "date:a\n2024-01-01:1\n2024-01-02:5\n")
    assert read_table(path, Reading(sep=":")).values.ravel().tolist() == [1.0, 5.0]
    assert Dialect.of("", "tab", ",") == Dialect("\t", ",")


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (Reading(sep=",,"), "sep = ',,' is out of range; accepted: one sign"),
        (Reading(decimal="'"), "accepted: a point"),
    ],
)
def test_signs_that_cannot_be_are_refused(tmp_path: Path, reading: Reading, words: str) -> None:
    with pytest.raises(OptionError, match=words):
        read_table(csv(tmp_path, PLAIN), reading)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\x1f\x8b\x08 torn", "begins as gzip and cannot be unpacked"),
        (b"PK\x03\x04...", "an Excel workbook"),
        (b"\x00\x01\xfe\xff\x00", "neither text nor Parquet"),
        (b'date,a\n1,"' + b"2\n1," * 50_000, "a quote that is opened and never closed"),
        (b"date,a\n1," + b"x" * 150_000, "a quote that is opened and never closed"),
        (b'(3),"x\ny"1-"a,b"4\r\nsep=;"sep=;', "quotes in line 1 of the file that do not match"),
    ],
)
def test_files_that_are_no_tables_are_told_by_what_they_are(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=words):
        read_table(path)


@given(
    st.lists(st.tuples(*2 * [st.floats(-1e6, 1e6).map(lambda x: round(x, 3))]), min_size=2, max_size=20),
    st.sampled_from([(",", "."), (";", ","), (";", "."), ("\t", ","), ("|", ".")]),
)
def test_any_numbers_survive_any_dialect(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, float]], signs: tuple[str, str]
) -> None:
    sep, decimal = signs
    lines = [sep.join([f"{n}", *(f"{x:.3f}".replace(".", decimal) for x in row)]) for n, row in enumerate(rows)]
    text = "\n".join([sep.join(("time", "a", "b")), *lines])
    table = read_table(csv(tmp_path_factory.mktemp("dialect"), text))
    np.testing.assert_array_equal(table.values, rows)


def test_decimal_commas_in_quotes_are_found_where_commas_stand_between_cells(tmp_path: Path) -> None:
    path = csv(tmp_path, 'date,a\n2024-01-01,"5,5"\n2024-01-02,"1.234,25"\n')
    assert read_table(path).values.ravel().tolist() == [5.5, 1234.25]
    path = csv(tmp_path, 'date,a\n2024-01-01,"1,234"\n2024-01-02,"5,678"\n')
    assert read_table(path).values.ravel().tolist() == [1234.0, 5678.0]
    assert read_table(path, Reading(decimal=",")).values.ravel().tolist() == [1.234, 5.678]


def test_excel_is_told_the_separator_in_the_first_line(tmp_path: Path) -> None:
    table = read_table(csv(tmp_path, "sep=;\ndate;a\n2024-01-01;1,5\n"))
    assert (table.values.tolist(), table.channels) == ([[1.5]], ("a",))


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("foo.json", '[{"date": "2024-01-01", "load": 5}]', "JSON"),
        ("foo.json", '{"date": ["2024-01-01"],\n "load": [5]}\n', "JSON"),
        ("lines.json", '{"date": "2024-01-01", "load": 5}\n{"date": "2024-01-02", "load": 6}\n', "JSON"),
        ("pairs.json", "[[1, 2],\n[3, 4]]", "JSON"),
        ("page.csv", "\n<!DOCTYPE html>\n<html><body>Not found</body></html>\n", "HTML or XML"),
    ],
)
def test_texts_of_other_kinds_are_named_with_what_is_accepted(tmp_path: Path, name: str, text: str, kind: str) -> None:
    with pytest.raises(FormatError, match=rf"'{name}' is {kind}; accepted: .*CSV, TSV, also .gz.*and Parquet"):
        read_contents(csv(tmp_path, text, name))


def test_names_in_brackets_are_no_other_kind(tmp_path: Path) -> None:
    for head in ("[date],[load]", "<DATE>,<LOAD>", "{date},{load}"):
        assert read_contents(csv(tmp_path, f"{head}\n2024-01-01,5\n")).frame.columns == head.split(",")


def test_a_header_alone_is_told_what_is_accepted(tmp_path: Path) -> None:
    with pytest.raises(TooShortError, match=r"no rows under its header; it needs at least one. Accepted: .*Parquet"):
        read_contents(csv(tmp_path, "date,load\n"))
