"""Forecasters that speak now and then, base forecasts that come with the rows, and sources read at every so many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ompb
from ompb.core.members.head import SourceHead
from ompb.core.posterior import Posterior
from ompb.datasets.synthetic import shifted_stream
from ompb.errors import ForecasterError, NotFiniteError, TooShortError

CONTEXT, HORIZON, SEASON, EVERY = 24, 6, 12, 12
Floats = NDArray[np.float64]
SOURCE, TARGET = shifted_stream("level", 5, 900, 400, 2, SEASON)
RIDGE = ompb.Ridge.fit(SOURCE, CONTEXT, HORIZON)
SIZES: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": SEASON}


class Daily(ompb.Forecaster):
    """Speaks every twelfth row only; fails if it is asked in between."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def speaks_at(self, origins: NDArray[np.int64], times: Any) -> NDArray[np.bool_]:
        del times
        return np.asarray(origins % EVERY == EVERY - 1)

    def forecast(self, query: ompb.Query) -> Any:
        assert (query.origins % EVERY == EVERY - 1).all()
        self.asked += query.origins.tolist()
        return RIDGE(query.windows)


def recorded(rows: Floats, every: int) -> Floats:
    """The ridge's forecasts by row, NaN where it is silent."""
    forecasts = np.full((len(rows), HORIZON, 2), np.nan)
    for origin in range(CONTEXT - 1, len(rows)):
        if origin % every == every - 1:
            forecasts[origin] = RIDGE(rows[None, origin + 1 - CONTEXT : origin + 1])[0]
    return forecasts


def test_a_daily_forecaster_is_asked_daily_and_learned_from_every_row() -> None:
    daily = Daily()
    cal = ompb.Calibrator.fit(daily, SOURCE, **SIZES)
    assert daily.asked
    stream = cal.stream(daily)
    issued = [f for f in (stream.step(row) for row in TARGET) if f is not None]
    assert [f.origin for f in issued] == list(range(CONTEXT - 1, len(TARGET), EVERY))
    run = ompb.backtest(cal, daily, TARGET)
    np.testing.assert_array_equal(run.origins, [f.origin for f in issued])
    np.testing.assert_allclose(run.mean, [f.mean for f in issued], rtol=1e-9)
    complete = np.isfinite(run.outcome).all(axis=(1, 2))
    error = np.abs(run.mean - run.outcome)[complete].mean()
    assert error < 0.8 * np.abs(run.base - run.outcome)[complete].mean()
    assert run.realised.outcomes == len(issued) - 1  # non-overlapping as they are: all but the last have matured


@pytest.mark.parametrize("every", [1, 5, 12])
def test_records_and_forecasters_say_the_same(every: int, tmp_path: Path) -> None:
    """A record with silent origins, base forecasts with the rows, and a forecaster that speaks as often."""

    class Now(ompb.Forecaster):
        def speaks_at(self, origins: NDArray[np.int64], times: Any) -> NDArray[np.bool_]:
            del times
            return np.asarray(origins % every == every - 1)

        def forecast(self, query: ompb.Query) -> Any:
            return np.concatenate([RIDGE(window[None]) for window in query.windows])

    cal = ompb.Calibrator.fit(Now(), SOURCE, **SIZES)
    assert (
        ompb.Calibrator.fit(ompb.Recorded(recorded(SOURCE, every)), SOURCE, **SIZES).source.base_variance.tobytes()
        == cal.source.base_variance.tobytes()
    )
    said = recorded(TARGET, every)
    streams = cal.stream(Now()), cal.stream(ompb.Recorded(said)), cal.stream()
    for row, values in enumerate(TARGET[:200]):
        base = None if np.isnan(said[row]).all() else said[row]
        one, two, three = streams[0].step(values), streams[1].step(values), streams[2].step(values, base=base)
        assert (one is None) == (two is None) == (three is None) == (base is None)
        if one is not None and two is not None and three is not None:
            assert one.mean.tobytes() == two.mean.tobytes() == three.mean.tobytes()
            assert one.certificate == two.certificate == three.certificate
    for number, stream in enumerate(streams):
        stream.save(tmp_path / str(number))
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes() == (tmp_path / "2").read_bytes()


def test_a_sparse_head_is_the_batch_solution() -> None:
    """Discounted ridge towards the source head of exactly the labels of issued forecasts; time fades the rest, too."""
    discount = 0.98
    daily = Daily()
    cal = ompb.Calibrator.fit(daily, SOURCE, discounts=(discount,), guard=None, **SIZES)
    source = next(member for member in cal.source.members if isinstance(member, SourceHead))
    stream, rows = cal.stream(daily), TARGET[:60]
    phi, base = {}, {}
    for row, values in enumerate(rows):
        forecast = stream.step(values)
        if forecast is not None:
            window = (rows[row + 1 - CONTEXT : row + 1] - cal.centre) / cal.scale
            base[row] = ((forecast.base - cal.centre) / cal.scale).T
            view = cal.source.features.view(window.T[:, None].copy(), base[row][:, None])
            phi[row] = (view.features @ source.whitening)[:, 0]
    found = next(state for state in stream._state.online.members if isinstance(state, Posterior)).mean
    scaled = ((rows - cal.centre) / cal.scale).T
    first, newest = min(phi), len(rows) - 1
    for lane in range(2):
        for lead in range(1, HORIZON + 1):
            word = source.weights[lane, lead - 1]
            last = newest - lead
            weight = discount ** (last - first + 1) + discount ** (last - first) * (1 - discount**64)
            matrix, right = weight * np.eye(len(word)), weight * word
            for origin in (k for k in phi if k <= last):
                one, fade = phi[origin][lane], discount ** (last - origin)
                matrix += fade * np.outer(one, one)
                right += fade * one * (scaled[lane, origin + lead] - base[origin][lane, lead - 1])
            np.testing.assert_allclose(found[lane, 0, lead - 1], np.linalg.solve(matrix, right), atol=1e-9)


