"""Each fault in a toy that has it and nothing else; and what has none passes."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import ompb
from ompb.checkup import FAULTS
from ompb.errors import CheckError, ForecasterError, TooShortError
from ompb.types import Floats

CONTEXT, HORIZON, SEASON, ROWS = 36, 8, 12, 500
SIZES = {"context": CONTEXT, "horizon": HORIZON}
TIMES = np.datetime64("2024-03-01T00", "us") + np.arange(ROWS) * np.timedelta64(1, "h")


def seasonal_rows(noise: float = 0.2, channels: int = 2) -> Floats:
    rng = np.random.default_rng(0)
    phase = 2 * np.pi * (np.arange(ROWS)[:, None] / SEASON + np.arange(channels) / 5)
    return np.asarray(40 + 5 * np.sin(phase) + noise * rng.normal(size=(ROWS, channels)))


SOURCE = seasonal_rows()


def naive(windows: Floats) -> Floats:
    """The last season again."""
    return windows[:, CONTEXT - SEASON :][:, np.arange(HORIZON) % SEASON]


def drift(windows: Floats) -> Floats:
    """A model of differences: the last row, and the mean step."""
    step = (windows[:, -1:] - windows[:, :1]) / (CONTEXT - 1)
    return np.asarray(windows[:, -1:] + step * np.arange(1, HORIZON + 1)[:, None])


def steps_only(windows: Floats) -> Floats:
    """A level that never moves, and the newest steps: a shift of the window moves nothing, its shape does."""
    return np.asarray(40 + np.diff(windows[:, -HORIZON - 1 :], axis=1))


class Calendar(ompb.Forecaster):
    """The last season again, and something for each hour."""

    uses_times = True

    def stamps(self, query: ompb.Query) -> Any:
        return query.times

    def forecast(self, query: ompb.Query) -> Any:
        hours = self.stamps(query).astype("datetime64[h]").astype(int) % 24
        return naive(query.windows) + 0.1 * hours[:, None, None]


class FalseStamps(Calendar):
    """As if every window began with the year."""

    def stamps(self, query: ompb.Query) -> Any:
        return np.full(len(query.windows), np.datetime64("2024-01-01T00", "us"))


def recorded(times: Any = None) -> ompb.Recorded:
    forecasts = np.stack([np.resize(SOURCE[t], (HORIZON, 2)) for t in range(ROWS)])
    return ompb.Recorded(forecasts, times=times)


def fault_of(forecaster: Any, source: Any = SOURCE, **options: Any) -> str:
    with pytest.raises(CheckError) as caught:
        ompb.check(forecaster, source, **{**SIZES, **options})
    assert caught.value.fault in FAULTS
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    return str(caught.value.fault)


GOOD: dict[str, Any] = {
    "seasonal naive": naive,
    "profile": ompb.SeasonalProfile(HORIZON, SEASON),
    "ridge": ompb.Ridge.fit(SOURCE, CONTEXT, HORIZON),
    "last row": lambda windows: np.repeat(windows[:, -1:], HORIZON, axis=1),
    "a part of the window itself": lambda windows: windows[:, CONTEXT - SEASON :][:, :HORIZON],
    "differences": drift,
    "steps only": steps_only,
    "mean": lambda windows: np.repeat(windows.mean(axis=1, keepdims=True), HORIZON, axis=1),
    "single precision": lambda windows: naive(windows).astype(np.float32),
    "recorded": recorded(),
    "recorded by time": recorded(TIMES),
    "calendar": Calendar(),
}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_forecaster_passes(name: str) -> None:
    found = ompb.check(GOOD[name], SOURCE, times=TIMES, **SIZES)
    assert (found.left_out, found.windows) == ((), 48)
    assert found.windows_per_second > 0
    assert str(found).startswith("no fault found in 48 windows, ")


@pytest.mark.parametrize("noise", [0.0, 1.0, 10.0])
@pytest.mark.parametrize("season", [2, 7, SEASON, 30])
def test_no_false_alarm_whatever_the_noise_and_the_season(noise: float, season: int) -> None:
    rng = np.random.default_rng(season)
    rows = 3 * np.sin(2 * np.pi * np.arange(ROWS) / season)[:, None] + noise * rng.normal(size=(ROWS, 1))
    for forecaster in (ompb.Ridge.fit(rows, CONTEXT, HORIZON), drift, ompb.SeasonalProfile(HORIZON, season)):
        ompb.check(forecaster, rows, season=season, **SIZES)


def test_a_season_of_another_length_puts_leads_out_of_order() -> None:
    """Repeating 12 rows of a season of 7 is two rows late; of a season of 2, or of pure noise, it is not."""
    rows = [3 * np.sin(2 * np.pi * np.arange(ROWS) / season + 1)[:, None] for season in (7, 2)]
    assert fault_of(naive, rows[0]) == "lead order"
    for other in (rows[1], np.random.default_rng(0).normal(size=(ROWS, 1))):
        ompb.check(naive, other, season=None, **SIZES)


def test_no_false_alarm_on_a_walk_and_with_holes() -> None:
    walk = np.random.default_rng(1).normal(size=(ROWS, 2)).cumsum(axis=0)
    walk[40:60, 0] = walk[100] = np.nan
    left_out = ompb.check(ompb.Ridge.fit(walk, CONTEXT, HORIZON), walk, season=None, **SIZES).left_out
    assert left_out == ("phase (the source has no season)",)


def test_a_forecaster_that_speaks_at_one_phase_only_is_not_blamed_for_it() -> None:
    table = np.full((ROWS, HORIZON, 2), np.nan)
    for t in range(0, ROWS, SEASON):
        table[t] = np.resize(SOURCE[t], (HORIZON, 2))
    found = ompb.check(ompb.Recorded(table), SOURCE, season=SEASON, **SIZES)
    assert found.left_out == ("phase (all windows start at like phases)",)


def test_quantiles_are_checked_like_points() -> None:
    class Spread(ompb.Forecaster):
        quantiles = (0.1, 0.5, 0.9)

        def forecast(self, query: ompb.Query) -> Any:
            return naive(query.windows)[..., None] + np.array([-1.0, 0.0, 1.0])

    ompb.check(Spread(), SOURCE, **SIZES)


def test_covariates_are_handed_over_as_a_fit_does() -> None:
    known_ahead = np.random.default_rng(2).normal(size=(ROWS, 3))

    class Told(ompb.Forecaster):
        def forecast(self, query: ompb.Query) -> Any:
            assert query.future is not None
            for origin, future in zip(query.origins, query.future, strict=True):
                np.testing.assert_array_equal(future, known_ahead[origin + 1 : origin + 1 + HORIZON])
            return naive(query.windows) + 0.1 * query.future[..., :1]

    ompb.check(Told(), SOURCE, future=known_ahead, **SIZES)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda windows: naive(windows)[:, 1:], r"returned shape \(1, 7, 2\); accepted: \(1, 8, 2\)"),
        (lambda windows: naive(windows).astype(str), "dtype <U"),
        (lambda windows: naive(windows) * np.nan, "must be finite"),
        (lambda windows: windows.nothing, "failed on windows of shape"),
    ],
)
def test_what_is_no_forecast_is_told_as_a_fit_would(answer: Any, words: str) -> None:
    with pytest.raises(ForecasterError, match=words):
        ompb.check(answer, SOURCE, **SIZES)


def test_constant() -> None:
    assert fault_of(lambda windows: np.full((len(windows), HORIZON, 2), 40.0)) == "constant"


def test_random() -> None:
    rng = np.random.default_rng(0)
    assert fault_of(lambda windows: naive(windows) + 0.01 * rng.normal()) == "random"


def test_blind() -> None:
    class GoesOn(ompb.Forecaster):
        """From the rows it was trained on, to the row it is asked at."""

        def forecast(self, query: ompb.Query) -> Any:
            return np.stack([np.resize(SOURCE[o], (HORIZON, 2)) for o in query.origins])

    assert fault_of(GoesOn()) == "blind"


@pytest.mark.parametrize("dead", [0, 1])
def test_dead_channel(dead: int) -> None:
    """One that the model never sees: its forecasts are the same always, or go on from the training rows."""

    class OneEye(ompb.Forecaster):
        def __init__(self, constant: bool) -> None:
            self.constant = constant

        def forecast(self, query: ompb.Query) -> Any:
            said = naive(query.windows).copy()
            said[..., dead] = 40.0 if self.constant else SOURCE[query.origins, dead, None]
            return said

    for constant in (True, False):
        assert fault_of(OneEye(constant)) == "dead channel"
    with pytest.raises(CheckError, match=f"not in channel {dead}: shifting"):
        ompb.check(OneEye(True), SOURCE, **SIZES)


def test_a_channel_that_never_moves_may_have_one_forecast() -> None:
    rows = SOURCE.copy()
    rows[:, 1] = 7.0

    def told(windows: Floats) -> Floats:
        said = naive(windows).copy()
        said[..., 1] = 7.0
        return said

    ompb.check(told, rows, **SIZES)


def restarted(windows: Floats, start: int = 3) -> Floats:
    """A season as it was after training row ``start``, whatever row the window starts at, on the window's level."""
    season = SOURCE[start : start + 480].reshape(40, SEASON, 2).mean(axis=0)
    level = windows.mean(axis=1, keepdims=True)
    return np.asarray(level + (season - season.mean(axis=0))[(CONTEXT + np.arange(HORIZON)) % SEASON])


