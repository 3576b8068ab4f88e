"""Forecasters that speak at some rows only, base forecasts that are handed in, and recorded ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from small_streams import (
    CHANNELS,
    CONTEXT,
    HORIZON,
    SEASON,
    calibrator,
    finite,
    fit,
    last_season,
    same,
    saved,
    source,
    target,
)

import ompb
from ompb.core.members.head import Heads, SourceHead
from ompb.core.posterior import REFILL_EVERY, Posterior
from ompb.datasets.synthetic import shifted_stream
from ompb.errors import ForecasterError, NotFiniteError
from ompb.offline.learning import SPREAD, evenly, one_of_every
from ompb.offline.rehearsal import REHEARSED
from ompb.rows.windows import sliding
from ompb.seam.query import Query
from ompb.types import Floats

EVERY = SEASON  # rows from one forecast to the next


class Daily(ompb.Forecaster):
    """Speaks every so many rows; counts the windows it is asked."""

    def __init__(self, every: int = EVERY) -> None:
        self.every, self.asked = every, 0

    def speaks_at(self, origins: NDArray[np.int64], times: Any) -> NDArray[np.bool_]:
        del times
        return np.asarray(origins % self.every == 0)

    def forecast(self, query: Query) -> Floats:
        assert (query.origins % self.every == 0).all()
        self.asked += len(query.windows)
        return last_season(query.windows)


def recorded(rows: Floats, every: int = 1, **more: Any) -> ompb.Recorded:
    """What `last_season` says of every window, NaN where it is silent."""
    said = np.full((len(rows), HORIZON, CHANNELS), np.nan)
    said[CONTEXT - 1 :] = last_season(sliding(rows, CONTEXT))
    said[np.arange(len(rows)) % every != 0] = np.nan
    return ompb.Recorded(said, **more)


def test_a_forecaster_may_speak_now_and_then() -> None:
    daily = Daily()
    cal = fit(daily)
    learning_rows = 225
    assert daily.asked <= 2 * len(source()) // EVERY  # to learn from its windows, and to rehearse the last ones
    assert cal.source.base_variance.tobytes() != calibrator().source.base_variance.tobytes()
    stream = cal.stream(daily)
    issued = [stream.step(row) for row in target()[:learning_rows]]
    origins = [forecast.origin for forecast in issued if forecast is not None]
    assert origins == list(range(EVERY, learning_rows, EVERY))
    assert all(forecast is None or finite(forecast) for forecast in issued)
    assert stream.rows == learning_rows
    moved = [forecast for forecast in issued if forecast is not None and (forecast.gate > 0).any()]
    assert moved  # it learns


class Retired(Daily):
    """Has nothing to say of the last rows."""

    def speaks_at(self, origins: NDArray[np.int64], times: Any) -> NDArray[np.bool_]:
        return np.asarray(super().speaks_at(origins, times) & (origins < len(source()) // 2))


def test_a_forecaster_that_is_silent_where_the_certificate_is_read_is_refused() -> None:
    with pytest.raises(NotFiniteError, match="kept for the certificate, have no forecast whose outcome is known"):
        fit(Retired())


def test_silence_by_speaks_at_by_record_and_by_hand_are_one() -> None:
    """The same stream, whoever says that there is no forecast at a row."""
    cal = fit(Daily())
    spoken, noted, handed = cal.stream(Daily()), cal.stream(recorded(target(), EVERY)), cal.stream()
    for at, row in enumerate(target()[:150]):
        window = target()[at + 1 - CONTEXT : at + 1] if at + 1 >= CONTEXT else None
        base = None if window is None or at % EVERY else last_season(window[None])[0]
        forecast = spoken.step(row)
        assert same(forecast, noted.step(row))
        assert same(forecast, handed.step(row, base=base))
    assert saved(spoken) == saved(noted) == saved(handed)
    run = ompb.backtest(cal, Daily(), target()[:150])
    assert run.origins.tolist() == list(range(EVERY, 150, EVERY))
    assert run.realised == spoken.realised_risk()


def test_a_backtest_of_one_who_never_speaks_says_so() -> None:
    with pytest.raises(ompb.errors.TooShortError, match="speaks at none of the rows"):
        ompb.backtest(calibrator(), Daily(10_000), target()[1:100])
    with pytest.raises(ompb.errors.TooShortError, match="speaks at none"):
        fit(Daily(10_000))


def test_heads_that_learn_now_and_then_are_the_batch_solution() -> None:
    """Discounted ridge towards the source's word over the origins that spoke, solved afresh."""
    options: dict[str, Any] = {"discounts": (0.95,), "anchor": 20.0, "guard": None}
    cal = fit(Daily(), **options)
    member = next(m for m in cal.source.members if isinstance(m, SourceHead))
    heads = next(v for v in cal.online.mixture.members if isinstance(v, Heads))
    stream, rows, discount = cal.stream(Daily()), target()[:140], 0.95
    phi, said = {}, {}
    for at, row in enumerate(rows):
        if stream.step(row) is None:
            continue
        window = cal.scaler.standardise(rows[at + 1 - CONTEXT : at + 1])
        base = cal.scaler.standardise(last_season(rows[at + 1 - CONTEXT : at + 1][None])[0])
        phi[at] = heads.see(cal.online.features.view(window.T[:, None].copy(), base.T[:, None].copy()))[:, 0]
        said[at] = base.T
    found = next(state for state in stream._state.online.members if isinstance(state, Posterior))
    first, newest, size = min(phi), len(rows) - 1, member.weights.shape[2]
    assert newest - first > REFILL_EVERY
    for lane, lead in np.ndindex(CHANNELS, HORIZON):
        word, last = member.weights[lane, lead], newest - lead - 1
        precision = discount ** (last - first + 1) * np.eye(size)
        right = precision @ word
        for origin in range(first, last + 1):
            weight = discount ** (last - origin)
            if origin in phi:
                outcome = cal.scaler.standardise(rows[origin + 1 + lead])[lane]
                precision += weight * np.outer(phi[origin][lane], phi[origin][lane])
                right += weight * phi[origin][lane] * (outcome - said[origin][lane, lead])
            if (origin - first) % REFILL_EVERY == 0:
                share = weight * (1 - discount**REFILL_EVERY)
                precision, right = precision + share * np.eye(size), right + share * word
        np.testing.assert_allclose(found.mean[lane, 0, lead], np.linalg.solve(precision, right), rtol=0, atol=1e-9)


