"""A file as a frame: text (CSV and its kin) or Parquet, compressed or not, from a path or from standard input."""

from __future__ import annotations

import csv
import gzip
import re
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path

from ompb.errors import FormatError, InputError, TooShortError
from ompb.floor.extras import extra
from ompb.floor.names import counted, opened
from ompb.tables.dialect import Dialect
from ompb.tables.heading import named
from ompb.tables.lines import Lines, Where, row_of_table, told

with extra("report", needed_by="ompb.tables"):
    import polars as pl

STDIN = "-"
PARQUET, GZIP, ZIP = b"PAR1", b"\x1f\x8b", b"PK\x03\x04"  # how such files begin
UNCLOSED = "a cell is far too long; look for a quote that is opened and never closed."
ACCEPTED = "accepted: text with a row in each line (CSV, TSV, also .gz) and Parquet"
# How texts begin whose rows are no lines of cells; a name of a column may begin with a bracket, too.
OTHER_TEXTS = {
    "JSON": re.compile(r"\s*(\{\s*[\"}]|\[\s*[\[{\"\d])"),
    "HTML or XML": re.compile(r"\s*<(!doctype|html|\?xml)", re.IGNORECASE),
}
WIDE_BYTES = (b"\xff\xfe", b"\xfe\xff")  # a text in UTF-16, as Excel saves "Unicode text"


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """The cells of a file as they stand: text in a text file, typed in Parquet."""

    frame: pl.DataFrame
    name: str  # of the file, to be shown
    kind: str  # in words
    sep: str = ","
    decimal: str = "."
    where: Where = row_of_table  # a row, in words
    notes: tuple[str, ...] = ()  # what was left out above the rows


def read_contents(path: str | Path, sep: str | None = None, decimal: str | None = None) -> Contents:
    """The cells of a file; ``-`` is standard input. What the file is, its first bytes say, not its name."""
    name, content = _bytes(path)
    packed = content.startswith(GZIP)
    if packed:
        content = _unpacked(name, content)
    if content.startswith(PARQUET) or name.lower().endswith(".parquet"):
        contents = Contents(_parquet(name, content), name, "Parquet")
    else:
        text = _text(name, content)
        try:
            dialect = Dialect.of(text, sep, decimal)
        except csv.Error as problem:
            raise FormatError(f"{name!r} cannot be read as CSV: {UNCLOSED}") from problem
        lines = Lines(text, dialect.sep, dialect.head)
        kind = f"text{', gzip' * packed}, {dialect}"
        frame, notes = _cells(name, lines)
        contents = Contents(frame, name, kind, dialect.sep, dialect.decimal, lines, (*_above(dialect.head), *notes))
    if contents.frame.height == 0:
        raise TooShortError(f"{name!r} has no rows under its header; it needs at least one. {opened(ACCEPTED)}.")
    return contents


def readable(text: str) -> str:
    r"""A file name as text that can be printed, whatever its bytes are.

    >>> print(readable("a\udcff.csv"))
    a\udcff.csv
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def name_of(path: str | Path) -> str:
    """A file as results call it."""
    return "standard input" if str(path) == STDIN else readable(Path(path).name)


def _bytes(path: str | Path) -> tuple[str, bytes]:
    """The file's name and all it holds."""
    if str(path) == STDIN:
        return name_of(path), sys.stdin.buffer.read()
    path = Path(path)
    if path.is_dir():
        raise InputError(f"{readable(str(path))!r} is a folder; name one file in it.")
    if not path.is_file():
        raise InputError(f"There is no file {readable(str(path))!r}; check the path.")
    return name_of(path), path.read_bytes()


def _unpacked(name: str, content: bytes) -> bytes:
    try:
        return gzip.decompress(content)
    except (OSError, EOFError, zlib.error) as problem:
        raise FormatError(f"{name!r} begins as gzip and cannot be unpacked: {problem}; get it again.") from problem


def _text(name: str, content: bytes) -> str:
    """UTF-8, UTF-16 with its mark, or the Western code page of Windows."""
    if content.startswith(ZIP):
        raise FormatError(f"{name!r} is a zip archive or an Excel workbook; unpack it, or save the sheet as CSV.")
    try:
        text = content.decode("utf-16" if content.startswith(WIDE_BYTES) else "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    if "\x00" in text:
        raise FormatError(f"{name!r} is neither text nor Parquet; {ACCEPTED}.")
    for kind, begins in OTHER_TEXTS.items():
        if begins.match(text):
            raise FormatError(f"{name!r} is {kind}; {ACCEPTED}. Save the table as one of these.")
    return text.replace("\r\n", "\n").replace("\r", "\n")  # lines end in \r alone where old programs wrote them


def _parquet(name: str, content: bytes) -> pl.DataFrame:
    try:
        return pl.read_parquet(content)
    except pl.exceptions.PolarsError as problem:
        raise FormatError(f"{name!r} cannot be read as Parquet: {_first_line(problem)}") from problem


def _cells(name: str, lines: Lines) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The cells of a text under its names, and what was done to them."""
    try:
        frame = pl.read_csv(lines.body.encode(), infer_schema=False, separator=lines.sep)
    except pl.exceptions.NoDataError as problem:
        raise TooShortError(f"{name!r} is empty; it needs a header and at least one row.") from problem
    except pl.exceptions.PolarsError as problem:
        raise FormatError(
            f"{name!r} cannot be read as CSV with {lines.sep!r} between cells; if that sign is wrong, say it with "
            f"--sep: {_uneven(lines) or _first_line(problem)}"
        ) from problem
    line, header = next(lines.records())
    if len(header) != frame.width:
        raise FormatError(f"{name!r} has quotes in {told(line)} that do not match; correct the names there.")
    return named(frame, header)


def _uneven(lines: Lines) -> str:
    """The first line that has more cells than there are names, or a quote without end; empty if there is neither."""
    try:
        (first, names), *rows = lines.records()
    except csv.Error:
        return UNCLOSED
    for line, cells in rows:
        if len(cells) > len(names):
            return (
                f"{told(line)} has {counted(len(cells), 'cell')} and line {first}, the names, {len(names)}; put cells "
                f"that hold {lines.sep!r} in quotes, and let the names be as many as the cells."
            )
    return ""


def _above(head: int) -> tuple[str, ...]:
    """The note on lines above the names."""
    if not head:
        return ()
    lines = "Line 1" if head == 1 else f"Lines 1 to {head}"
    stand = "stands above the names and is" if head == 1 else "stand above the names and are"
    return (f"{lines} of the file {stand} left out.",)


def _first_line(problem: Exception) -> str:
    return str(problem).strip().partition("\n")[0]