@pytest.mark.parametrize(
    ("base", "words"),
    [
        (np.zeros((HORIZON + 1, 2)), "shape"),
        (np.zeros(HORIZON), "shape"),
        (np.full((HORIZON, 2), np.nan), "finite"),
        (np.full((HORIZON, 2), 1e160), "source standard deviations"),
        ([["a", "b"]] * HORIZON, "dtype"),
        (np.zeros((HORIZON, 2), dtype=complex), "dtype"),
        (np.zeros((HORIZON, 2, 3)), "quantiles"),
    ],
)
def test_a_base_forecast_that_is_none_is_refused(base: Any, words: str, tmp_path: Path) -> None:
    stream = ompb.Calibrator.fit(RIDGE, SOURCE, **SIZES).stream()
    for row in TARGET[:40]:
        stream.step(row, base=np.zeros((HORIZON, 2)))
    stream.save(tmp_path / "before")
    with pytest.raises(ForecasterError, match=words):
        stream.step(TARGET[40], base=base)
    stream.save(tmp_path / "after")
    assert (tmp_path / "before").read_bytes() == (tmp_path / "after").read_bytes()


def test_a_stream_without_a_forecaster_says_what_it_needs() -> None:
    stream = ompb.Calibrator.fit(RIDGE, SOURCE, **SIZES).stream()
    for row in TARGET[: CONTEXT - 1]:
        assert stream.step(row) is None
    with pytest.raises(ForecasterError, match="pass base= with each row"):
        stream.step(TARGET[CONTEXT - 1])


def test_a_record_of_the_source_is_not_one_of_the_stream() -> None:
    record = ompb.Recorded(recorded(SOURCE, 1))
    cal = ompb.Calibrator.fit(record, SOURCE, **SIZES)
    for refused in (record, ompb.Recorded(recorded(SOURCE, 1))):
        with pytest.raises(ForecasterError, match="those of the source"):
            cal.stream(refused)
        with pytest.raises(ForecasterError, match="those of the source"):
            ompb.backtest(cal, refused, TARGET)
    assert cal.stream(ompb.Recorded(recorded(TARGET, 1))) is not None


def test_a_record_with_times_serves_both() -> None:
    whole = np.concatenate([SOURCE, TARGET])
    days = np.datetime64("2020-01-01", "D") + np.arange(len(whole))
    record = ompb.Recorded(recorded(whole, 1), times=days)
    cal = ompb.Calibrator.fit(record, SOURCE, times=days[:900], **SIZES)
    start = 900 - CONTEXT + 1
    run = ompb.backtest(cal, record, whole[start:], times=days[start:])
    np.testing.assert_array_equal(run.base, recorded(whole, 1)[900:])
    with pytest.raises(ForecasterError, match="time"):
        ompb.backtest(cal, record, whole[start:])


def test_thinning_asks_for_fewer_windows_and_learns_nearly_the_same() -> None:
    asked: list[int] = []

    def counting(windows: Floats) -> Floats:
        asked.append(len(windows))
        return np.asarray(RIDGE(windows))

    long = shifted_stream("none", 6, 6000, 10, 2, SEASON)[0]
    every = ompb.Calibrator.fit(counting, long, **SIZES)
    all_windows = sum(asked)
    asked.clear()
    thinned = ompb.Calibrator.fit(counting, long, every=5, **SIZES)
    assert sum(asked) < 0.5 * all_windows
    np.testing.assert_allclose(thinned.source.base_variance, every.source.base_variance, rtol=0.1)
    assert thinned.source.scales.tau_y == pytest.approx(every.source.scales.tau_y, rel=0.1)


def test_forecasters_that_say_nothing_of_the_source_are_refused() -> None:
    class Silent(Daily):
        def speaks_at(self, origins: NDArray[np.int64], times: Any) -> NDArray[np.bool_]:
            del times
            return np.zeros(len(origins), dtype=bool)

    with pytest.raises(TooShortError, match="speaks at none"):
        ompb.Calibrator.fit(Silent(), SOURCE, **SIZES)

    class Early(Daily):
        def speaks_at(self, origins: NDArray[np.int64], times: Any) -> NDArray[np.bool_]:
            del times
            return np.asarray((origins % EVERY == EVERY - 1) & (origins < 500))

    with pytest.raises(NotFiniteError, match="kept for the certificate"):
        ompb.Calibrator.fit(Early(), SOURCE, **SIZES)
    cal = ompb.Calibrator.fit(Daily(), SOURCE, **SIZES)
    with pytest.raises(TooShortError, match="speaks at none of the rows"):
        ompb.backtest(cal, Silent(), TARGET)