def running(rows: int = 40) -> ompb.Stream:
    stream = calibrator().stream()
    for at, row in enumerate(target()[:rows]):
        base = last_season(target()[None, at + 1 - CONTEXT : at + 1])[0] if at + 1 >= CONTEXT else None
        stream.step(row, base=base)
    return stream


def test_a_base_forecast_may_be_handed_in() -> None:
    asked = calibrator().stream(last_season)
    for row in target()[:40]:
        asked.step(row)
    assert saved(running()) == saved(asked)
    window = target()[None, 41 - CONTEXT : 41]
    given = last_season(window)[0]
    expected = asked.step(target()[40])
    for base in (given, given.tolist(), np.asfortranarray(given)):
        stream = running()
        assert same(stream.step(target()[40], base=base), expected)


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (np.zeros((HORIZON + 1, CHANNELS)), r"shape \(5, 2\); accepted: \(4, 2\) = \(horizon, C\)"),
        (np.zeros((HORIZON, CHANNELS + 1)), r"shape \(4, 3\); accepted: \(4, 2\)"),
        (np.zeros(HORIZON), r"shape \(4,\); accepted: \(4, 2\)"),
        (np.zeros((1, HORIZON, CHANNELS)), r"shape \(1, 4, 2\); accepted: \(4, 2\)"),
        (np.full((HORIZON, CHANNELS), np.nan), "nan at lead 1, channel 0, for origin 40; every value must be finite"),
        (np.full((HORIZON, CHANNELS), np.inf), "inf at lead 1, channel 0, for origin 40; every value must be finite"),
        (
            np.full((HORIZON, CHANNELS), 1e160),
            r"1e\+160 at lead 1, channel 0, for origin 40; every value must be",
        ),
        (np.full((HORIZON, CHANNELS), "12"), "values of dtype <U2; accepted: real numbers. Pass floats"),
        (np.zeros((HORIZON, CHANNELS)) > 0, "values of dtype bool"),
        (np.zeros((HORIZON, CHANNELS)) + 1j, "values of dtype complex128"),
        ("words", "values of dtype <U5"),
        (7.0, r"shape \(\); accepted: \(4, 2\)"),
        ([[1.0], [1.0, 2.0]], "a list that is no array of numbers"),
    ],
    ids=lambda base: f"{type(base).__name__} {np.shape(base) if isinstance(base, np.ndarray) else base}",
)
def test_a_base_forecast_that_cannot_be_used_changes_nothing(base: Any, words: str) -> None:
    stream = running()
    before = saved(stream)
    with pytest.raises(ForecasterError, match=f"^base= has {words}"):
        stream.step(target()[40], base=base)
    assert saved(stream) == before


