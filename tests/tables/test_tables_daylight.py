"""An hour that local clocks skip in spring is told of where nothing else says that the times are local."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ompb.tables import Reading, read_series
from ompb.tables.inspection import inspect
from ompb.tables.survey import survey


def told(folder: Path, stamps: pd.DatetimeIndex, reading: Reading | None = None) -> tuple[str, ...]:
    """What is said of a wide table with these times."""
    path, reading = folder / "load.csv", reading or Reading()
    values = np.random.default_rng(0).normal(size=len(stamps))
    pd.DataFrame({"date": stamps, "load": values}).to_csv(path, index=False)
    return inspect(next(iter(read_series(path, reading).values())), path, reading).suspicious


def local(zone: str, freq: str = "h", first: str = "2024-03-01") -> pd.DatetimeIndex:
    """Forty days by the wall of a zone, of which pandas leaves out what does not exist."""
    last = pd.Timestamp(first) + pd.Timedelta(days=40)
    return pd.date_range(first, last, freq=freq, tz=zone).tz_localize(None)


@pytest.mark.parametrize(
    ("zone", "freq", "first", "hour"),
    [
        ("Europe/Berlin", "h", "2024-03-01", "2024-03-31T02:00:00"),
        ("Europe/Paris", "15min", "2024-03-01", "2024-03-31T02:00:00"),
        ("America/Chicago", "30min", "2024-03-01", "2024-03-10T02:00:00"),
        ("Europe/Lisbon", "h", "2023-03-01", "2023-03-26T01:00:00"),
        ("Australia/Melbourne", "h", "2024-09-10", "2024-10-06T02:00:00"),
    ],
)
def test_an_hour_that_clocks_skip_is_told(tmp_path: Path, zone: str, freq: str, first: str, hour: str) -> None:
    (sentence,) = told(tmp_path, local(zone, freq, first))
    assert sentence.startswith(f"The hour from {hour} is left out, which clocks skip in spring in ")
    assert sentence.endswith(" for example: if the times are local, name their zone with --timezone, and it is no gap.")


def test_other_gaps_and_known_clocks_are_not_told(tmp_path: Path) -> None:
    berlin, utc = local("Europe/Berlin"), local("UTC")
    assert told(tmp_path, berlin, Reading(timezone="Europe/Berlin")) == ()
    assert told(tmp_path, utc) == ()
    skipped = utc.get_loc(pd.Timestamp("2024-03-31 02:00"))
    assert isinstance(skipped, int)
    assert told(tmp_path, utc.delete([skipped, skipped + 1])) == ()
    assert told(tmp_path, utc.delete(skipped + 5)) == ()
    assert len(told(tmp_path, utc.delete(skipped))) == 1
    assert told(tmp_path, pd.date_range("2024-01-01", periods=90).delete(40)) == ()


def test_it_is_told_once_of_many_series(tmp_path: Path) -> None:
    stamps, path = local("Europe/Berlin"), tmp_path / "long.csv"
    values = np.random.default_rng(0).normal(size=len(stamps))
    parts = [pd.DataFrame({"unique_id": name, "ds": stamps, "y": values}) for name in "ab"]
    pd.concat(parts).to_csv(path, index=False)
    (sentence,) = survey(read_series(path), path, Reading()).suspicious
    assert "2024-03-31T02:00:00" in sentence
