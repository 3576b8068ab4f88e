"""Benchmark data cut into the part forecasters are trained on and the streams they are judged on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ompb.errors import OptionError, TooShortError
from ompb.floor import checks
from ompb.rows.scaler import Scaler
from ompb.rows.windows import fill_forward
from ompb.tables import Table
from ompb.types import Floats

ID = "id"  # the stream from the same place as the source, later in time


@dataclass(frozen=True, slots=True, eq=False)
class BenchmarkData:
    """A source and the streams that follow it, in the units of the files and without missing cells.

    ``streams`` holds all the rows there are of each split; ``stream`` gives those the paper judges.
    """

    name: str  # as tables show it
    channels: tuple[str, ...]
    context: int
    season: int | None  # rows
    source: Floats  # (T, C): for training, and for the mean and population sd that standardise
    streams: Mapping[str, Floats]  # split to (T, C)
    horizons: tuple[int, ...] = ()  # those of the paper, if it uses this data

    def __post_init__(self) -> None:
        for part, rows in {"source": self.source, **self.streams}.items():
            _require_rows(self.name, part, rows)

    def stream(self, split: str, horizon: int) -> Floats:
        """The rows (T, C) of a split that give the paper's windows; raises if they hold none.

        The paper judges every split on as many windows as "id" has, the first of the file. At any horizon that is as
        many rows as "id" has. A shorter split, or data without "id", is given whole.
        """
        rows = self._judged(split)
        if not window_count(len(rows), self.context, horizon):
            raise TooShortError(
                f"The split {split!r} of {self.name} has {len(rows)} rows, too few for a window of "
                f"{self.context} + {horizon} rows; lower the horizon."
            )
        return rows

    def counts(self, horizon: int) -> dict[str, int]:
        """How many windows the source and the judged part of each stream hold, by name."""
        parts = {"source": self.source, **{split: self._judged(split) for split in self.streams}}
        return {part: window_count(len(rows), self.context, horizon) for part, rows in parts.items()}

    def _judged(self, split: str) -> Floats:
        if split not in self.streams:
            raise OptionError(f"{self.name} has no split {split!r}; accepted: {', '.join(self.streams)}.")
        rows = self.streams[split]
        return rows[: len(self.streams.get(ID, rows))]


def window_count(rows: int, context: int, horizon: int) -> int:
    """How many windows of ``context`` known and ``horizon`` later rows lie wholly inside that many rows.

    >>> window_count(3484, 96, 96)
    3293
    """
    return max(0, rows - checks.count("context", context) - checks.count("horizon", horizon) + 1)


def source_means(name: str, source: Floats) -> Floats:
    """The mean (C,) of what is known of each channel of the source (T, C) of some data; 0 where nothing is."""
    _require_rows(name, "source", source)
    return Scaler.fit(source).centre


def _require_rows(name: str, part: str, rows: Floats) -> None:
    if not len(rows):
        raise TooShortError(f"The {part} part of {name} has no row; check that its file is complete.")


def hourly_sites(name: str, percent: int, home: Table, away: Mapping[str, Table]) -> BenchmarkData:
    """Hourly data of several sites: the first ``percent`` of home is the source, the rest of it "id".

    A missing cell takes the last known value of its channel at that site; before any is known, the source mean.
    """
    cut = len(home.values) * percent // 100
    means = source_means(name, home.values[:cut])
    rows = fill_forward(home.values, means)
    elsewhere = {split: fill_forward(table.select(home.channels).values, means) for split, table in away.items()}
    return BenchmarkData(
        name=name,
        channels=home.channels,
        context=96,
        season=24,
        source=rows[:cut],
        streams={ID: rows[cut:], **elsewhere},
        horizons=(24, 48, 96, 192, 336, 720),
    )
