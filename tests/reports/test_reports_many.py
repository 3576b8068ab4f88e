"""Words, tables and the page of many series, against the studies they are about."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from small_study import eight, small_study

import ompb
from ompb.reports.files import forecast_columns, write_results
from ompb.reports.many import (
    HEAD,
    better_and_worse,
    cells_of,
    left_out_told,
    notes_told,
    remarks,
    seasons,
    series_columns,
    summary_of_many,
)
from ompb.reports.overview import html_overview
from ompb.reports.ratio_figure import ratio_figure
from ompb.studies import Studies, Study


def with_study(one: int, **changes: Any) -> Studies:
    found = eight()
    return replace(found, each={**found.each, one: replace(found[one], **changes)})


def with_run(one: int, **changes: Any) -> Studies:
    return with_study(one, run=replace(eight()[one].run, **changes))


def test_better_and_worse_are_counted() -> None:
    ratios = np.array([line.ratio for line in eight().lines])
    better, worse = (ratios < 1).sum(), (ratios > 1).sum()
    assert better_and_worse(eight()) == (
        f"ompb is better than the bare forecaster in {better} of 8 series and worse in {worse}; the median of the "
        f"ratio of their MAE is {np.median(ratios):.3f}."
    )
    run = eight()[3].run
    same = with_run(3, mean=run.base)  # neither better nor worse
    assert f"in {(np.delete(ratios, 3) < 1).sum()} of 8 series and worse in {(np.delete(ratios, 3) > 1).sum()};" in (
        better_and_worse(same)
    )
    unknown = with_run(3, outcome=run.outcome * np.nan)
    assert better_and_worse(unknown).endswith(" In 1 there is no error to compare with.")


def test_what_is_worth_a_remark_is_remarked() -> None:
    found = eight()
    episodes = [len(study.run.warnings) for study in found.values()]
    assert remarks(found)[-1].startswith(
        f"{sum(episodes)} episodes of warnings in {sum(map(bool, episodes))} of 8 series ("
    )
    calm = replace(
        found, each={one: replace(study, run=replace(study.run, warnings=())) for one, study in found.items()}
    )
    assert remarks(calm)[-1] == "No warnings."
    hidden = np.zeros_like(found[2].run.hidden)
    hidden[[30, 40]] = True
    assert "2 cells were too absurd to be believed and were taken as missing (2: 2)." in remarks(
        with_run(2, hidden=hidden)
    )
    large = {**found[1].run.certificate, "value": np.full(100, 1.5)}
    above = sum((line.certificate or 0) >= 1 for line in found.lines if line.id != 1) + 1
    assert any(
        f"In {above} of 8 series the certificate is 1 or more" in one for one in remarks(with_run(1, certificate=large))
    )


def test_a_reference_that_some_lack_is_told_of_apart() -> None:
    references = {name: said for name, said in eight()[0].references.items() if name != "seasonal profile"}
    mixed = with_study(0, references=references)
    rest = [mixed[one].scores()["target"] for one in range(1, 8)]
    its = np.mean([line.mae for lines in rest for line in lines if line.name == "seasonal profile"])
    ours = np.mean([lines[-1].mae for lines in rest])
    sentence = f"7 of 8 series have a seasonal profile: over those its MAE is {its:.3f}, and that of ompb {ours:.3f}."
    assert sentence in remarks(mixed)
    assert not any("have a seasonal profile" in one for one in remarks(eight()))


def test_a_reference_that_does_best_is_said_to() -> None:
    found = eight()
    perfect = {one: {"oracle": np.nan_to_num(study.run.outcome)} for one, study in found.items()}
    best = replace(found, each={one: replace(study, references=perfect[one]) for one, study in found.items()})
    assert remarks(best)[0] == "The oracle did best in the mean (0.000)."


def test_few_are_told_of_and_the_rest_is_named() -> None:
    (sentence,) = left_out_told(eight())
    assert sentence.startswith(
        "Series 8 is left out: source_end = 200 does not split the 10 rows in two, which are too "
    )
    many = replace(eight(), left_out={f"s{number}": "too short." for number in range(8)}, notes=tuple("abcdefgh"))
    assert left_out_told(many)[-1] == "3 more series are left out (s5, s6, s7); summary.json says why."
    assert len(left_out_told(many)) == 6
    assert notes_told(many) == [*"abcdef", "... and 2 notes more; summary.json has all."]


def test_seasons_are_counted() -> None:
    assert seasons(eight()) == "6 rows"
    calibrator = replace(eight()[0].calibrator, season=None)
    assert seasons(with_run(0, calibrator=calibrator)) == "6 in 7, none in 1"


def test_the_files_hold_what_the_studies_hold(tmp_path: Path) -> None:
    found = eight()
    paths = write_results(found, tmp_path, csv=True)
    assert list(paths) == ["Report", "Series", "Newest forecasts", "All forecasts", "All forecasts, CSV", "Summary"]
    files = ["summary.json", "report.html", "series.csv", "newest.csv", "forecasts.parquet", "forecasts.csv"]
    assert json.loads(paths["Summary"].read_text()) == {**summary_of_many(found), "files": files}
    table = pl.read_csv(paths["Series"])
    assert table["unique_id"].to_list() == list(found)
    assert table["warnings"].to_list() == [len(study.run.warnings) for study in found.values()]
    np.testing.assert_allclose(table["mae_ompb"], [line.mae_ompb for line in found.lines], atol=1e-4)
    written = pl.read_parquet(paths["All forecasts"])
    for one, study in found.items():
        own = written.filter(pl.col("unique_id") == str(one))
        frame = study.run.frame("polars")
        np.testing.assert_allclose(own["y_hat"], frame["y_hat"], atol=1e-3)
        np.testing.assert_array_equal(own["cutoff"], frame["cutoff"])
    newest = pl.read_csv(paths["Newest forecasts"])
    assert newest.group_by("unique_id").agg(pl.col("cutoff").n_unique())["cutoff"].to_list() == 8 * [1]
    assert "y" not in newest.columns


def test_several_channels_of_a_series_are_told_apart() -> None:
    names = forecast_columns(small_study(), "site")["unique_id"]
    assert list(dict.fromkeys(names.tolist())) == ["site/channel 0", "site/channel 1"]
    np.testing.assert_array_equal(names == "site/channel 1", small_study().run.frame()["unique_id"] == "channel 1")


def test_the_page_shows_the_best_and_the_worst(tmp_path: Path) -> None:
    found = eight()
    page = ompb.report(found, tmp_path / "page.html", title="Eight <meters>").read_text(encoding="utf-8")
    assert "<h1>Eight &lt;meters&gt;</h1>" in page
    assert page.count("<svg") == 7
    for line in (*found.best, *found.worst):
        assert "".join(f"<td>{cell}</td>" for cell in cells_of(line)) in page
        assert f"{line.id}: how wrong the forecasts were" in page
    assert len(HEAD) == len(cells_of(found.lines[0]))
    assert "<script" not in page
    assert "8: 0, 1, 2, 3, 4, 5, 6, 7" in page


@pytest.mark.parametrize("kept", ["nothing", "certificate"])
def test_what_is_not_known_is_not_drawn(kept: str) -> None:
    def changed(study: Study) -> Study:
        if kept == "certificate":
            return replace(study, run=replace(study.run, certificate={}, last_certificate=None))
        return replace(study, run=replace(study.run, outcome=study.run.outcome * np.nan))

    found = replace(eight(), each={one: changed(study) for one, study in eight().items()})
    page, tree = html_overview(found), summary_of_many(found)
    assert json.loads(json.dumps(tree, allow_nan=False)) == tree
    assert ("made without certificates" in page) == (kept == "certificate")
    assert ("It holds only if" in page) == (kept == "nothing")
    if kept == "certificate":
        assert tree["scores"]["target"][-1]["certificate"] is None
        assert np.isnan(series_columns(found)["certificate"]).all()
    else:
        assert "In no series is there an error to compare with." in page
        assert tree["median_ratio"] is None
        assert "<svg" not in page


def test_the_ratio_figure_counts_every_series_once() -> None:
    found = with_run(5, mean=eight()[5].run.mean + 1e3)  # whose ratio lies beyond the last bar
    (panel,) = ratio_figure(found).axes
    heights = [bar.get_height() for bars in panel.containers for bar in bars]
    assert sum(heights) == 8
    better = sum(line.ratio < 1 for line in found.lines)
    assert panel.get_legend_handles_labels()[1] == [f"better: {better} series", f"not better: {8 - better} series"]
    assert heights[-1] == 1
    assert "Ratios of 2 and more are in the last bar." in html_overview(found)


def test_ratios_near_one_are_told_apart_in_the_figure() -> None:
    runs = {one: study.run for one, study in eight().items()}
    near = {  # whose means are nearly the bare forecaster's
        one: replace(eight()[one], run=replace(run, mean=run.base + 0.01 * (run.mean - run.base)))
        for one, run in runs.items()
    }
    found = replace(eight(), each=near)
    (panel,) = ratio_figure(found).axes
    assert sum(bar.get_height() > 0 for bars in panel.containers for bar in bars) > 2
    assert sum(bar.get_height() for bars in panel.containers for bar in bars) == 8
    assert "Ratios of 2 and more" not in html_overview(found)