@pytest.mark.parametrize("noise", [0.0, 0.2, 4.0])
def test_phase(noise: float) -> None:
    assert fault_of(restarted, seasonal_rows(noise)) == "phase"


def test_the_phase_it_is_bound_to_is_named_and_errors_agree() -> None:
    """A second way to see it: the error is small in windows that start there and nowhere else."""
    with pytest.raises(CheckError, match=r"start at its row 3:"):
        ompb.check(restarted, SOURCE, **SIZES)
    starts = np.arange(ROWS - CONTEXT - HORIZON)
    windows = np.stack([SOURCE[s : s + CONTEXT] for s in starts])
    outcomes = np.stack([SOURCE[s + CONTEXT : s + CONTEXT + HORIZON] for s in starts])
    error = np.abs(restarted(windows) - outcomes).mean(axis=(1, 2))
    assert error[starts % SEASON == 3].max() < 0.3
    assert error[starts % SEASON == 9].min() > 3


@pytest.mark.parametrize("horizon", [4, HORIZON, SEASON, 24])
@pytest.mark.parametrize("slope", [-1.0, 0.1, 1.0])
def test_a_drift_is_no_season(horizon: int, slope: float) -> None:
    """A ramp over one season has a correlation of sqrt(6) / pi = 0.78 with a sine that starts at the right phase."""
    rows = seasonal_rows() + slope * np.arange(ROWS)[:, None]
    ahead = (CONTEXT - 1) / 2 + np.arange(1, horizon + 1)[:, None]

    def ramp(windows: Floats) -> Floats:
        return np.asarray(windows.mean(axis=1, keepdims=True) + slope * ahead)

    ompb.check(ramp, rows, context=CONTEXT, horizon=horizon, season=SEASON)


