"""Intervals of a stream: a literal twin of what is learned of them, bounds, and forecasters that give quantiles."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from small_streams import CHANNELS, CONTEXT, HORIZON, fit, last_season, same, saved, source, target

import ompb
from ompb.core.intervals import LEVELS, REACH, SHORTEST, SOURCE_ROWS, TILT, ConformalState
from ompb.errors import ForecasterError, OptionError, ShapeError
from ompb.floor.normal import gaussian_half_width
from ompb.floor.times import Times
from ompb.types import Floats, half_widths

RATE = 0.5 / max(HORIZON, SHORTEST)
DISCOUNT = 0.99


@dataclass
class Twin:
    """What must be known of intervals, cell by cell: rows, leads, levels and sides in plain loops."""

    cal: ompb.Calibrator
    variance: dict[tuple[int, int], float] = field(default_factory=dict)  # (channel, lead)
    rows: dict[tuple[int, int], float] = field(default_factory=dict)
    logs: dict[tuple[int, int, int], float] = field(default_factory=dict)  # (channel, side, level)
    said: dict[int, tuple[ompb.Forecast, Floats]] = field(default_factory=dict)  # with 1 + leverage, (H, C)
    learned: set[tuple[int, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        for channel in range(CHANNELS):
            for lead in range(HORIZON):
                self.variance[channel, lead] = float(self.cal.source.base_variance[channel, lead])
                self.rows[channel, lead] = SOURCE_ROWS
            for side, (place, level) in product((0, 1), enumerate(LEVELS)):
                reached = self.cal.source.half_widths[channel, side, place] / gaussian_half_width(level)
                self.logs[channel, side, place] = min(max(math.log(reached), -REACH), REACH)

    def issue(self, forecast: ompb.Forecast) -> None:
        """The half-widths are those of the factors now; the leverage follows from the sd."""
        leverage = np.empty((HORIZON, CHANNELS))
        for channel in range(CHANNELS):
            for lead in range(HORIZON):
                sd = forecast.sd[lead, channel] / self.cal.scale[channel]
                leverage[lead, channel] = sd**2 / self.variance[channel, lead]
            for side in (0, 1):
                widest = 0.0
                for place, level in enumerate(LEVELS):
                    factor = math.exp(self.logs[channel, side, place])
                    widest = max(widest, factor * gaussian_half_width(level))
                    assert forecast.multipliers[side, place, 0, channel] == pytest.approx(widest, rel=1e-9)
        self.said[forecast.origin] = forecast, leverage

    def hear(self, row: int, values: Floats) -> None:
        """Cells of a row have come; those heard before say nothing new."""
        for channel in range(CHANNELS):
            if math.isnan(values[channel]) or (row, channel) in self.learned:
                continue
            self.learned.add((row, channel))
            heard = [lead for lead in range(HORIZON) if row - lead - 1 in self.said]
            moves = dict.fromkeys(self.logs, 0.0)
            for place, level in enumerate(LEVELS):
                below = above = 0.0
                for lead in heard:
                    forecast, _ = self.said[row - lead - 1]
                    error, sd = values[channel] - forecast.mean[lead, channel], forecast.sd[lead, channel]
                    below += (-error > forecast.multipliers[0, place, 0, channel] * sd) / len(heard)
                    above += (error > forecast.multipliers[1, place, 0, channel] * sd) / len(heard)
                if heard:
                    moves[channel, 0, place] = RATE * (below + above - (1 - level) - TILT * (above - below))
                    moves[channel, 1, place] = RATE * (below + above - (1 - level) + TILT * (above - below))
            self.logs = {key: min(max(self.logs[key] + move, -REACH), REACH) for key, move in moves.items()}
            ratios: dict[int, float] = {}  # squared error, by lead, to what its variance is so far
            for lead in heard:
                forecast, leverage = self.said[row - lead - 1]
                error = (values[channel] - forecast.mean[lead, channel]) / self.cal.scale[channel]
                ratios[lead] = error**2 / leverage[lead, channel] / self.variance[channel, lead]
                self.rows[channel, lead] = min(self.rows[channel, lead] + 1, 1 / (1 - DISCOUNT))
            for lead in range(HORIZON if heard else 0):  # a lead that was silent has erred as the others did
                ratio = ratios.get(lead, sum(ratios.values()) / len(heard))
                self.variance[channel, lead] *= 1 + (ratio - 1) / self.rows[channel, lead]

    def agrees(self, stream: ompb.Stream) -> None:
        state = stream._state.online.intervals
        assert isinstance(state, ConformalState)
        for (channel, side, place), log in self.logs.items():
            assert state.log_factor[channel, side, place] == pytest.approx(log, abs=1e-9)
        for (channel, lead), variance in self.variance.items():
            assert state.variance[channel, lead] == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_a_literal_twin_learns_the_same_of_rows_on_time_late_and_never(seed: int) -> None:
    """A tenth of the cells is missing; of these some come late, once or twice. At some rows no forecast is issued."""
    rng = np.random.default_rng(seed)
    cal = fit(guard=None, patience=5)
    stream, twin = cal.stream(last_season), Twin(cal)
    lost: list[tuple[int, int]] = []
    for row, values in enumerate(target()[:220]):
        known = np.where(rng.random(CHANNELS) < 0.1, np.nan, values)
        lost += [(row, int(channel)) for channel in np.flatnonzero(np.isnan(known))]
        forecast = stream.step(known, base=None) if rng.random() < 0.1 else stream.step(known)
        twin.hear(row, known)
        if forecast is not None:
            twin.issue(forecast)
        if rng.random() < 0.3 and lost and row - lost[-1][0] <= 5:
            late, channel = lost[-1]
            cell = np.full(CHANNELS, np.nan)
            cell[channel] = target()[late, channel]
            stream.observe(late, cell)
            twin.hear(late, cell)
        twin.agrees(stream)
    assert len(twin.learned) < 220 * CHANNELS - 5
    assert max(map(abs, twin.logs.values())) > 0.1


# ------------------------------------------------------------------------------------------- quantiles and bounds


def forecast_with(multipliers: Floats, bounds: Floats | None = None, mean: float = 1.0) -> ompb.Forecast:
    shape = (3, multipliers.shape[-1])
    return ompb.Forecast(
        origin=0,
        times=None,
        mean=np.full(shape, mean),
        base=np.zeros(shape),
        gate=np.ones(shape[1]),
        novelty=None,
        sd=np.full(shape, 2.0),
        levels=np.asarray(LEVELS),
        multipliers=multipliers,
        bounds=bounds,
        expected_error=np.ones(shape[1]),
        certificate=None,
        hidden=(),
        warnings=(),
        replaced=None,
    )


@pytest.mark.parametrize("leads", [1, 3])
def test_quantiles_never_fall_as_q_rises(leads: int) -> None:
    """Whatever the tracked half-widths, as long as they do not cross, and at the finest steps between them."""
    rng = np.random.default_rng(leads)
    multipliers = np.sort(rng.exponential(size=(2, len(LEVELS), leads, 40)), axis=1)
    multipliers[:, 2] = multipliers[:, 1]  # as wide as the level before
    forecast = forecast_with(multipliers)
    quantiles = np.stack([forecast.quantile(q) for q in np.linspace(0.0005, 0.9995, 2001)])
    assert (np.diff(quantiles, axis=0) >= 0).all()
    assert forecast.quantile(0.5) is forecast.mean


def test_an_untouched_gaussian_is_one_at_every_level() -> None:
    gaussian = np.asarray([[gaussian_half_width(level) for level in LEVELS]] * 2)[..., None, None]
    for level in (0.01, 0.3, 0.5, 0.77, 0.95, 0.97, 0.999):
        np.testing.assert_allclose(half_widths(level, np.asarray(LEVELS), gaussian), gaussian_half_width(level))


def test_ends_and_quantiles_lie_within_the_bounds_and_the_mean_stays() -> None:
    multipliers = np.ones((2, len(LEVELS), 1, 2)) * np.arange(1, 6)[:, None, None]
    bounds = np.asarray([[0.0, -np.inf], [np.inf, 2.0]])
    forecast = forecast_with(multipliers, bounds)
    lower, upper = forecast.interval(0.9)
    np.testing.assert_array_equal(lower[0], [0.0, -5.0])
    np.testing.assert_array_equal(upper[0], [7.0, 2.0])
    below = forecast_with(multipliers, bounds, mean=-0.5)
    np.testing.assert_array_equal(below.mean, -0.5)
    np.testing.assert_array_equal(below.quantile(0.5)[0], [0.0, -0.5])
    quantiles = np.stack([below.quantile(q) for q in (0.01, 0.2, 0.49, 0.5, 0.51, 0.8, 0.99)])
    assert (np.diff(quantiles, axis=0) >= 0).all()
    assert (quantiles[..., 0] >= 0).all()


def test_bounds_of_a_stream_are_in_the_users_units_and_change_nothing_else() -> None:
    least = float(source()[:, 0].min())
    bound = (least, None)
    bounded, free = fit(lower=bound), fit()
    ours, theirs = (ompb.backtest(cal, last_season, target() - 3) for cal in (bounded, free))
    np.testing.assert_array_equal(ours.mean, theirs.mean)
    lower, upper = ours.interval(0.95)
    assert (lower[..., 0] >= least).all()
    assert (lower[..., 0] == least).any()
    np.testing.assert_array_equal(lower[..., 1], theirs.interval(0.95)[0][..., 1])
    np.testing.assert_array_equal(np.maximum(theirs.interval(0.95)[1][..., 0], least), upper[..., 0])


def test_a_bound_survives_a_file(tmp_path: Path) -> None:
    cal = fit(lower=-50, upper=(None, 90.0))
    cal.save(tmp_path / "cal")
    np.testing.assert_array_equal(ompb.Calibrator.load(tmp_path / "cal").bounds, [[-50, -50], [np.inf, 90]])


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"lower": "zero"}, r"option lower = 'zero'.*accepted: None, a number, or one number"),
        ({"lower": ()}, "option lower = "),
        ({"upper": np.nan}, "option upper = nan"),
        ({"lower": (0.0, "x")}, "option lower = 'x'"),
        ({"lower": 3.0, "upper": (5.0, 3.0)}, r"option lower = \(3.0,\).*numbers below upper"),
        ({"lower": (0.0, 0.0, 0.0), "upper": (1.0, 1.0)}, "as many bounds as upper has: 2"),
        ({"lower": (-99.0,) * 3}, "one for each of the 2 channels|each of the 2 channels"),
        ({"lower": 9.0}, r"option lower = \(9.0,\).*source is .* at row \d+, channel"),
        ({"upper": (None, 9.0)}, "option upper = .*source is"),
    ],
)
def test_bounds_that_cannot_be_are_refused(bounds: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        fit(**bounds)


# -------------------------------------------------------------------------------- forecasters that give quantiles

TAUS = (0.1, 0.5, 0.8, 0.9)
BELOW, ABOVE, FAR = 0.4, 0.7, 1.5  # how far its quantiles lie off the median


def stretched(windows: NDArray[np.floating]) -> Floats:
    """Skewed quantiles (n, H, C, 4) around `last_season`, wider at farther leads."""
    wider = (1 + 0.2 * np.arange(HORIZON))[:, None, None]
    return np.asarray(last_season(windows)[..., None] + wider * np.asarray([-BELOW, 0.0, ABOVE, FAR]))


class Quantiles(ompb.Forecaster):
    quantiles = TAUS

    def forecast(self, query: ompb.Query) -> Floats:
        return stretched(query.windows)


class EveryThird(Quantiles):
    def speaks_at(self, origins: NDArray[np.int64], times: Times | None) -> NDArray[np.bool_]:
        del times
        return np.asarray(origins % 3 == 0)


@lru_cache
def of_quantiles() -> ompb.Calibrator:
    return fit(Quantiles())


def test_the_first_forecast_has_the_forecasters_own_quantiles() -> None:
    """Nothing has been learned: the gate is closed, every factor is one."""
    run = ompb.backtest(of_quantiles(), Quantiles(), target()[: CONTEXT + 1])
    wider = 1 + 0.2 * np.arange(HORIZON)[:, None]
    lower, upper = run.interval(0.8)
    stream = of_quantiles().stream(Quantiles())
    first = [stream.step(row) for row in target()[:CONTEXT]][-1]
    assert first is not None
    np.testing.assert_allclose((run.mean - lower)[0], BELOW * wider * np.ones(CHANNELS), rtol=1e-9)
    np.testing.assert_allclose((upper - run.mean)[0], FAR * wider * np.ones(CHANNELS), rtol=1e-9)
    np.testing.assert_allclose(first.quantile(0.9) - first.mean, FAR * wider * np.ones(CHANNELS), rtol=1e-9)
    between = first.quantile(0.75) - first.mean  # tracked, and not given: linear in z from the median
    share = gaussian_half_width(0.5) / gaussian_half_width(0.6)
    np.testing.assert_allclose(between, share * ABOVE * wider * np.ones(CHANNELS), rtol=1e-9)


def test_the_median_is_the_base_forecast_and_corrected_as_any() -> None:
    quantiles = ompb.backtest(of_quantiles(), Quantiles(), target())
    points = ompb.backtest(fit(), last_season, target())
    for name in ("mean", "base", "gate"):
        np.testing.assert_array_equal(getattr(quantiles, name), getattr(points, name))
    assert quantiles.certificate["value"].tolist() == points.certificate["value"].tolist()


def test_quantiles_that_are_off_are_brought_to_their_coverage() -> None:
    """Its own intervals are ten times too narrow, or too wide; on both sides the stream learns it."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(2000, CHANNELS))

    @dataclass(frozen=True)
    class Off(ompb.Forecaster):
        factor: float
        quantiles = (0.1, 0.5, 0.9)

        def forecast(self, query: ompb.Query) -> Floats:
            spread = self.factor * np.asarray([-1.28, 0.0, 1.28])
            return np.asarray(np.zeros((len(query.windows), HORIZON, CHANNELS, 1)) + spread)

    for factor in (0.1, 10.0):
        forecaster = Off(factor)
        cal = fit(forecaster, rows[:500], season=None)
        run = ompb.backtest(cal, forecaster, rows[500:])
        told = run.score()
        np.testing.assert_allclose(told.coverage, told.levels, atol=0.02)
        later = run.origins > 500
        lower, upper = (end[later] for end in run.interval(0.8))
        outcome = run.outcome[later]
        for share in (outcome < lower, outcome > upper):
            assert share[np.isfinite(outcome)].mean() == pytest.approx(0.1, abs=0.015)


