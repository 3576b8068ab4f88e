import json
import tracemalloc
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from small_study import CONTEXT, eight, fitted, renamed, small_study

import ompb
from ompb.errors import OptionError
from ompb.reports import figures
from ompb.reports.files import forecast_columns, write_results
from ompb.reports.html import html_report
from ompb.reports.summary import summary
from ompb.studies import Phase, PhaseScores, Study, result
from ompb.studies.scores import score_phase
from ompb.tables import Table, read_forecasts, write_table
from ompb.types import Floats


def test_a_bare_run_is_reported_over_row_numbers(tmp_path: Path) -> None:
    forecaster, calibrator, rows = fitted()
    run = ompb.backtest(calibrator, forecaster, rows)
    path = ompb.report(run, tmp_path / "new" / "page.html", title="Mine & yours")
    page = path.read_text(encoding="utf-8")
    assert "<h1>Mine &amp; yours</h1>" in page
    assert page.count("<svg") == 5
    assert "<td>running bias</td>" in page
    study = Study.of(run)
    assert (study.phases[0].first, study.phases[0].stop) == (CONTEXT - 1, len(rows))
    (panel,) = figures.gate_figure(study).axes
    assert np.asarray(panel.lines[0].get_xdata())[-1] == len(rows) - 1


def test_another_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match=r"ends in '\.pdf'; name the page \.html"):
        ompb.report(small_study(), tmp_path / "page.pdf")


def with_hidden(*cells: tuple[int, int]) -> Study:
    study = small_study()
    hidden = np.zeros(study.rows.shape, dtype=bool)
    for cell in cells:
        hidden[cell] = True
    run = replace(study.run)
    object.__setattr__(run, "hidden", hidden)
    return replace(study, run=run)


def test_hidden_cells_are_told_with_channel_and_time() -> None:
    study = with_hidden((30, 1), (31, 1), (75, 1), (40, 0))
    page = html_report(study)
    assert "4 cells were too absurd to be believed" in page
    assert "channel 0: 1, at 2024-01-02T16:00:00" in page
    assert "channel 1: 3, from 2024-01-02T06:00:00 to 2024-01-04T03:00:00" in page
    assert summary(study)["hidden"][1] == {
        "channel": "channel 1",
        "cells": 3,
        "first": "2024-01-02T06:00:00",
        "last": "2024-01-04T03:00:00",
    }
    assert "absurd" not in html_report(small_study())
    assert summary(small_study())["hidden"] == []


@pytest.mark.parametrize("name", ["=1+1", "+a", "-b", "@sum", "\tx", "\ry"])
def test_names_that_a_spreadsheet_would_run_are_quoted_in_csv_alone(name: str, tmp_path: Path) -> None:
    study = small_study()
    run = replace(renamed(study.run, (name, "plain-b")), mean=-study.run.mean)
    columns = forecast_columns(replace(study, run=run))
    for file in ("forecasts.csv", "forecasts.parquet"):
        write_table(tmp_path / file, columns)
    written = pl.read_csv(tmp_path / "forecasts.csv")
    assert written["unique_id"].unique(maintain_order=True).to_list() == [f"'{name}", "plain-b"]
    assert (written["y_hat"] < 0).all()
    assert pl.read_parquet(tmp_path / "forecasts.parquet")["unique_id"][0] == name


def test_quoted_names_are_read_back_as_they_were(tmp_path: Path) -> None:
    study = small_study()
    named = replace(study, run=renamed(study.run, ("=1+1", "b")))
    table = Table(study.rows, study.times.astype("datetime64[us]"), ("=1+1", "b"), "date")
    written = write_results(named, tmp_path, csv=True)["All forecasts, CSV"]
    recorded = read_forecasts(written, table, study.calibrator.horizon).forecasts
    assert np.allclose(recorded[study.run.origins], study.run.mean, atol=1e-3)


def test_a_failure_leaves_no_file_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Study) -> str:
        raise ValueError("no ink")

    monkeypatch.setattr("ompb.reports.files.html_report", fail)
    with pytest.raises(ValueError, match="no ink"):
        write_results(small_study(), tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_summary_is_the_one_of_the_study(tmp_path: Path) -> None:
    paths = write_results(small_study(), tmp_path)
    assert list(paths) == ["Report", "Newest forecasts", "All forecasts", "Summary"]
    files = ["summary.json", "report.html", "newest.csv", "forecasts.parquet"]
    assert json.loads(paths["Summary"].read_text()) == {**summary(small_study()), "files": files}


def test_scores_are_computed_once_for_page_and_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = replace(small_study())  # that nobody has asked yet
    scored: list[str] = []

    def counted(run: ompb.Run, references: Mapping[str, Floats], phase: Phase) -> list[PhaseScores]:
        scored.append(phase.name)
        return score_phase(run, references, phase)

    monkeypatch.setattr(result, "score_phase", counted)
    shown = study.scores()
    shown["early"].clear()  # which is the caller's own
    write_results(study, tmp_path)
    assert scored == ["early", "late"]
    assert study.scores() == small_study().scores()


def test_columns_are_made_one_after_the_other() -> None:
    study = small_study()
    tracemalloc.start()
    try:
        columns = forecast_columns(study)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * sum(column.nbytes for column in columns.values())
    frame = study.run.frame()
    assert list(columns) == frame.columns == [name for name, _ in study.run.columns()]


def test_a_summary_of_many_series_has_a_line_for_each_and_names_in_their_own_letters(tmp_path: Path) -> None:
    studies = eight()
    named = replace(studies, each={f"Zähler {one}": study for one, study in studies.items()})
    text = write_results(named, tmp_path)["Summary"].read_text(encoding="utf-8")
    assert sum(line.startswith('    "Zähler ') for line in text.splitlines()) == len(studies)
    tree = json.loads(text)
    ours = tree["series"]["Zähler 3"]["scores"]["target"][-1]["mae"]
    assert ours == pytest.approx(studies.lines[3].mae_ompb, rel=1e-5)
    assert len(str(ours)) <= len("0.") + 8