@pytest.mark.parametrize("horizon", [HORIZON, SEASON])
@pytest.mark.parametrize("size", [0.5, 2.5, 10.0])
def test_a_shape_of_its_own_is_no_season(horizon: int, size: float) -> None:
    """As a network has that is hardly trained: the season of the source has the size 5."""
    bump = size * np.sin(2 * np.pi * np.arange(horizon) / SEASON)[:, None]
    ompb.check(
        lambda windows: windows.mean(axis=1, keepdims=True) + bump, SOURCE, context=CONTEXT, horizon=horizon, season=12
    )


class Daytime(ompb.Forecaster):
    """The last season again, in windows that start at rows 4 to 9 of a season: one half of the phases."""

    def speaks_at(self, origins: Any, times: Any) -> Any:
        del times
        phases = (origins - CONTEXT + 1) % SEASON
        return (phases >= 4) & (phases <= 9)

    def forecast(self, query: ompb.Query) -> Any:
        return naive(query.windows)


def test_who_speaks_by_day_only_is_not_blamed() -> None:
    assert ompb.check(Daytime(), SOURCE, season=SEASON, **SIZES).left_out == ()


def test_a_source_that_does_not_move_is_no_fault_of_the_forecaster() -> None:
    ompb.check(naive, np.full((ROWS, 2), 7.0), **SIZES)


