"""Streams over tables of rows, and their results as arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from ompb.calibrator import Calibrator, Progress
from ompb.episodes import Episode, episodes
from ompb.errors import OptionError, TooShortError
from ompb.fleet.following import Followed, follow
from ompb.floor.cards import card, facts, some, table
from ompb.floor.times import Times, shown
from ompb.live.asking import require_fit
from ompb.live.likeness import shape_of
from ompb.live.outgoing import TRACKED
from ompb.metrics.breakdown import Breakdown, breakdown
from ompb.metrics.point import known_mean
from ompb.metrics.score import Score, score
from ompb.rows.frames import BACKENDS
from ompb.rows.inputs import as_future, as_rows_of
from ompb.rows.windows import Origins, outcomes_at
from ompb.seam.by_id import for_each
from ompb.seam.given import Given, each_given
from ompb.seam.query import AnyForecaster, as_forecaster
from ompb.seam.sources import Source, calling, in_parts
from ompb.types import Certificate, Floats, RealisedRisk, ends, half_widths

if TYPE_CHECKING:
    from ompb.plots.look import Picture

# Lanes that are followed at once: enough to share the cost of a row, few enough for what they issue to fit.
AT_ONCE = 128
LISTED = 12  # channels that a notebook lists
BARE, OMPB = "bare forecaster", "ompb"  # what tables and pictures call the two forecasts of a run


@dataclass(frozen=True, eq=False)
class Run:
    """A finished backtest of n forecasts in the user's units; row r of the stream is the outcome's row r."""

    calibrator: Calibrator
    rows: Floats  # those streamed, (T, C); NaN = missing
    times: Times | None  # of the rows, (T,); None if nobody gave any
    hidden: NDArray[np.bool_]  # cells that were not believed and count as missing, (T, C)
    origins: NDArray[np.int64]  # (n,)
    mean: Floats  # (n, H, C)
    base: Floats  # (n, H, C)
    outcome: Floats  # (n, H, C); NaN where unknown
    gate: Floats  # (n, C)
    sd: Floats  # (n, H, C)
    levels: Floats  # (levels,)
    multipliers: Floats  # (n, 2, levels, H, C), or H = 1 for all leads
    expected_error: Floats  # mean absolute error over the leads that was expected: (n, C)
    certificate: dict[str, Floats]  # every numeric term by name, each (n,); empty without certificate
    last_certificate: Certificate | None  # that of the newest forecast, whole
    realised: RealisedRisk
    warnings: tuple[Episode, ...]  # in time order

    def __repr__(self) -> str:
        hidden = f", {int(self.hidden.sum())} cells not believed" if self.hidden.any() else ""
        return f"Run({len(self.origins)} forecasts over {len(self.rows)} rows{hidden}, of {self.calibrator!r})"

    def _repr_html_(self) -> str:
        stamps = self.stamps
        lines = {
            "rows": f"{len(self.rows)}, from {shown(stamps[0])} to {shown(stamps[-1])}",
            "channels": some(self.names),
            "not believed": f"{int(self.hidden.sum())} cells" if self.hidden.any() else "",
            "last certificate": "" if self.last_certificate is None else f"{self.last_certificate.value:.3f}",
            "episodes of warnings": len(self.warnings),
            "errors are in": "source standard deviations",
        }
        errors = [
            known_mean(np.abs(forecast - self.outcome) / self.scale, axis=(0, 1)).tolist()
            for forecast in (self.base, self.mean)
        ]
        scores = [
            (name, f"{bare:.3f}", f"{ours:.3f}", f"{gate:.2f}")
            for name, bare, ours, gate in zip(self.names, *errors, self.gate.mean(axis=0).tolist(), strict=True)
        ]
        head = ("channel", f"MAE, {BARE}", f"MAE, {OMPB}", "mean gate")
        return card(f"Run of {len(self.origins)} forecasts", facts(lines), table(head, scores[:LISTED]))

    @property
    def names(self) -> tuple[str, ...]:
        """Of the channels."""
        return self.calibrator.names

    @property
    def scale(self) -> Floats:
        """Source standard deviation per channel, (C,): errors divided by it are standardised."""
        return self.calibrator.scale

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Lower and upper end, each (n, H, C), of the central interval of that level, within the bounds."""
        half = half_widths(level, self.levels, self.multipliers)
        return ends(self.mean, self.sd, half, self.calibrator.bounds)

    @overload
    def score(self) -> Score: ...
    @overload
    def score(self, by: Literal["channel", "lead", "month"]) -> Breakdown: ...
    def score(self, by: Literal["channel", "lead", "month"] | None = None) -> Score | Breakdown:
        """Errors, intervals and predictive law of all forecasts against the outcomes that are known.

        ``by`` takes them apart: by channel, by lead, or by the month that the outcome lies in, if rows have dates.
        """
        if by is None:
            return score(self.mean, self.outcome, self.interval, self.scale)
        names, group = self._groups(by)
        return breakdown(by, names, group, (self.mean, self.base), self.outcome, self.interval, self.scale)

    def _groups(self, by: str) -> tuple[tuple[str, ...], NDArray[np.int64]]:
        """Names of the groups, and the place among them of each cell (n, H, C)."""
        horizon = self.mean.shape[1]
        if by == "channel":
            return self.names, np.arange(len(self.names))
        if by == "lead":
            return tuple(map(str, range(1, horizon + 1))), np.arange(horizon)[:, None]
        if by != "month":
            raise OptionError(f"by = {by!r}; accepted: 'channel', 'lead' or 'month'.")
        if self.stamps.dtype.kind != "M":
            raise OptionError("by = 'month' needs rows with dates; give times= to fit and backtest.")
        names = np.unique(self.stamps.astype("datetime64[M]"))
        months = np.searchsorted(names, self.stamps_ahead.astype("datetime64[M]"))
        group = np.minimum(months, len(names) - 1)  # beyond the last row no outcome is known
        return tuple(names.astype(str).tolist()), group[..., None]

    def plot(self, *parts: Literal["errors", "certificate", "gate", "forecast"]) -> Picture:
        """A picture of the run, one panel for each part, all of them if none is named.

        ``errors`` is the rolling error beside the bare forecaster's, ``certificate`` its terms and the loss that
        followed, ``gate`` that of each channel, ``forecast`` the newest one whose outcome is known.
        It is a matplotlib figure: ``run.plot("errors").savefig("errors.png")``. Needs the extra ``report``.
        """
        from ompb.plots.course import run_picture  # the layer above

        return run_picture(self, parts)

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "polars") -> Any:
        """One line per (channel, origin, lead), as a frame of pandas, polars or pyarrow.

        ``ds`` and ``cutoff`` are times if there are any, else row numbers.
        """
        if backend not in BACKENDS or find_spec(backend) is None:
            raise OptionError(f"backend = {backend!r} is not here; accepted, if installed: {', '.join(BACKENDS)}.")
        import narwhals as nw  # frames only: keeps `import ompb` light

        return nw.from_dict(dict(self.columns()), backend=backend).to_native()

    def columns(self) -> Iterator[tuple[str, NDArray[Any]]]:
        """The columns of `frame` by name, flat, one after the other: together they are larger than the run."""
        count, horizon, channels = self.mean.shape
        shape = (channels, count, horizon)

        def tall(values: Floats) -> Any:
            return np.ascontiguousarray(np.moveaxis(values, -1, 0)).ravel()

        def per_origin(values: Any) -> Any:
            return np.broadcast_to(np.asarray(values)[None, :, None], shape).ravel()

        yield "unique_id", np.repeat(np.asarray(self.names), count * horizon)
        yield "ds", np.broadcast_to(self.stamps_ahead, shape).ravel()
        yield "cutoff", per_origin(self.stamps[self.origins])
        yield "lead", np.broadcast_to(np.arange(1, horizon + 1), shape).ravel()
        yield "y", tall(self.outcome)
        yield "base", tall(self.base)
        yield "y_hat", tall(self.mean)
        for percent in (80, 95):
            for name, end in zip(("lower", "upper"), self.interval(percent / 100), strict=True):
                yield f"{name}_{percent}", tall(end)
        yield "gate", np.repeat(self.gate.T.ravel(), horizon)
        if self.certificate:
            yield "certificate", per_origin(self.certificate["value"])

    @property
    def stamps(self) -> Times:
        """Of the rows, (T,): times if there are any, else row numbers."""
        return np.arange(len(self.rows)) if self.times is None else self.times

    @property
    def stamps_ahead(self) -> NDArray[Any]:
        """Of the rows that each forecast speaks of, (n, H), beyond the last row, too."""
        horizon = self.mean.shape[1]
        every: NDArray[Any] = np.arange(len(self.rows) + horizon)
        if self.times is not None and self.calibrator.grid is not None:
            every = np.concatenate([self.times, self.calibrator.grid.after(self.times[-1], horizon)])
        return every[self.origins[:, None] + np.arange(1, horizon + 1)]

    @property
    def smoothing(self) -> int:
        """Rows to average a curve over: a season, or a horizon where there is no season."""
        return self.calibrator.season or self.calibrator.horizon


