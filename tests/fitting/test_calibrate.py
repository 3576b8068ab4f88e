"""Series fitted together are those fitted alone: to the last bit where the forecaster rounds one window as many."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

import ompb
from ompb import archive
from ompb.core.members.memory import Memory
from ompb.errors import ForecasterError, InputError, NotFiniteError, OptionError, TooShortError
from ompb.offline import learning, rehearsal
from ompb.seam.query import Query
from ompb.types import Floats

CONTEXT, HORIZON, SEASON = 12, 4, 6
SIZES: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON}


def last_season(windows: NDArray[np.floating]) -> Floats:
    """Plain sums, the same for one window as for many."""
    return np.asarray(0.7 * windows[:, -SEASON : -SEASON + HORIZON] + 0.3 * windows[:, -1:])


def series(seed: int, rows: int = 260, channels: int = 1, period: float = SEASON) -> Floats:
    """A season, something slower that only a long memory knows, and noise that lasts."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(rows, channels))
    for row in range(1, rows):
        noise[row] += 0.7 * noise[row - 1]
    time = np.arange(rows)[:, None]
    strength = rng.uniform(0.5, 2.0, size=(3, channels))
    return np.asarray(
        50 * strength[0]
        + strength[1] * np.sin(2 * np.pi * time / period)
        + strength[2] * np.sin(2 * np.pi * time / 40)
        + 0.4 * noise
    )


def fleet(count: int = 6, **options: Any) -> dict[str, Floats]:
    return {f"meter {seed}": series(seed, **options) for seed in range(count)}


def assert_same(together: dict[Any, ompb.Calibrator], alone: dict[Any, ompb.Calibrator]) -> None:
    assert list(together) == list(alone)
    for one, cal in alone.items():
        assert archive.fingerprint(together[one]) == archive.fingerprint(cal), one


def spans(cals: dict[Any, ompb.Calibrator]) -> set[tuple[int, ...]]:
    """The lengths of memory that the series keep."""
    memories = [member for cal in cals.values() for member in cal.source.members if isinstance(member, Memory)]
    return {tuple(span.rows for span in memory.spans) for memory in memories}


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize(
    "options",
    [
        {"season": SEASON},
        {"season": None, "unseen": 0.4, "stride": 1, "draws": 3},
        {"season": SEASON, "unseen": 70, "every": 3, "gate": "shared", "profile": False},
        {"season": SEASON, "members": ("backbone", "head"), "discounts": (0.99, 0.999)},
    ],
)
def test_series_fitted_together_are_those_fitted_alone(channels: int, options: dict[str, Any]) -> None:
    sources = fleet(channels=channels)
    alone = {one: ompb.Calibrator.fit(last_season, rows, **SIZES, **options) for one, rows in sources.items()}
    assert_same(ompb.calibrate(last_season, sources, **SIZES, **options), alone)


def test_they_may_keep_different_spans_and_find_different_seasons() -> None:
    sources = fleet(8) | {"other": series(9, period=10), "short": series(10, rows=90), "long": series(11, rows=300)}
    together = ompb.calibrate(last_season, sources, **SIZES)
    assert len(spans(together)) > 1
    assert len({cal.season for cal in together.values()}) > 1
    assert_same(together, {one: ompb.Calibrator.fit(last_season, rows, **SIZES) for one, rows in sources.items()})


def test_sources_of_different_lengths_are_rehearsed_together_where_no_memory_can_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths = [600, 640, 641, 700, 579, 578, 577]  # of the last two the memory could tell
    sources = {str(rows): series(seed, rows=rows) for seed, rows in enumerate(lengths)}
    alone = {one: ompb.Calibrator.fit(last_season, rows, **SIZES, season=SEASON) for one, rows in sources.items()}
    assert len(spans(alone)) > 1
    together: list[list[int]] = []

    def counted(tails: list[rehearsal.Tail], *others: Any) -> Any:
        together.append(sorted(tail.rows for tail in tails))
        return rehearsal.rehearsed(tails, *others)

    monkeypatch.setattr(learning, "rehearsed", counted)
    assert_same(ompb.calibrate(last_season, sources, **SIZES, season=SEASON), alone)
    assert sorted(together) == [[577], [578], [579, 600, 640, 641, 700]]


