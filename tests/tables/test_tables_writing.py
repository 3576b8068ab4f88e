from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small_tables import UNKNOWN, days

from ompb.errors import (
    OptionError,
    ShapeError,
)
from ompb.tables import (
    read_table,
    write_table,
)


@pytest.mark.parametrize("name", ["new/table.csv", "table.parquet"])
def test_what_is_written_reads_back(tmp_path: Path, name: str) -> None:
    times = np.array(["2024-01-01T00:00", "2024-01-01T00:00:00.5"], dtype="datetime64[us]")
    write_table(tmp_path / name, {"ds": times, "a": np.array([1 / 3, UNKNOWN]), "b": np.array([1, 2])})
    table = read_table(tmp_path / name)
    np.testing.assert_array_equal(table.times, times)
    np.testing.assert_array_equal(table.values, [[1 / 3, 1], [UNKNOWN, 2]])


def test_csv_is_plain_to_read(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    write_table(path, {"ds": days(1, 2), "a": np.array([0.5, UNKNOWN])})
    assert path.read_text() == "ds,a\n2024-01-01T00:00:00,0.5\n2024-01-02T00:00:00,\n"


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"ends in '\.json'"):
        write_table(tmp_path / "table.json", {"a": np.ones(2)})
    for columns in ({"a": np.ones(2), "b": np.ones(3)}, {"a": np.ones((2, 2))}, {}):
        with pytest.raises(ShapeError, match="flat columns of equal length"):
            write_table(tmp_path / "table.csv", columns)


def test_times_of_a_csv_have_one_form_so_that_other_programs_read_them(tmp_path: Path) -> None:
    times = np.array(["2024-01-01T00:00:01", "2024-01-01T00:00:01.040"], dtype="datetime64[us]")
    path = tmp_path / "fast.csv"
    write_table(path, {"ds": times, "y": np.array([1.0, 2.0])})
    assert path.read_text() == "ds,y\n2024-01-01T00:00:01.000,1.0\n2024-01-01T00:00:01.040,2.0\n"
    frame = pd.read_csv(path, parse_dates=["ds"])
    np.testing.assert_array_equal(frame["ds"].to_numpy(dtype="datetime64[us]"), times)
    write_table(path, {"ds": np.append(times, np.datetime64("NaT")), "y": np.ones(3)})
    assert path.read_text().endswith("\n,1.0\n")