def test_the_shape_is_followed_from_forecast_to_forecast() -> None:
    """Errors are ten times larger in every other block of rows, and the forecaster knows when: one level is enough."""
    rng = np.random.default_rng(1)
    wild = np.arange(3000) // 20 % 2 == 1
    rows = rng.normal(size=(3000, CHANNELS)) * np.where(wild, 5.0, 0.5)[:, None]

    class Knows(ompb.Forecaster):
        quantiles = (0.05, 0.5, 0.95)

        def forecast(self, query: ompb.Query) -> Floats:
            ahead = (query.origins[:, None] + np.arange(1, HORIZON + 1)) // 20 % 2 == 1
            sd = np.where(ahead, 3.0, 0.3)[..., None, None]
            return np.asarray(np.zeros((1, 1, CHANNELS, 1)) + sd * np.asarray([-1.645, 0.0, 1.645]))

    def blind(windows: Floats) -> Floats:
        return np.zeros((len(windows), HORIZON, CHANNELS))

    scores = {}
    for name, forecaster in (("knows", Knows()), ("blind", blind)):
        cal = fit(forecaster, rows[:1000], season=None, backbone_prior=1.0)
        scores[name] = ompb.backtest(cal, forecaster, rows[1000:]).score()
    assert scores["knows"].coverage[1] == pytest.approx(0.8, abs=0.02)
    assert scores["knows"].winkler80 < 0.8 * scores["blind"].winkler80
    assert scores["knows"].crps < 0.9 * scores["blind"].crps


