"""Dates in one column and times of day in another, as meters and spreadsheets write them."""

from __future__ import annotations

from ompb.floor.extras import extra
from ompb.tables.options import Reading
from ompb.tables.stamps import holding_dates

with extra("report", needed_by="ompb.tables"):
    import polars as pl

_TIME_OF_DAY = r"^\s*\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?( ?[AaPp][Mm])?\s*$"


def joined(frame: pl.DataFrame, reading: Reading) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """The frame with both in the column of dates, and a note; as it is if it has not one column of each.

    >>> frame = pl.DataFrame({"day": ["31.01.2024"], "hour": ["23:00"], "load": ["5"]})
    >>> joined(frame, Reading())[0].to_dict(as_series=False)
    {'day': ['31.01.2024 23:00'], 'load': ['5']}
    """
    said = {*reading.id, reading.value, *reading.target, *reading.exclude, *reading.future}
    texts = [column for column in frame if column.dtype == pl.String and column.name not in said]
    hours = [column for column in texts if _all_like(column, _TIME_OF_DAY)]
    days = [column for column in holding_dates(texts) if not column.str.contains(":", literal=True).any()]
    if len(days) != 1 or len(hours) != 1:
        return frame, ()
    (day,), (hour,) = days, hours
    whole = frame.with_columns(day.str.strip_chars() + " " + hour.str.strip_chars()).drop(hour.name)
    return whole, (f"{hour.name!r} is the time of day of {day.name!r}.",)


def _all_like(column: pl.Series, form: str) -> bool:
    known = column.drop_nulls()
    return len(known) > 0 and bool(known.str.contains(form).all())
