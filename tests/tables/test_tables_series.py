"""A long table as one table for each of its series."""

from pathlib import Path

import numpy as np
import pytest
from small_tables import UNKNOWN, csv, days

from ompb.errors import InputError, TimeOrderError
from ompb.tables import ForecastLines, Reading, read_forecasts, read_series, read_table

HEAD = "unique_id,ds,y\n"
HOURLY = [f"h,2024-01-01T{hour:02d}:00,{hour}" for hour in range(12)]
DAILY = [f"d,2024-01-{day:02d},{10 * day}" for day in (1, 2, 4)]


def long(folder: Path, *lines: str, head: str = HEAD) -> Path:
    return csv(folder, head + "\n".join(lines) + "\n")


def test_each_series_has_its_own_rows_and_steps(tmp_path: Path) -> None:
    mixed = [line for pair in zip(DAILY, HOURLY, strict=False) for line in pair]
    found = read_series(long(tmp_path, *mixed, *HOURLY[3:]))
    assert list(found) == ["d", "h"]
    np.testing.assert_array_equal(found["d"].values[:, 0], [10, 20, 40])
    np.testing.assert_array_equal(found["d"].times, days(1, 2, 4))
    np.testing.assert_array_equal(found["h"].values[:, 0], np.arange(12))
    assert [str(table.grid) for table in found.values()] == ["1 day, 0:00:00", "1:00:00"]
    for name, table in found.items():
        assert (table.name, table.channels, table.time_name) == (name, ("y",), "ds")


def test_together_one_id_and_a_wide_table_are_one_series(tmp_path: Path) -> None:
    both = long(tmp_path, "a,2024-01-01,1", "a,2024-01-02,2", "b,2024-01-02,3", "b,2024-01-03,4")
    ((name, table),) = read_series(both, together=True).items()
    assert (name, table.channels) == ("table.csv", ("a", "b"))
    np.testing.assert_array_equal(table.values, read_table(both).values)
    ((name, table),) = read_series(both, Reading(target=("b",))).items()
    assert (name, table.channels) == ("table.csv", ("b",))
    wide = csv(tmp_path, "ds,a,b\n2024-01-01,1,2\n2024-01-02,3,4\n")
    ((name, table),) = read_series(wide).items()
    assert (name, table.channels) == ("table.csv", ("a", "b"))


def test_what_is_known_ahead_is_that_of_the_series(tmp_path: Path) -> None:
    lines = [f"{one},2024-01-0{day},{day},{day + 10 * (one == 'b')}" for one in "ab" for day in (1, 2, 3)]
    found = read_series(long(tmp_path, *lines, head="unique_id,ds,y,rain\n"), Reading(future=("rain",)))
    for shift, table in zip((0, 10), found.values(), strict=True):
        assert table.future is not None
        assert table.future.names == ("rain",)
        np.testing.assert_array_equal(table.future.values[:, 0], np.arange(1, 4) + shift)


def test_what_was_done_to_the_file_and_to_a_series_is_noted(tmp_path: Path) -> None:
    minutes = [f"b,2024-01-01T{hour:02d}:{'01' if hour == 5 else '00'},1" for hour in range(12)]
    found = read_series(long(tmp_path, *HOURLY, HOURLY[0], *minutes))
    assert found["h"].notes == ("1 row left out: copies of another one, cell by cell.",)
    assert found["b"].notes[1].startswith("1 time rounded to steps of 1:00:00")


def test_a_series_that_keeps_no_steps_is_named(tmp_path: Path) -> None:
    odd = [f"odd,2024-01-01T{hour:02d}:{minute:02d},1" for hour, minute in ((0, 0), (1, 0), (2, 0), (2, 17), (4, 40))]
    with pytest.raises(TimeOrderError, match="series 'odd': "):
        read_series(long(tmp_path, *HOURLY, *odd))


def test_recorded_forecasts_come_apart_by_series(tmp_path: Path) -> None:
    tables = read_series(long(tmp_path, *(f"{one},2024-01-0{day},{day}" for one in "ab" for day in (1, 2, 3))))
    lines = ["b,2024-01-02,2024-01-01,1.5", "a,2024-01-03,2024-01-01,2.5", "'=c,2024-01-03,2024-01-01,7"]
    path = csv(tmp_path, "unique_id,ds,cutoff,y_hat\n" + "\n".join(lines) + "\n", "mine.csv")
    parts = ForecastLines.read(path).by_series()
    assert list(parts) == ["b", "a", "=c"]
    np.testing.assert_array_equal(parts["b"].of(tables["b"], 2).forecasts[0, :, 0], [1.5, UNKNOWN])
    np.testing.assert_array_equal(parts["a"].of(tables["a"], 2).forecasts[0, :, 0], [UNKNOWN, 2.5])
    together = read_forecasts(path, read_table(tmp_path / "table.csv"), 2).forecasts
    for place, one in enumerate("ab"):
        np.testing.assert_array_equal(parts[one].of(tables[one], 2).forecasts[..., 0], together[..., place])
    bare = csv(tmp_path, "ds,cutoff,y_hat\n2024-01-02,2024-01-01,1\n", "bare.csv")
    with pytest.raises(InputError, match="no column 'unique_id'"):
        ForecastLines.read(bare).by_series()
