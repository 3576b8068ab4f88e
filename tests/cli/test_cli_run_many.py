"""``ompb run`` and ``ompb check`` on a long table: each series by itself."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from tables_on_disk import (
    CONTEXT,
    HORIZON,
    LENGTHS,
    ROWS,
    SOURCE,
    assert_refused,
    ompb,
    series,
    stamps,
    write_long,
    write_recorded,
    write_wide,
)

from ompb import Ridge
from ompb.tables import read_table
from ompb.types import Floats

DATE = "2024-01-21T20:00"  # of the row SOURCE
USUAL = ("--source-end", DATE, *LENGTHS, "--season", 12)
FILES = {"report.html", "series.csv", "newest.csv", "forecasts.parquet", "summary.json"}


def both() -> dict[str, Floats]:
    return dict(zip("ab", series().T, strict=True))


def summary_of(out: Path) -> Any:
    return json.loads((out / "summary.json").read_text())


def test_a_run_of_many_is_the_runs_of_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = {**both(), "late": series()[200:, 0] + 1, "gone": series()[:580, 1]}
    first = {"late": 200}
    out = tmp_path / "many"
    options = ("--option", "gate=shared", "--unseen", "0.3", "--csv")
    data = write_long(tmp_path / "meters.csv", tables, first)
    answer = ompb(capsys, "run", data, *USUAL, *options, "--out", out)
    assert (answer.code, answer.err) == (0, "")
    assert {path.name for path in out.iterdir()} == FILES | {"forecasts.csv"}
    written, newest = pl.read_parquet(out / "forecasts.parquet"), pl.read_csv(out / "newest.csv")
    assert written["unique_id"].unique(maintain_order=True).to_list() == list(tables)
    lines = {line["unique_id"]: line for line in pl.read_csv(out / "series.csv").to_dicts()}
    for one, rows in tables.items():
        alone = tmp_path / one
        single = write_long(tmp_path / "one.csv", {one: rows}, first)
        assert ompb(capsys, "run", single, *USUAL, *options, "--out", alone).code == 0
        expected = pl.read_parquet(alone / "forecasts.parquet")
        assert written.filter(pl.col("unique_id") == one).equals(expected)
        assert newest.filter(pl.col("unique_id") == one).equals(pl.read_csv(alone / "newest.csv"))
        its, own = summary_of(alone), summary_of(out)["series"][one]
        for name in ("season", "forecasts", "scores", "certificate", "realised", "hidden"):
            assert own[name] == its[name], name
        assert len(own["warnings"]) == len(its["warnings"]) == lines[one]["warnings"]
        bare, ours = (its["scores"]["target"][place] for place in (0, -1))
        assert lines[one]["ratio"] == pytest.approx(ours["mae"] / bare["mae"], abs=1e-4)
        assert lines[one]["coverage_80"] == pytest.approx(ours["coverage80"], abs=1e-4)
    assert newest.group_by("unique_id", maintain_order=True).len()["len"].to_list() == 4 * [HORIZON]
    assert newest.filter(pl.col("unique_id") == "gone")["cutoff"][0].startswith("2024-01-25T03:00")


def test_the_screen_tells_of_all_series_together(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = write_long(tmp_path / "meters.csv", both())
    answer = ompb(capsys, "run", data, *USUAL, "--out", tmp_path / "out")
    means = [
        np.mean([own["scores"]["target"][place]["mae"] for own in summary_of(tmp_path / "out")["series"].values()])
        for place in (0, -1)
    ]
    shown = {line.split("  ")[0]: line.split() for line in answer.out.splitlines()}
    assert shown["bare forecaster"][2] == f"{means[0]:.3f}"
    assert shown["ompb"][1] == f"{means[1]:.3f}"
    for words in (
        "2 series of 600 rows, 0 missing time stamps inserted.",
        "Source: 500 rows. Season: 12 rows. Forecasts issued: 200.",
        "target, mean of 2 series",
        "in standard deviations of the source of each series",
        "ompb is better than the bare forecaster in 2 of 2 series and worse in 0; the median of",
        "episodes of warnings in 2 of 2 series (",
        "gained most\n",
        "gained least\n",
        f"Series: {tmp_path / 'out' / 'series.csv'} (",
    ):
        assert words in answer.out
    tree = summary_of(tmp_path / "out")
    assert (tree["better"], tree["worse"], tree["left_out"]) == (2, 0, {})
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "<h1>meters.csv, followed by ompb</h1>" in page
    assert page.count("<svg") == 3


def test_series_that_are_too_short_are_named_and_the_rest_is_followed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = series()[:, 0]
    short = {f"short {number}": values[:20] for number in range(6)}
    data = write_long(tmp_path / "meters.csv", {**both(), "new": values[:40], **short}, {"new": 520})
    answer = ompb(capsys, "run", data, *USUAL, "--out", tmp_path / "out")
    assert (answer.code, answer.err) == (0, "")
    assert f"Series 'new' is left out: source_end = '{DATE}' does not split the 40 rows in two" in answer.out
    assert "2 more series are left out (short 4, short 5); summary.json says why." in answer.out
    left_out = summary_of(tmp_path / "out")["left_out"]
    assert list(left_out) == ["new", *short]
    assert "does not split the 20 rows" in left_out["short 5"]
    assert pl.read_csv(tmp_path / "out" / "series.csv")["unique_id"].to_list() == ["a", "b"]
    assert "Series &#x27;new&#x27; is left out" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    none = write_long(tmp_path / "none.csv", short)
    answer = ompb(capsys, "run", none, *USUAL, "--out", tmp_path / "none")
    assert_refused(answer, "none of 6 series can be followed; series 'short 0': source_end", "does not split")
    assert not (tmp_path / "none").exists()


def test_each_series_is_followed_by_its_own_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Those of the built-in forecaster, written to a file, stand for the user's own."""
    data = write_long(tmp_path / "meters.csv", both())
    read, trained = read_table(data).values, 375
    origins = range(CONTEXT - 1, ROWS)
    said = []
    for rows in read.T[:, :, None]:
        windows = np.stack([rows[origin + 1 - CONTEXT : origin + 1] for origin in origins])
        said.append(Ridge.fit(rows[:trained], CONTEXT, HORIZON)(windows))
    mine = write_recorded(tmp_path / "mine.csv", np.concatenate(said, axis=-1), origins)
    command = ("run", data, *USUAL, "--unseen", SOURCE - trained)
    ompb(capsys, *command, "--out", tmp_path / "built-in")
    answer = ompb(capsys, *command, "--forecasts", mine, "--out", tmp_path / "brought")
    assert (answer.code, answer.err) == (0, "")
    built_in, brought = (pl.read_parquet(tmp_path / name / "forecasts.parquet") for name in ("built-in", "brought"))
    assert brought["unique_id"].equals(built_in["unique_id"])
    assert np.allclose(built_in["y_hat"], brought["y_hat"], atol=1e-3)
    assert summary_of(tmp_path / "brought")["facts"]["forecaster"] == "forecasts recorded in mine.csv"


