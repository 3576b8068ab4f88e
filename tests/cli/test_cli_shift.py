from pathlib import Path

import numpy as np
import pytest
from tables_on_disk import assert_refused, ompb, series, write_wide

from ompb.metrics.shift import ks


def test_shift_shows_every_common_channel_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = series()
    a, b = write_wide(tmp_path / "before.csv", values[:500]), write_wide(tmp_path / "after.csv", values[500:])
    out = tmp_path / "new" / "shift.svg"
    answer = ompb(capsys, "shift", a, b, "--out", out)
    assert answer.code == 0
    distances = [ks(values[:500, c], values[500:, c]) for c in range(2)]
    lines = {line.split()[0]: line.split() for line in answer.out.splitlines() if line.strip()}
    assert lines["a"][1] == f"{distances[0]:.3f}"
    assert lines["mean"][1] == f"{np.mean(distances):.3f}"
    assert len(lines["mean"]) == 5
    assert "before against after" in answer.out
    assert "after" in out.read_text()


def test_tables_of_one_name_are_told_apart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_wide(tmp_path / "load.csv", series(50))
    answer = ompb(capsys, "shift", table, table, "--out", tmp_path / "shift.png")
    assert f"{table} against {table}" in answer.out


def test_bad_input_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = write_wide(tmp_path / "load.csv", series(50))
    other = tmp_path / "other.csv"
    other.write_text("date,c\n2024-01-01,1\n")
    assert_refused(ompb(capsys, "shift", table, other), "No channel is in both tables")
    assert_refused(ompb(capsys, "shift", table, tmp_path), "only .csv and .parquet are known")
    assert_refused(ompb(capsys, "shift", table, table, "--time", "hour"), "no column 'hour'")
    assert_refused(ompb(capsys, "shift", table, table, "--out", "shift.pdf"), "name the figure .png or .svg")
