"""A breakdown is the score of each group by itself."""

import dataclasses
import functools

import numpy as np
import pytest

import ompb
from ompb.errors import OptionError
from ompb.metrics.score import Score, score


@functools.cache
def small_run(timed: bool = True) -> ompb.Run:
    """From the middle of January into March, three channels of different scale, cells missing."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(1500, 3)).cumsum(axis=0) * np.array([1.0, 10.0, 0.1])
    rows[1100:1110, 1] = np.nan
    times = np.datetime64("2024-01-15T00") + np.arange(len(rows)) * np.timedelta64(1, "h") if timed else None

    def last_value(windows: np.ndarray) -> np.ndarray:
        return np.repeat(windows[:, -1:], 5, axis=1)

    def part(values: np.ndarray | None, rows: slice) -> np.ndarray | None:
        return None if values is None else values[rows]

    source, live = slice(0, 300), slice(300, None)
    cal = ompb.Calibrator.fit(last_value, rows[source], context=20, horizon=5, season=None, times=part(times, source))
    return ompb.backtest(cal, last_value, rows[live], times=part(times, live))


def score_where(run: ompb.Run, inside: np.ndarray) -> Score:
    """The score if only the cells inside (n, H, C) had an outcome."""
    return score(run.mean, np.where(inside, run.outcome, np.nan), run.interval, run.scale)


def assert_same(found: ompb.Breakdown, group: int, expected: Score) -> None:
    line = {
        name: getattr(found, name)[group] for name in ("outcomes", "mae", "mse", "crps", "coverage80", "coverage95")
    }
    assert line == pytest.approx({name: expected.terms()[name] for name in line})


def test_by_channel_and_lead() -> None:
    run = small_run()
    cells = np.indices(run.mean.shape)
    channels, leads = run.score(by="channel"), run.score(by="lead")
    assert channels.names == run.names
    assert leads.names == ("1", "2", "3", "4", "5")
    for channel in range(3):
        assert_same(channels, channel, score_where(run, cells[2] == channel))
    for lead in range(5):
        assert_same(leads, lead, score_where(run, cells[1] == lead))


def test_by_the_month_that_the_outcome_lies_in() -> None:
    run = small_run()
    months = run.score(by="month")
    assert months.names == ("2024-01", "2024-02", "2024-03")
    first = np.datetime64("2024-01-15T00") + 300 * np.timedelta64(1, "h")
    at = first + (run.origins[:, None] + np.arange(1, 6)) * np.timedelta64(1, "h")
    for place, (begin, end) in enumerate([("2024-01", "2024-02"), ("2024-02", "2024-03"), ("2024-03", "2024-04")]):
        inside = (at >= np.datetime64(begin)) & (at < np.datetime64(end))
        assert_same(months, place, score_where(run, np.broadcast_to(inside[..., None], run.mean.shape)))
    assert months.outcomes.sum() == run.score().outcomes


def test_the_bare_forecaster_stands_beside() -> None:
    run = small_run()
    error = np.abs(run.base - run.outcome) / run.scale
    np.testing.assert_allclose(run.score(by="channel").bare_mae, np.nanmean(error, axis=(0, 1)))


def test_a_channel_without_outcomes_has_no_score() -> None:
    run = small_run()
    outcome = run.outcome.copy()
    outcome[..., 0] = np.nan
    found = dataclasses.replace(run, outcome=outcome).score(by="channel")
    assert found.outcomes[0] == 0
    assert np.isnan(found.mae).tolist() == [True, False, False]


def test_it_reads_as_a_table_and_goes_into_a_frame() -> None:
    found = small_run().score(by="month")
    head, *lines = str(found).splitlines()
    assert head.split()[:2] == ["month", "outcomes"]
    assert [line.split()[0] for line in lines] == list(found.names)
    assert f"{found.mae[1]:.3f}" in lines[1]
    assert found._repr_html_().count("<tr") == 4
    assert found.columns()["mae"] == found.mae.tolist()


def test_what_cannot_be_told_apart_is_refused() -> None:
    with pytest.raises(OptionError, match="by = 'year'; accepted: 'channel', 'lead' or 'month'"):
        small_run().score(by="year")  # type: ignore[call-overload]
    with pytest.raises(OptionError, match="needs rows with dates"):
        small_run(timed=False).score(by="month")