def test_what_lies_in_a_circle_is_let_go() -> None:
    def circular(windows: Floats) -> Floats:
        circle: list[Any] = [windows]
        circle.append(circle)
        return naive(windows).copy()

    ompb.check(circular, SOURCE, **SIZES)


@pytest.mark.parametrize("horizon", [3, 12, 30])
@pytest.mark.parametrize("slope", [0.0, 3.0])
def test_phase_at_any_horizon_and_slope(horizon: int, slope: float) -> None:
    season = SOURCE[:480].reshape(40, SEASON, 2).mean(axis=0) - SOURCE[:480].mean(axis=0)
    ahead = (CONTEXT - 1) / 2 + np.arange(1, horizon + 1)[:, None]

    def bound(windows: Floats) -> Floats:
        return np.asarray(windows.mean(axis=1, keepdims=True) + slope * ahead + season[np.arange(horizon) % SEASON])

    rows = SOURCE + slope * np.arange(ROWS)[:, None]
    assert fault_of(bound, rows, horizon=horizon, season=SEASON) == "phase"


def test_trimmed_by_its_origin_it_is_in_phase() -> None:
    class Trimmed(ompb.Forecaster):
        def forecast(self, query: ompb.Query) -> Any:
            late = (query.origins + 1 - CONTEXT - 3) % SEASON
            season = SOURCE[3:483].reshape(40, SEASON, 2).mean(axis=0)
            level = query.windows.mean(axis=1, keepdims=True)
            return level + (season - season.mean(axis=0))[(late[:, None] + CONTEXT + np.arange(HORIZON)) % SEASON]

    ompb.check(Trimmed(), SOURCE, **SIZES)


def test_times() -> None:
    assert fault_of(FalseStamps(), times=TIMES) == "times"
    assert fault_of(Calendar()) == "times"


@pytest.mark.parametrize("wrong", [lambda f: (f - 40) / 3.6, lambda f: f * 1000, lambda f: np.log(f)])
def test_scale(wrong: Any) -> None:
    assert fault_of(lambda windows: wrong(naive(windows))) == "scale"


def test_standardised_forecasts_are_called_so() -> None:
    with pytest.raises(CheckError, match=r"fit if they are taken as standardised"):
        ompb.check(lambda windows: (naive(windows) - 40) / 3.6, SOURCE, **SIZES)


def test_changes_input() -> None:
    def demeaned_in_place(windows: Floats) -> Floats:
        level = windows.mean(axis=1, keepdims=True)
        windows -= level
        return np.asarray(naive(windows) + level)

    assert fault_of(demeaned_in_place) == "changes input"


def test_keeps_input() -> None:
    kept: list[Floats] = []

    def keeping(windows: Floats) -> Floats:
        kept[:] = [windows[:, -1:]]
        return naive(windows)

    assert fault_of(keeping) == "keeps input"


