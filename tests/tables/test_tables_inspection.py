"""What is said of a table: its parts, its holes, and values that look wrong."""

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from small_tables import UNKNOWN, daily

from ompb.floor.times import Grid
from ompb.tables import Covariates, Reading, Table
from ompb.tables.inspection import inspect
from ompb.tables.suspicion import suspicions
from ompb.types import Floats

HOUR = np.timedelta64(1, "h")


def hourly(values: Floats) -> Table:
    times = np.datetime64("2024-01-01", "us") + np.arange(len(values)) * HOUR
    return Table(values, times, ("load",), "date", "load.csv", "text; wide", grid=Grid(3_600_000_000, "us"))


def wave(rows: int = 800) -> Floats:
    noise = np.random.default_rng(0).normal(0, 0.1, rows)
    return np.asarray(10 + np.sin(2 * np.pi * np.arange(rows) / 24) + noise)[:, None]


def test_every_part_of_a_table_is_told() -> None:
    values = wave()
    values[5] = UNKNOWN
    whole = replace(hourly(values), future=Covariates(np.zeros((800, 1)), ("holiday",)), notes=("A note.",))
    kept = np.delete(np.arange(800), [100, 101, 102, 300])
    assert whole.future is not None
    gappy = replace(
        whole, values=values[kept], times=whole.times[kept], future=Covariates(np.zeros((796, 1)), ("holiday",))
    )
    found = inspect(gappy, Path("my load.csv"), Reading(target=("load",), freq="h"))
    assert found.facts == {
        "file": "load.csv: text; wide",
        "size": "796 rows of 1 channel",
        "times": "'date', 2024-01-01T00:00:00 to 2024-02-03T07:00:00, every hour",
        "gaps": "4 times left out, counted as missing rows, in 2 places; the longest gap is of 3 rows from "
        "2024-01-05T04:00:00",
        "targets": "load",
        "known ahead": "holiday",
        "missing": "load: 1 cell (0.1%)",
        "season": "24 rows (1 day)",
    }
    assert found.remarks == ("A note.",)
    assert shlex.split(found.command) == [
        *("ompb", "run", "my load.csv", "--target", "load", "--freq", "h"),
        *("--source-end", "2024-01-26T00:00:00", "--context", "96", "--horizon", "24"),
    ]


def test_a_table_that_is_too_short_gets_no_command() -> None:
    found = inspect(daily(20), "few.csv", Reading())
    assert found.command == ""
    assert (found.facts["gaps"], found.facts["missing"]) == ("none", "none")


@pytest.mark.parametrize("code", [-999.0, 99999.0, 1e20, -99.0, 9.96921e36])
def test_numbers_that_stand_for_missing_are_suspected(code: float) -> None:
    values = wave()
    values[[40, 90]] = code
    (sentence,) = suspicions(hourly(values))
    assert sentence == (
        f"'load' is {code:g} 2 times, from 2024-01-02T16:00:00 on, far from all other values: if it means missing, say "
        f"--missing {code:g}."
    )


def test_two_codes_in_one_channel_are_both_named() -> None:
    values = wave()
    values[40], values[50] = -999, -9999
    assert [sentence.split()[2] for sentence in suspicions(hourly(values))] == ["-9999", "-999"]


@pytest.mark.parametrize("kind", ["normal", "heavy tails", "counts", "rain", "walk", "flags", "nothing"])
def test_usual_values_are_not_suspected(kind: str) -> None:
    rng = np.random.default_rng(1)
    values = {
        "normal": rng.normal(size=2000),
        "heavy tails": rng.standard_t(3, size=2000),
        "counts": rng.poisson(0.5, 2000).astype(float),
        "rain": np.where(rng.random(2000) < 0.95, 0.0, rng.exponential(size=2000)),
        "walk": rng.normal(size=2000).cumsum(),
        "flags": (rng.random(2000) < 0.01).astype(float),
        "nothing": np.full(2000, UNKNOWN),
    }[kind]
    assert suspicions(hourly(values[:, None])) == ()


def test_a_stretch_that_stands_still_is_suspected() -> None:
    values = wave()
    values[200:240] = 10.25
    (sentence,) = suspicions(hourly(values))
    assert sentence == (
        "Nothing moves for long in 'load' (10.25 for 40 rows from 2024-01-09T08:00:00): if nothing was measured, empty "
        "them."
    )


def test_a_channel_that_is_always_the_same_is_told_with_what_to_do() -> None:
    flat = np.full((800, 1), 7.25)
    flat[[3, 99]] = UNKNOWN
    both = replace(hourly(np.hstack([wave(), flat])), channels=("load", "flat"))
    assert suspicions(both) == (
        "'flat' is always 7.25: nothing can be forecast of it, and mean scores count it; leave it out with --exclude "
        "'flat'.",
    )
    assert inspect(both, "load.csv", Reading()).suspicious == suspicions(both)
    assert suspicions(hourly(flat)) == (
        "'load' is always 7.25: nothing can be forecast of it; among several series, leave this one out with "
        "--exclude.",
    )
    assert suspicions(hourly(flat[:20])) == ()  # too few rows to tell


def test_very_many_findings_are_counted() -> None:
    values = np.repeat(wave(), 7, axis=1)
    values[40] = -999
    table = Table(values, np.arange(800), tuple("abcdefg"), "row")
    found = suspicions(table)
    assert len(found) == 5
    assert found[-1] == "... and 3 more like these."


def test_a_channel_without_values_is_no_target() -> None:
    both = replace(hourly(np.hstack([wave(), np.full((800, 1), UNKNOWN)])), channels=("load", "note"))
    found, alone = (inspect(table, "load.csv", Reading()) for table in (both, hourly(wave())))
    assert found.remarks == ("Channel 'note' has no value at all and is left out.",)
    assert (found.facts, found.command) == (alone.facts, alone.command)


def test_a_season_that_the_source_is_too_short_to_show_is_said_in_the_command() -> None:
    weeks = 10 * np.maximum(0, np.sin(2 * np.pi * np.arange(260) / 52))[:, None] ** 3
    found = inspect(hourly(weeks + 0.3 * np.random.default_rng(1).normal(size=(260, 1))), "ill.csv", Reading())
    assert found.facts["season"].startswith("52 rows")
    assert "--season 52" in found.command
    assert "--season" not in inspect(hourly(wave()), "load.csv", Reading()).command


@pytest.mark.parametrize("first", [np.arange(800.0), 45292 + np.arange(800) / 96, 1704067200 + 0.5 * np.arange(800)])
def test_a_channel_that_counts_is_suspected(first: Floats) -> None:
    (said,) = suspicions(replace(hourly(np.column_stack([first, wave()])), channels=("No", "load")))
    assert said.startswith("'No' rises by ")
    assert said.endswith("leave it out with --exclude 'No'.")
    (said,) = suspicions(hourly(first[:, None]))
    assert said.endswith("if it is no measurement, among several series, leave this one out with --exclude.")
    assert suspicions(hourly(wave())) == ()
