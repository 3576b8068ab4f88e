"""Times as a column writes them: integers, or dates by the clock on the wall, with the offset beside them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from ompb.errors import DtypeError, InputError, TimeOrderError
from ompb.floor.extras import extra
from ompb.floor.times import Times, as_times
from ompb.tables.lines import Where, row_of_table
from ompb.tables.weeks import first_days

with extra("report", needed_by="ompb.tables"):
    import polars as pl

# Dates that are not ISO 8601, with the century and without, and times of day after them. With slashes, day and month
# may be either way round. A month stands for its first day.
_NAMED = ("%d.%m.{}", "%d/%m/{}", "%m/%d/{}", "%d-%m-{}", "%d-%B-{}", "%d %B {}", "%B %d, {}")
DATES = (("%Y/%m/%d", "%Y-%m-%d", *(form.format("%Y") for form in _NAMED)), [form.format("%y") for form in _NAMED])
MONTHS = ("%d %B %Y", "%d %B %y")
CLOCKS = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
ACCEPTED = "write times as 2024-01-31 or 2024-01-31 23:00:00 (ISO 8601), 31.01.2024 23:00, or as integers"
_CENTURY = r"\d{4}"  # without one, 24 would be read as the year 24
# A month or a quarter, which stands for its first day.
_MONTH, _QUARTER = re.compile(r"(\d{4})-(\d{2})"), re.compile(r"(\d{4})[- ]?Q([1-4])")
# Whole numbers between these are taken for days, months or weeks if all of them are some: 20240131, 202401.
_DAYS, _MONTHS_OR_WEEKS = (1900_01_01, 2199_12_31), (1900_01, 2199_53)
# Midnight as the end of a day.
_END_OF_DAY = r"([T ])24:00(:00)?$"


@dataclass(frozen=True, slots=True, eq=False)
class Stamps:
    """Times (n,) of a column."""

    wall: Times  # datetime64[us] or int64, as written
    offset: Times | None = None  # timedelta64[us] of UTC that was written beside each; None if none was
    zone: str | None = None  # of a typed column

    @property
    def utc(self) -> Times:
        """In UTC where offsets are known, else as written."""
        return self.wall if self.offset is None else as_times(self.wall - self.offset, "times in UTC")

    def turned(self) -> Stamps:
        """The last one first."""
        return self.among(slice(None, None, -1))

    def among(self, kept: slice | NDArray[np.intp]) -> Stamps:
        """Some of them."""
        return replace(self, wall=self.wall[kept], offset=None if self.offset is None else self.offset[kept])


def holding_dates(columns: Iterable[pl.Series]) -> list[pl.Series]:
    """Those of some columns, which have distinct names, that look like dates or date-times: texts by their first."""
    every = list(columns)
    first = {column.name: column.drop_nulls().head(1) for column in every if column.dtype == pl.String}
    texts = {name: known[0] for name, known in first.items() if len(known)}
    dated = {name for name, is_date in zip(texts, are_dates(list(texts.values())), strict=True) if is_date}
    return [column for column in every if column.dtype in (pl.Date, pl.Datetime) or column.name in dated]


def are_dates(texts: Sequence[str]) -> list[bool]:
    """Whether each text is a date or a date-time. Each format is tried once, on all of them.

    >>> are_dates(["2024-01-31", "31.01.24", "load", "2024"])
    [True, True, False, False]
    """
    stripped = [text.strip() for text in texts]
    dates = {text for text in stripped if _iso(text) is not None}
    others = pl.Series([text for text in dict.fromkeys(stripped) if text not in dates], dtype=pl.String)
    has_century = others.str.contains(_CENTURY)
    for alike in (others.filter(has_century), others.filter(~has_century)):
        for stamps in _tried(alike):
            dates.update(alike.filter(stamps.is_not_null()))
    return [text in dates and whole_number(text) is None for text in stripped]


def whole_number(text: str) -> int | None:
    """The integer a text spells; None for any other text."""
    try:
        return int(text)
    except ValueError:
        return None


def stamps_of(column: pl.Series, where: Where = row_of_table) -> Stamps:
    """The times of a column; an error names the first cell that is none, and tells ``where`` it is."""
    what = f"column {column.name!r}"
    if column.null_count():
        row = int(column.is_null().arg_max() or 0)
        raise TimeOrderError(f"Column {column.name!r} has no time in {where(row)}; drop or fill that row.")
    if column.dtype == pl.String:
        return _of_texts(column.str.strip_chars(), where)
    if column.dtype.is_integer():
        return _of_integers(column)
    if column.dtype == pl.Date:
        return Stamps(as_times(column, what))
    if column.dtype == pl.Datetime:
        return _of_typed(column)
    raise DtypeError(
        f"The time column {column.name!r} has the type {column.dtype} (first value {column[0]}); "
        "pass dates, date-times or integers."
    )


def stamps_of_text(text: str) -> Stamps | None:
    """The date or date-time that a user writes, as a column would hold it; None if it is none.

    >>> stamps_of_text("2024Q3").wall.astype(str).tolist(), stamps_of_text("soon"), stamps_of_text("1000")
    (['2024-07-01T00:00:00.000000'], None, None)
    """
    try:
        found = stamps_of(pl.Series("", [text], dtype=pl.String))
    except InputError:
        return None
    return found if found.wall.dtype.kind == "M" else None


def _of_typed(column: pl.Series) -> Stamps:
    """Of a column of date-times, which may have a zone."""
    zone = getattr(column.dtype, "time_zone", None)
    what = f"column {column.name!r}"
    if zone is None:
        return Stamps(as_times(column, what))
    utc = as_times(column.dt.convert_time_zone("UTC").dt.replace_time_zone(None), what)
    wall = as_times(column.dt.replace_time_zone(None), what)
    return Stamps(wall, wall - utc, zone)


def _of_integers(column: pl.Series) -> Stamps:
    wall = as_times(column, f"column {column.name!r}")
    if _DAYS[0] <= wall.min() and wall.max() <= _DAYS[1]:
        days = column.cast(pl.String).str.to_date("%Y%m%d", strict=False)
        if not days.null_count():
            return Stamps(as_times(days, f"column {column.name!r}"))
    found = _months_or_weeks(wall)
    return Stamps(wall if found is None else found.astype("datetime64[us]"))


def _months_or_weeks(wall: Times) -> Times | None:
    """First days of 202412 and 202501, or of 202452 and 202501; None where numbers are none of these.

    They have to be of more than one year: numbers that merely count do not leap from 12, or from 52, to 101.
    """
    years, parts = np.divmod(wall, 100)
    if wall.min() < _MONTHS_OR_WEEKS[0] or wall.max() > _MONTHS_OR_WEEKS[1] or years.min() == years.max():
        return None
    if parts.min() >= 1 and parts.max() <= 12:
        return np.asarray((12 * (years - 1970) + parts - 1).astype("datetime64[M]"))
    weeks = first_days(years, parts)
    return None if weeks is None else weeks[0]


def _of_texts(column: pl.Series, where: Where) -> Stamps:
    whole = column.cast(pl.Int64, strict=False)
    if not whole.null_count():
        return _of_integers(whole)
    late = column.str.contains(_END_OF_DAY)
    if late.any():
        stamps = _of_texts(column.str.replace(_END_OF_DAY, "${1}00:00${2}"), where)
        return replace(stamps, wall=stamps.wall + late.to_numpy() * np.timedelta64(1, "D"))
    different = column.unique(maintain_order=True)
    read = {text: _iso(text) for text in different}
    if None not in read.values():
        return _of_date_times(column, {text: stamp for text, stamp in read.items() if stamp is not None})
    found = list(_formatted(different))
    if not found:
        raise DtypeError(_no_time(column, [text for text, stamp in read.items() if stamp is None], where))
    if any(not one.equals(found[0]) for one in found[1:]):
        raise DtypeError(
            f"The time column {column.name!r} holds dates such as {column[0]!r}, of which nobody can tell whether the "
            "day or the month comes first; write them as 2024-01-31."
        )
    return Stamps(as_times(_looked_up(column, different, found[0]), ""))


def _no_time(column: pl.Series, refused: Sequence[str], where: Where) -> str:
    """What is said of a column with a cell that is no time: the odd one out where most others are alike."""
    texts = pl.Series(refused)
    unread = [texts.cast(pl.Int64, strict=False).is_null(), *(stamps.is_null() for stamps in _tried(texts))]
    odd = texts.filter(min(unread, key=lambda nulls: int(nulls.sum())))
    culprit = odd[0] if len(odd) else refused[0]
    row = int((column == culprit).arg_max() or 0)
    advice = "delete that line if it is no row of the table, such as a sum or a remark; else " if row else ""
    return f"The time column {column.name!r} holds {culprit!r} in {where(row)}; {advice}{ACCEPTED}."


def _formatted(texts: pl.Series) -> Iterator[pl.Series]:
    """The texts by each of the formats that all of them have."""
    return (stamps for stamps in _tried(texts) if not stamps.null_count())


def _tried(texts: pl.Series) -> Iterator[pl.Series]:
    """The texts by each format, null where they do not have it."""
    dated = texts.str.contains(_CENTURY)
    place = 0 if bool(dated.any()) else 1
    texts = texts.set(~dated, None) if place == 0 else texts
    for form in (date + clock for date in DATES[place] for clock in CLOCKS):
        yield texts.str.to_datetime(form, time_unit="us", strict=False)
    months = "1 " + texts.str.replace("-", " ", literal=True)
    yield months.str.to_datetime(MONTHS[place], time_unit="us", strict=False)


def _iso(text: str) -> datetime | None:
    """ISO 8601, a month or a quarter; UTC may be named after it.

    >>> _iso("2024-03"), _iso("2024Q3")
    (datetime.datetime(2024, 3, 1, 0, 0), datetime.datetime(2024, 7, 1, 0, 0))
    """
    if _MONTH.fullmatch(text):
        text = f"{text}-01"
    elif found := _QUARTER.fullmatch(text):
        text = f"{found[1]}-{3 * int(found[2]) - 2:02d}-01"
    elif text.endswith((" UTC", " GMT")):
        text = f"{text[:-4]}+00:00"
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _of_date_times(column: pl.Series, read: dict[str, datetime]) -> Stamps:
    offsets = {text: stamp.utcoffset() for text, stamp in read.items()}
    zoned = [text for text, offset in offsets.items() if offset is not None]
    if zoned and len(zoned) < len(read):
        bare = next(text for text, offset in offsets.items() if offset is None)
        raise DtypeError(
            f"The time column {column.name!r} holds {zoned[0]!r} with an offset of UTC and {bare!r} without; write "
            "all alike."
        )
    texts = pl.Series(list(read), dtype=pl.String)
    walls = np.array([stamp.replace(tzinfo=None) for stamp in read.values()], dtype="datetime64[us]")
    wall = as_times(_looked_up(column, texts, pl.Series(walls)), "")
    if not zoned:
        return Stamps(wall)
    beside = np.array(list(offsets.values()), dtype="timedelta64[us]")
    return Stamps(wall, _looked_up(column, texts, pl.Series(beside)).to_numpy())


def _looked_up(column: pl.Series, texts: pl.Series, meant: pl.Series) -> pl.Series:
    """What each text of a column means, by the different ones among them."""
    meaning = pl.DataFrame({"text": texts, "meant": meant})
    return pl.DataFrame({"text": column}).join(meaning, "text", "left", maintain_order="left")["meant"]