def test_one_id_is_a_series_like_any_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    long = write_long(tmp_path / "one.csv", {"a": series()[:, 0]})
    wide = write_wide(tmp_path / "wide.csv", series())
    for data, options in ((long, ()), (wide, ("--target", "a"))):
        assert ompb(capsys, "run", data, *USUAL, *options, "--csv", "--out", tmp_path / data.stem).code == 0
    files = [(tmp_path / name / "forecasts.csv").read_text() for name in ("one", "wide")]
    assert files[0] == files[1]
    assert not (tmp_path / "one" / "series.csv").exists()


def test_check_says_what_run_will_do_with_a_long_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = {**both(), "late": series()[300:, 0]}
    tables["b"][100], tables["b"][200] = -999, np.nan
    data = write_long(tmp_path / "meters.csv", tables, {"late": 300})
    lines = data.read_text().splitlines()
    data.write_text("\n".join([*lines[:50], *lines[52:]]) + "\n")
    answer = ompb(capsys, "check", data)
    assert (answer.code, answer.err) == (0, "")
    for words in (
        "file        meters.csv: text, commas between cells; long (series in 'unique_id', values in 'y')",
        "size        3 series of 300 to 600 rows",
        "series      a, b, late",
        "followed    each series by itself; with --together they are channels of one system",
        "times       'ds', 2024-01-01T00:00:00 to 2024-01-25T23:00:00, every hour",
        "gaps        2 times left out, missing rows, in a (2)",
        "missing     1 cell, in b (1)",
        "season      12 rows (12 hours)",
        "b: 'y' is -999 once, at 2024-01-05T04:00:00",
        f"  ompb run {data} --missing -999 --source-end 2024-01-19T18:00:00 --context 48 --horizon 12",
    ):
        assert words in answer.out
    together = ompb(capsys, "check", data, "--together")
    assert "followed    as channels of one system" in together.out
    assert f"  ompb run {data} --missing -999 --together --source-end" in together.out
    proposed = answer.out.splitlines()[-1].split()
    assert ompb(capsys, *proposed[1:], "--out", tmp_path / "out").code == 0
    assert stamps()[450].item().isoformat() in proposed