@overload
def backtest(
    calibrators: Calibrator,
    forecaster: AnyForecaster | Mapping[Any, AnyForecaster],
    rows: Mapping[Any, Any],
    *,
    times: Mapping[Any, Any] | None = None,
    future: Mapping[Any, Any] | None = None,
    progress: Progress | None = None,
) -> dict[Any, Run]: ...


@overload
def backtest(
    calibrators: Mapping[Any, Calibrator],
    forecaster: AnyForecaster | Mapping[Any, AnyForecaster],
    rows: Any,
    *,
    times: Mapping[Any, Any] | None = None,
    future: Mapping[Any, Any] | None = None,
    progress: Progress | None = None,
) -> dict[Any, Run]: ...


@overload
def backtest(
    calibrators: Calibrator,
    forecaster: AnyForecaster,
    rows: Any,
    *,
    times: Any = None,
    future: Any = None,
    progress: Progress | None = None,
) -> Run: ...


def backtest(
    calibrators: Any,
    forecaster: Any,
    rows: Any,
    *,
    times: Any = None,
    future: Any = None,
    progress: Progress | None = None,
) -> Run | dict[Any, Run]:
    """Step a fresh stream through rows (T, C), an array or frame; base forecasts are asked for in blocks.

    ``times`` are those of the rows, if a frame does not bring them; ``future`` (T + horizon, K) are covariates known
    ahead. ``progress`` is called with (rows done, rows in all).

    Many series: ``rows`` is a mapping from id, or a long frame (unique_id, ds, y) with calibrators by id. There is a
    calibrator for each id or one for all, and so with the forecaster; ``times`` and ``future`` are by id. Those of one
    shape are stepped at once, each as it would be alone. Returns a `Run` for each id.
    """
    if not isinstance(rows, Mapping) and not isinstance(calibrators, Mapping):
        given = Given(as_forecaster(forecaster), rows, times, future)
        return follow_each([calibrators], [given], progress)[0]
    every = each_given(forecaster, rows, times, future, "rows")
    is_shared = not isinstance(calibrators, Mapping)
    cals = dict.fromkeys(every, calibrators) if is_shared else for_each("calibrators", calibrators, every)
    return dict(zip(every, follow_each([*cals.values()], [*every.values()], progress), strict=True))