def test_sparse_given_and_recorded_quantiles_are_those_that_are_asked_for() -> None:
    rows = target()[:120]
    stream, given = of_quantiles().stream(Quantiles()), of_quantiles().stream()
    asked = [stream.step(row) for row in rows]
    windows = np.stack([rows[max(0, at - CONTEXT + 1) : at + 1] for at in range(CONTEXT - 1, len(rows))])
    said = np.concatenate([np.full((CONTEXT - 1, HORIZON, CHANNELS, len(TAUS)), np.nan), stretched(windows)])
    handed = [given.step(row, base=None if at < CONTEXT - 1 else said[at]) for at, row in enumerate(rows)]
    assert all(same(a, b) for a, b in zip(asked, handed, strict=True))
    recorded = ompb.Recorded(said, quantiles=TAUS)
    assert "quantiles=(0.1, 0.5, 0.8, 0.9)" in repr(recorded)
    replayed, direct = (ompb.backtest(of_quantiles(), f, rows) for f in (recorded, Quantiles()))
    np.testing.assert_array_equal(replayed.multipliers, direct.multipliers)
    found = [forecast for forecast in asked if forecast is not None]
    np.testing.assert_allclose(direct.multipliers, np.stack([f.multipliers for f in found]), rtol=1e-12)
    sparse = ompb.backtest(of_quantiles(), EveryThird(), rows)
    assert sparse.origins.tolist() == [at for at in range(CONTEXT - 1, len(rows)) if at % 3 == 0]
    assert np.isfinite(sparse.interval(0.95)).all()


