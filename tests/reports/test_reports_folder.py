"""What stands in a folder before results are written there."""

from functools import cache
from pathlib import Path

import pytest
from small_study import small_study

from ompb.errors import OptionError
from ompb.reports.files import write_results
from ompb.reports.folder import make_room, older_results
from ompb.reports.html import html_report

ALWAYS = ("summary.json", "report.html", "newest.csv", "forecasts.parquet")
drawn_once = cache(html_report)  # what it shows is of no matter here


@pytest.fixture(autouse=True)
def _quick_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ompb.reports.files.html_report", drawn_once)


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_results_of_an_older_run_are_replaced_as_a_whole(tmp_path: Path) -> None:
    folder = tmp_path / "new"
    assert make_room(folder) == ""
    write_results(small_study(), folder, csv=True)
    assert names(folder) == {*ALWAYS, "forecasts.csv"}
    assert make_room(folder) == (
        f"The results of an older run in {folder} are replaced (summary.json, report.html, newest.csv, "
        "forecasts.parquet, forecasts.csv)."
    )
    write_results(small_study(), folder)
    assert names(folder) == set(ALWAYS)
    assert older_results(folder) == ALWAYS


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    """Even one that bears the name of a result, as long as it is not in the way."""
    for name in ("load.csv", "forecasts.csv"):
        (tmp_path / name).write_text("mine")
    for _ in range(2):
        make_room(tmp_path)
        write_results(small_study(), tmp_path)
    assert names(tmp_path) == {*ALWAYS, "load.csv", "forecasts.csv"}
    assert (tmp_path / "forecasts.csv").read_text() == "mine"


@pytest.mark.parametrize("name", [*ALWAYS, "forecasts.csv"])
@pytest.mark.parametrize("text", ["mine", "{}", "[1]", '{"files": ["summary.json"]}'])
def test_a_file_of_the_user_is_never_overwritten(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(OptionError, match=f"holds {name}, of which no run of ompb is known"):
        make_room(tmp_path, csv=True)
    with pytest.raises(OptionError, match="choose another folder with --out, or move them away"):
        write_results(small_study(), tmp_path, csv=True)
    assert (tmp_path / name).read_text() == text
    assert names(tmp_path) == {name}