def test_how_many_are_taken_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = fleet(7)
    whole = ompb.calibrate(last_season, sources, **SIZES, season=SEASON)
    monkeypatch.setattr(learning, "AT_ONCE", 2)
    monkeypatch.setattr(learning, "REHEARSED_AT_ONCE", 3)
    assert_same(ompb.calibrate(last_season, sources, **SIZES, season=SEASON), whole)


def test_missing_cells_of_each_series_are_its_own() -> None:
    """Some here and there, and gaps so long that windows have no outcome at all."""
    sources = fleet(5, channels=2)
    rng = np.random.default_rng(0)
    for number, rows in enumerate(sources.values()):
        rows[rng.uniform(size=rows.shape) < 0.03 * number] = np.nan
    sources["meter 3"][30:60] = np.nan
    sources["meter 4"][215:232] = np.nan
    together = ompb.calibrate(last_season, sources, **SIZES, season=SEASON)
    assert len({len(cal.source.windows) for cal in together.values()}) > 1
    alone = {one: ompb.Calibrator.fit(last_season, rows, **SIZES, season=SEASON) for one, rows in sources.items()}
    assert_same(together, alone)


class Sundays(ompb.Forecaster):
    """Speaks on some days of the week only, and knows covariates."""

    def speaks_at(self, origins: NDArray[np.int64], times: Any) -> NDArray[np.bool_]:
        del origins
        return np.asarray(times.astype("datetime64[D]").astype(np.int64) % 7 != 3)

    def forecast(self, query: Query) -> Floats:
        assert query.future is not None
        return last_season(query.windows) + query.future[..., :1]


def test_times_covariates_and_silence_of_each_series_are_its_own() -> None:
    sources = fleet(5)
    days = np.datetime64("2024-01-01") + np.arange(260)
    times = {one: days + 2 * (number % 2) for number, one in enumerate(sources)}
    times["meter 4"] = np.delete(days, 100)
    sources["meter 4"] = sources["meter 4"][:-1]
    # a day left out counts
    future = {one: np.random.default_rng(seed).normal(size=(260, 2)) for seed, one in enumerate(sources)}
    together = ompb.calibrate(Sundays(), sources, **SIZES, season=SEASON, times=times, future=future)
    alone = {
        one: ompb.Calibrator.fit(Sundays(), rows, **SIZES, season=SEASON, times=times[one], future=future[one])
        for one, rows in sources.items()
    }
    assert_same(together, alone)
    assert together["meter 0"].grid is not None


def test_a_forecaster_for_each_is_asked_about_its_own_windows_alone() -> None:
    """A ridge regression rounds by the number of windows: to the last bit, since it is asked as if it were alone."""
    sources = fleet(4)
    ridges = {one: ompb.Ridge.fit(rows, context=CONTEXT, horizon=HORIZON) for one, rows in sources.items()}
    alone = {one: ompb.Calibrator.fit(ridges[one], rows, **SIZES) for one, rows in sources.items()}
    assert_same(ompb.calibrate(ridges, sources, **SIZES), alone)


