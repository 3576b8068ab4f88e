from pathlib import Path
from shutil import copyfile, copytree

import pytest
from tables_on_disk import assert_refused, ompb

REPOSITORY = Path(__file__).parents[2]


def test_a_page_of_exported_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copytree(REPOSITORY / "results" / "scores", tmp_path / "scores")
    copyfile(
        REPOSITORY / "results" / "made.csv", tmp_path / "made.csv"
    )  # figures take a while, and are drawn elsewhere
    answer = ompb(capsys, "report", "--out", tmp_path / "deep", "--results", tmp_path)
    page = tmp_path / "deep" / "index.html"
    assert (answer.code, answer.out) == (0, f"Page: {page}\n")
    assert page.read_text().startswith("<!doctype html>")


def test_a_folder_without_results_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(ompb(capsys, "report", "--out", tmp_path / "page", "--results", tmp_path), "ompb bench export")
    assert not (tmp_path / "page").exists()


def test_pages_and_headline_of_the_committed_results(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    readme = tmp_path / "README.md"
    readme.write_text((REPOSITORY / "README.md").read_text())
    words = ("--results", REPOSITORY / "results", "--docs", tmp_path / "docs", "--readme", readme)
    answer = ompb(capsys, "bench", "page", *words)
    assert answer.code == 0
    assert f"Written: {tmp_path / 'docs' / 'results.md'}\n" in answer.out
    assert readme.read_text() == (REPOSITORY / "README.md").read_text()
    readme.write_text("# No place\n")
    assert_refused(ompb(capsys, "bench", "page", *words), "no place for what is made")