@dataclass(frozen=True, eq=False)
class _Series:
    """A series that can be followed."""

    calibrator: Calibrator
    source: Source  # what no stream believes is in no window of it
    values: Floats  # as they came, (T, C)
    spoken: Origins  # rows with a window at which the forecaster speaks

    @classmethod
    def of(cls, cal: Calibrator, given: Given) -> _Series:
        """Read and checked."""
        require_fit(given.forecaster, cal)
        rows = as_rows_of(given.rows, "rows", cal.names, given.times, cal.grid)
        count = len(rows.values)
        if count < cal.context:
            raise TooShortError(f"rows has {count} rows; at least {cal.context} (context) make one forecast.")
        ahead = None if given.future is None else as_future(given.future, count + cal.horizon, "future")
        believed = np.where(cal.scaler.near(rows.values), rows.values, np.nan)
        # a stream has times only if its calibrator has
        times = rows.times if cal.grid is not None else None
        measured = dataclasses.replace(rows, values=believed, times=times)
        source = Source(given.forecaster, measured, ahead, cal.scaler, cal.context, cal.horizon, given.called)
        spoken = source.origins(cal.context - 1, count)
        if not spoken.size:
            raise TooShortError("the forecaster speaks at none of the rows; bring forecasts for them.")
        return cls(cal, source, rows.values, spoken)

    @property
    def shape(self) -> tuple[Any, ...]:
        """What series have in common that are followed together."""
        rows, future = self.source.rows, self.source.future
        times, ahead = None if rows.times is None else rows.times.dtype, None if future is None else future.shape[1]
        return shape_of(self.calibrator), rows.values.shape, times, ahead, self.spoken.tobytes()