def test_a_stream_without_forecaster_wants_base_forecasts() -> None:
    stream = running()
    before = saved(stream)
    with pytest.raises(ForecasterError, match="pass base="):
        stream.step(target()[40])
    assert saved(stream) == before


@pytest.mark.parametrize(
    "said",
    [np.ones(3, dtype=bool), np.ones(1), "yes", None, [True, False]],
    ids=["long", "floats", "text", "none", "two"],
)
def test_speaks_at_is_checked(said: Any) -> None:
    class Vague(Daily):
        def speaks_at(self, origins: NDArray[np.int64], times: Any) -> Any:
            del origins, times
            return said

    stream = calibrator().stream(Vague())
    for row in target()[: CONTEXT - 1]:
        stream.step(row)
    before = saved(stream)
    with pytest.raises(ForecasterError, match="speaks_at returned"):
        stream.step(target()[CONTEXT - 1])
    assert saved(stream) == before


@pytest.mark.parametrize("thinned", [7, 2 * SEASON])
def test_a_thinned_fit_asks_less_and_learns_much_the_same(thinned: int) -> None:
    """So many learning windows, at all phases; a stream over the last rows is rehearsed.

    The certificate's windows are read as ever, and beside them as many as say how far memory is usually off.
    """
    long, rows = shifted_stream("level", 1, 4000, 300, CHANNELS, SEASON)
    counts, noise, errors = [], [], []
    for every in (1, thinned):
        forecaster = Daily(1)
        cal = fit(forecaster, long, every=every)
        counts.append(forecaster.asked)
        noise.append(next(m for m in cal.source.members if isinstance(m, SourceHead)).noise)
        run = ompb.backtest(cal, last_season, rows)
        errors.append(np.nanmean(np.abs(run.mean - run.outcome)))
    learning, unlearned = 3000 - CONTEXT - HORIZON + 1, 1000 - CONTEXT - HORIZON + 1
    certificate = range(0, unlearned, HORIZON)
    assert len(cal.source.windows) == len(certificate)
    spread = evenly(one_of_every(1, unlearned)), evenly(one_of_every(thinned, unlearned))
    assert [len(places) for places in spread] == [SPREAD, math.ceil(unlearned / thinned)]
    assert counts[0] == learning + len({*certificate, *spread[0].tolist()}) + REHEARSED
    asked = one_of_every(thinned, learning)
    assert counts[1] == len(asked) + len({*certificate, *spread[1].tolist()}) + REHEARSED
    assert len(asked) < 1.1 * learning / thinned
    np.testing.assert_allclose(noise[1], noise[0], rtol=0.15 if thinned == 7 else 0.4)
    assert errors[1] == pytest.approx(errors[0], rel=0.02)


def test_a_record_of_the_source_is_not_used_on_the_stream() -> None:
    record = recorded(source())
    cal = fit(record)
    assert cal.source.base_variance.tobytes() == calibrator().source.base_variance.tobytes()
    for same_record in (record, recorded(source())):
        with pytest.raises(ForecasterError, match="those of the source"):
            cal.stream(same_record)
        with pytest.raises(ForecasterError, match="those of the source"):
            ompb.backtest(cal, same_record, target()[:60])
    assert cal.stream(recorded(target())).step(target()[0]) is None


def test_a_record_with_times_serves_source_and_stream() -> None:
    rows, times = np.concatenate([source(), target()]), np.arange(len(source()) + len(target()))
    record, split = recorded(rows, times=times), len(source())
    cal = fit(record, times=times[:split])
    stream, plain = cal.stream(record), fit(times=times[:split]).stream(last_season)
    for at, row in enumerate(target()[:60]):
        found, expected = stream.step(row, at=split + at), plain.step(row, at=split + at)
        if at >= CONTEXT:  # from there on both windows lie in the stream
            assert found is not None
            assert expected is not None
            np.testing.assert_array_equal(found.base, expected.base)
    untimed = cal.stream(record)
    for row in target()[: CONTEXT - 1]:
        untimed.step(row)
    with pytest.raises(ForecasterError, match="recorded by time"):
        untimed.step(target()[CONTEXT - 1])


def test_a_record_that_ends_falls_silent() -> None:
    stream = calibrator().stream(recorded(target()[:50]))
    issued = [stream.step(row) for row in target()[:60]]
    assert all(forecast is None for forecast in issued[50:])
    assert issued[49] is not None
