import re
from pathlib import Path

import pytest
from tables_on_disk import assert_refused, ompb

from ompb.datasets.demo import PHASES


def test_demo_shows_a_table_per_phase_and_writes_report_and_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, picture = tmp_path / "new" / "demo", tmp_path / "docs" / "report.png"
    answer = ompb(capsys, "demo", "--out", out, "--picture", picture)
    assert (answer.code, answer.err) == (0, "")
    for words in (*PHASES, "bare forecaster", "seasonal profile", "running bias", "ompb", "MAE", "certificate"):
        assert words in answer.out
    assert "episodes of warnings" in answer.out
    assert f"Report: {out / 'report.html'}" in answer.out
    page = (out / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 5
    assert page.count("<td>bare forecaster</td>") == len(PHASES)
    assert not re.search(r"""(href|src)\s*=\s*["']https?:|<script|<link""", page)
    assert len(page) < 1_000_000
    for words in ("seed 0", "old town", "the forecaster never saw", "96 rows"):
        assert words in page
    # the screen and the page show the same numbers
    ours = re.search(r"^ompb +([\d.]+) +([\d.]+)", answer.out, re.MULTILINE)
    assert ours is not None
    assert f"<td>ompb</td><td>{ours[1]}</td><td>{ours[2]}</td>" in page
    assert picture.stat().st_size < 300_000


def test_demo_refuses_a_folder_that_is_a_file_and_a_negative_seed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "file"
    file.touch()
    assert_refused(ompb(capsys, "demo", "--out", file), f"{file} is a file, not a folder")
    assert_refused(ompb(capsys, "demo", "--out", tmp_path, "--seed", "-1"), "--seed")
    assert_refused(ompb(capsys, "demo", "--out", tmp_path, "--picture", "a.jpg"), "'.jpg'")