def follow_each(calibrators: Sequence[Calibrator], given: Sequence[Given], progress: Progress | None) -> list[Run]:
    """A run for each series; those of one shape are followed together."""
    series = []
    for cal, one in zip(calibrators, given, strict=True):
        with calling(one.called):
            series.append(_Series.of(cal, one))
    groups: dict[tuple[Any, ...], list[int]] = {}
    for place, each in enumerate(series):
        groups.setdefault(each.shape, []).append(place)
    total, done = sum(len(each.values) for each in series), 0

    def told(rows: int) -> None:
        nonlocal done
        done += rows
        if progress is not None:
            progress(done, total)

    found: dict[int, Run] = {}
    for group in groups.values():
        for places in in_parts(group, AT_ONCE // series[group[0]].calibrator.channels):
            found |= zip(places, _followed([series[place] for place in places], told), strict=True)
    return [found[place] for place in range(len(series))]


def _followed(series: list[_Series], told: Callable[[int], None]) -> list[Run]:
    calibrators = tuple(one.calibrator for one in series)
    if all(cal is calibrators[0] for cal in calibrators):
        calibrators = calibrators[:1]
    values = np.stack([one.values for one in series], axis=1)
    followed = follow(calibrators, tuple(one.source for one in series), values, series[0].spoken, told)
    return [_run(one, followed, place) for place, one in enumerate(series)]


def _run(series: _Series, followed: Followed, place: int) -> Run:
    cal, hidden = series.calibrator, followed.hidden[:, place].copy()
    rows, units = np.where(hidden, np.nan, series.values), followed.units
    last = followed.last_certificate(cal, place)
    return Run(
        calibrator=cal,
        rows=rows,
        times=series.source.rows.times,
        hidden=hidden,
        origins=followed.origins,
        mean=units.mean[:, place].copy(),
        base=units.base[:, place].copy(),
        outcome=outcomes_at(rows, followed.origins, cal.horizon),
        gate=units.gate[:, place].copy(),
        sd=units.sd[:, place].copy(),
        levels=TRACKED,
        multipliers=units.multipliers[:, place].copy(),
        expected_error=units.expected_error[:, place].copy(),
        certificate={} if last is None else _columns(followed, place, last),
        last_certificate=last,
        realised=_realised(followed, place, len(rows), cal.settings.delta),
        warnings=episodes(followed.alerts[place]),
    )


def _columns(followed: Followed, place: int, last: Certificate) -> dict[str, Floats]:
    """Every numeric term by name, (n,); what is fixed is that of the last certificate."""
    names = ["value"] + [f.name for f in dataclasses.fields(Certificate) if f.type in ("float", "int")]
    count, read = len(followed.origins), followed.certificate
    return {
        name: getattr(read, name)[:, place].copy()
        if hasattr(read, name)
        else np.full(count, float(getattr(last, name)))
        for name in names
    }


def _realised(followed: Followed, place: int, rows: int, delta: float) -> RealisedRisk:
    mean, upper, outcomes, newest = (float(values[place]) for values in followed.realised)
    return RealisedRisk(upper, mean, int(outcomes), rows - 1 - int(newest) if outcomes else rows, delta)