@pytest.mark.parametrize(
    "mixed",
    [
        lambda windows: naive(windows) + 0.01 * windows[:, -1].mean(axis=0),
        lambda windows: naive(windows)[::-1],
    ],
)
def test_batch(mixed: Any) -> None:
    assert fault_of(mixed) == "batch"


def test_a_short_source_is_refused() -> None:
    with pytest.raises(TooShortError, match="1 windows of 36"):
        ompb.check(naive, SOURCE[: CONTEXT + HORIZON], **SIZES)


def test_few_windows_leave_phase_and_leads_out() -> None:
    left_out = ("phase (fewer than 24 windows)", "lead order (fewer than 24 windows)")
    assert ompb.check(naive, SOURCE, windows=5, **SIZES).left_out == left_out


@pytest.mark.parametrize(
    ("moved", "told"),
    [(-1, "1 earlier"), (1, "1 later"), (2, "2 later"), (None, "in reverse order")],
)
def test_lead_order(moved: int | None, told: str) -> None:
    """The last season, some rows off, or the other way round."""

    def misplaced(windows: Floats) -> Floats:
        if moved is None:
            return naive(windows)[:, ::-1]
        return windows[:, CONTEXT - SEASON + moved :][:, np.arange(HORIZON) % (SEASON - max(moved, 0))]

    assert fault_of(misplaced) == "lead order"
    with pytest.raises(CheckError, match=f"fit the rows {told} "):
        ompb.check(misplaced, SOURCE, **SIZES)


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 8, 24])
@pytest.mark.parametrize("noise", [0.0, 0.2, 5.0])
def test_a_model_that_is_merely_slow_has_its_leads_in_order(horizon: int, noise: float) -> None:
    """The last row, and the mean of the window, on a season and on a random walk."""
    walk = np.random.default_rng(1).normal(size=(ROWS, 2)).cumsum(axis=0)

    def last(windows: Floats) -> Floats:
        return np.repeat(windows[:, -1:], horizon, axis=1)

    def mean(windows: Floats) -> Floats:
        return np.repeat(windows.mean(axis=1, keepdims=True), horizon, axis=1)

    for rows in (seasonal_rows(noise), walk + noise * SOURCE):
        for slow in (last, mean):
            ompb.check(slow, rows, context=CONTEXT, horizon=horizon, season=None)


def test_quantile_order() -> None:
    """Its coverage would be wrong for thousands of rows; some that cross are no fault."""

    class Ordered(ompb.Forecaster):
        quantiles = (0.1, 0.5, 0.9)

        def __init__(self, *off: float, share: float = 1.0) -> None:
            self.off, self.share = np.asarray(off), share

        def forecast(self, query: ompb.Query) -> Floats:
            middle = naive(query.windows)[..., None]
            some = (np.sin(1e3 * middle) + 1) / 2 < self.share  # by what is asked: the same answer each time
            return np.asarray(middle + np.where(some, self.off, np.sort(self.off)))

    for off, words in (
        ((1.0, 0.0, -1.0), "0.5-quantile lies below its 0.1-quantile in 100% of its answers"),
        ((0.0, -1.0, 1.0), "0.5-quantile lies below its 0.1-quantile"),
        ((-1.0, 0.5, 0.0), "0.9-quantile lies below its 0.5-quantile"),
    ):
        assert fault_of(Ordered(*off)) == "quantile order"
        with pytest.raises(CheckError, match=words):
            ompb.check(Ordered(*off), SOURCE, **SIZES)
    ompb.check(Ordered(0.0, 0.0, 0.0), SOURCE, **SIZES)
    ompb.check(Ordered(1.0, 0.0, -1.0, share=0.7), SOURCE, **SIZES)


def test_every_fault_has_a_toy() -> None:
    told = {name.removeprefix("test_").replace("_", " ") for name in globals()} | {"training", "gradient"}
    assert set(FAULTS) <= told