def test_a_stream_of_quantiles_goes_on_from_a_file(tmp_path: Path) -> None:
    cal = of_quantiles()
    whole, half = cal.stream(Quantiles()), cal.stream(Quantiles())
    for row in target()[:60]:
        half.step(row)
    cal.save(tmp_path / "cal")
    half.save(tmp_path / "stream")
    again = ompb.Stream.load(tmp_path / "stream", ompb.Calibrator.load(tmp_path / "cal"), Quantiles())
    expected = [whole.step(row) for row in target()[:90]][60:]
    assert all(same(a, again.step(row)) for a, row in zip(expected, target()[60:90], strict=True))
    assert saved(whole) == saved(again)


def test_late_labels_reach_the_intervals_of_quantiles() -> None:
    cal = fit(Quantiles(), patience=5)
    stream = cal.stream(Quantiles())
    for at, row in enumerate(target()[:80]):
        stream.step(row if at != 77 else [np.nan, row[1]])
    before = stream._state.online.intervals
    stream.observe(77, target()[77])
    after = stream._state.online.intervals
    assert isinstance(before, ConformalState)
    assert isinstance(after, ConformalState)
    assert (before.log_factor[0] != after.log_factor[0]).any()
    np.testing.assert_array_equal(before.log_factor[1], after.log_factor[1])