def test_one_forecaster_is_asked_about_many_series_at_once() -> None:
    sources = fleet(5)
    asked: list[int] = []
    weights = np.random.default_rng(0).normal(size=(CONTEXT, HORIZON)) / CONTEXT

    def linear(windows: Floats) -> Floats:
        asked.append(len(windows))
        return np.asarray(np.swapaxes(np.swapaxes(windows, 1, 2) @ weights, 1, 2))

    together = ompb.calibrate(linear, sources, **SIZES, season=SEASON, spans=(1,))
    calls, asked = len(asked), []
    for one, rows in sources.items():
        alone = ompb.Calibrator.fit(linear, rows, **SIZES, season=SEASON, spans=(1,))
        for found, expected in (
            (together[one].source.base_variance, alone.source.base_variance),
            (together[one].source.scales.tau_d, alone.source.scales.tau_d),
            (together[one].source.windows.residual, alone.source.windows.residual),
            (together[one].source.signals.record.maxima, alone.source.signals.record.maxima),
        ):
            np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    assert calls * 3 < len(asked)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_long_frame_holds_one_series_for_each_id(make: Any) -> None:
    """In any order of ids, each with its own first and last day."""
    days = np.datetime64("2024-01-01", "us") + np.arange(200) * np.timedelta64(1, "D")
    starts = {"b": 0, "a": 20, "c": 5}
    lines = [
        (one, days[row], float(series(seed)[row, 0]))
        for row in range(200)
        for seed, (one, start) in enumerate(starts.items())
        if start <= row < 180 + start
    ]
    ids, ds, y = zip(*lines, strict=True)
    frame: dict[str, Any] = {"unique_id": list(ids), "ds": np.asarray(ds), "y": np.asarray(y)}
    together = ompb.calibrate(last_season, make(frame), **SIZES, season=SEASON)
    assert list(together) == ["b", "c", "a"]  # as they first appear
    alone = {}
    for one in together:
        here = np.asarray(ids) == one
        part = make({"ds": frame["ds"][here], "y": frame["y"][here]})
        alone[one] = ompb.Calibrator.fit(last_season, part, **SIZES, season=SEASON)
    assert_same(together, alone)


def test_progress_counts_the_windows_of_all() -> None:
    told: list[tuple[int, int]] = []
    ompb.calibrate(
        last_season, fleet(3), **SIZES, season=SEASON, progress=lambda done, total: told.append((done, total))
    )
    learned = 195 - CONTEXT - HORIZON + 1  # of the first three quarters of 260 rows
    assert told[-1] == (3 * learned, 3 * learned)
    assert [done for done, _ in told] == sorted(done for done, _ in told)


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        (lambda rows: rows[: CONTEXT + HORIZON], TooShortError, "series 'meter 1': .*leaves"),
        (lambda rows: np.where(np.arange(260)[:, None] > 180, np.nan, rows), NotFiniteError, "series 'meter 1': rows"),
        (
            lambda rows: np.where(np.arange(260)[:, None] < 200, np.nan, rows),
            NotFiniteError,
            "series 'meter 1': no out",
        ),
        (lambda rows: np.where(np.arange(260)[:, None] == 3, np.inf, rows), NotFiniteError, "series 'meter 1': source"),
        (lambda rows: rows[:, 0], InputError, "series 'meter 1': source has shape"),
    ],
)
def test_an_error_names_the_series(change: Any, error: type[Exception], words: str) -> None:
    sources = fleet(3)
    sources["meter 1"] = change(sources["meter 1"])
    with pytest.raises(error, match=words):
        ompb.calibrate(last_season, sources, **SIZES, season=SEASON)


def test_an_answer_that_cannot_be_names_the_series() -> None:
    sources = fleet(3)
    sources["meter 2"] += 1000.0

    def odd(windows: Floats) -> Floats:
        said = last_season(windows)
        return np.where(said > 900.0, np.nan, said)

    with pytest.raises(ForecasterError, match="series 'meter 2': the forecaster returned nan"):
        ompb.calibrate(odd, sources, **SIZES, season=SEASON)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"sources": np.zeros((50, 1))}, InputError, "one series; accepted: a mapping"),
        ({"sources": pd.DataFrame({"a": np.zeros(50)})}, InputError, "one series; accepted: a mapping"),
        ({"sources": {}}, InputError, "at least one series"),
        ({"times": {"meter 9": []}}, OptionError, "times names series that are not here: 'meter 9'"),
        ({"future": np.zeros((9, 1))}, OptionError, "future is a ndarray; accepted: a mapping"),
        ({"forecaster": {"meter 0": last_season}}, OptionError, "forecaster lacks 'meter 1', 'meter 2'"),
        ({"forecaster": ompb.Recorded(np.zeros((300, HORIZON, 1)))}, ForecasterError, "belong to one series"),
        ({"context": 0}, OptionError, "context"),
    ],
)
def test_bad_arguments_are_told(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    given = {"forecaster": last_season, "sources": fleet(3), **SIZES, "season": SEASON} | arguments
    with pytest.raises(error, match=words):
        ompb.calibrate(given.pop("forecaster"), given.pop("sources"), **given)