def test_quantiles_that_cross_or_coincide_still_give_intervals_that_nest() -> None:
    class Crossed(ompb.Forecaster):
        quantiles = (0.1, 0.3, 0.5, 0.7, 0.9)

        def forecast(self, query: ompb.Query) -> Floats:
            rng = np.random.default_rng(int(query.origins[0]))
            spread = rng.normal(size=5) * (query.origins[0] % 4 > 0)
            spread[2] = 0.0
            return np.asarray(last_season(query.windows)[..., None] + spread)

    stream = fit(Crossed()).stream(Crossed())
    for row in target()[:80]:
        forecast = stream.step(row)
        if forecast is not None:
            quantiles = np.stack([forecast.quantile(q) for q in np.linspace(0.01, 0.99, 99)])
            assert np.isfinite(quantiles).all()
            assert (np.diff(quantiles, axis=0) >= -1e-12).all()
            assert (np.ptp(forecast.interval(0.8), axis=0) > 0).all()


class Declares(ompb.Forecaster):
    def __init__(self, quantiles: Any) -> None:
        self.quantiles = quantiles

    def forecast(self, query: ompb.Query) -> Floats:
        return stretched(query.windows)


@pytest.mark.parametrize(
    "quantiles",
    [(0.5,), (0.1, 0.9), (0.5, 0.9), (0.1, 0.5), (0.9, 0.5, 0.1), (0.1, 0.5, 1.0), (0.1, 0.5, np.nan), "0.5", 0.5],
)
def test_quantiles_that_cannot_be_used_are_refused(quantiles: Any) -> None:
    with pytest.raises(ForecasterError, match=r"quantiles are .*accepted: increasing numbers inside \(0, 1\)"):
        fit(Declares(quantiles))


def test_answers_that_do_not_fit_the_quantiles_are_refused() -> None:
    with pytest.raises(ForecasterError, match=r"accepted: \(\d+, 4, 2, 3\) = \(n, horizon, C, quantiles\)"):
        fit(Declares((0.1, 0.5, 0.9)))
    with pytest.raises(ForecasterError, match=r"declares them: quantiles = \(0.1, 0.5, 0.9\)"):
        fit(stretched)
    stream = of_quantiles().stream()
    for row in target()[: CONTEXT - 1]:
        stream.step(row)
    before = saved(stream)
    with pytest.raises(ForecasterError, match=r"base= has shape \(4, 2\); accepted: \(4, 2, 4\)"):
        stream.step(target()[CONTEXT - 1], base=np.zeros((HORIZON, CHANNELS)))
    assert saved(stream) == before
    with pytest.raises(ForecasterError, match=r"gives the quantiles \(\), and the calibrator was fitted with \(0.1"):
        of_quantiles().stream(last_season)
    with pytest.raises(ShapeError, match=r"pass a non-empty array \(T, horizon, channels, 3\)"):
        ompb.Recorded(np.zeros((5, 4, 2)), quantiles=(0.1, 0.5, 0.9))
    with pytest.raises(ShapeError, match="or say which quantiles= they are"):
        ompb.Recorded(np.zeros((5, 4, 2, 3)))
