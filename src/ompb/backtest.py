"""The same stream over a table of rows, and its results as arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ompb.calibrator import Calibrator
from ompb.episodes import Episode, episodes
from ompb.errors import ForecasterError, OptionError, TooShortError
from ompb.inputs import as_future, as_rows_of
from ompb.metrics.score import Score, score
from ompb.query import AnyForecaster, Forecaster, Query, as_forecaster
from ompb.sources import BLOCK, Source
from ompb.times import Times
from ompb.types import Certificate, Floats, Forecast, RealisedRisk, ends, half_widths
from ompb.windows import outcomes_at, windows_at

FRAMES = ("pandas", "polars", "pyarrow")


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

    def score(self) -> Score:
        """Errors, intervals and predictive law of all forecasts against the outcomes that are known."""
        return score(self.mean, self.outcome, self.interval, self.scale)

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "polars") -> Any:
        """One line per (channel, origin, lead), as a frame of pandas, polars or pyarrow.

        ``ds`` and ``cutoff`` are times if there are any, else row numbers.
        """
        if backend not in FRAMES or find_spec(backend) is None:
            raise OptionError(f"backend = {backend!r} is not here; accepted, if installed: {', '.join(FRAMES)}.")
        import narwhals as nw  # frames only: keeps `import ompb` light

        count, horizon, channels = self.mean.shape
        lower80, upper80 = self.interval(0.8)
        lower95, upper95 = self.interval(0.95)
        shape = (channels, count, horizon)
        cutoff, ahead = self._stamps()

        def tall(values: Floats) -> Any:
            return np.ascontiguousarray(np.moveaxis(values, -1, 0)).ravel()

        def per_origin(values: Any) -> Any:
            return np.broadcast_to(np.asarray(values)[None, :, None], shape).ravel()

        columns = {
            "unique_id": np.repeat(np.asarray(self.names), count * horizon),
            "ds": np.broadcast_to(ahead, shape).ravel(),
            "cutoff": per_origin(cutoff),
            "lead": np.broadcast_to(np.arange(1, horizon + 1), shape).ravel(),
            "y": tall(self.outcome),
            "base": tall(self.base),
            "y_hat": tall(self.mean),
            "lower_80": tall(lower80),
            "upper_80": tall(upper80),
            "lower_95": tall(lower95),
            "upper_95": tall(upper95),
            "gate": np.repeat(self.gate.T.ravel(), horizon),
        }
        if self.certificate:
            columns["certificate"] = per_origin(self.certificate["value"])
        return nw.from_dict(columns, backend=backend).to_native()

    def _stamps(self) -> tuple[NDArray[Any], NDArray[Any]]:
        """Of the origins (n,) and of the rows they speak of (n, H): times if there are any, else row numbers."""
        horizon = self.mean.shape[1]
        every: NDArray[Any] = np.arange(len(self.rows) + horizon)
        if self.times is not None and self.calibrator.grid is not None:
            every = np.concatenate([self.times, self.calibrator.grid.after(self.times[-1], horizon)])
        return every[self.origins], every[self.origins[:, None] + np.arange(1, horizon + 1)]


def backtest(
    calibrator: Calibrator,
    forecaster: AnyForecaster,
    rows: Any,
    *,
    times: Any = None,
    future: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Step a fresh stream through rows (T, C), an array or frame; base forecasts are asked for in blocks.

    ``times`` are those of the rows, if a frame does not bring them; ``future`` (T + horizon, K) are covariates known
    ahead. ``progress`` is called with (rows done, rows in all).
    """
    table = as_rows_of(rows, "rows", calibrator.names, times, calibrator.grid)
    count, horizon = len(table.values), calibrator.horizon
    if count < calibrator.context:
        raise TooShortError(f"rows has {count} rows; at least {calibrator.context} (context) make one forecast.")
    ahead = None if future is None else as_future(future, count + horizon, "future")
    # what no stream believes is in no window
    measured = dataclasses.replace(table, values=np.where(calibrator.scaler.near(table.values), table.values, np.nan))
    source = Source(
        as_forecaster(forecaster), measured, ahead, calibrator.scaler, calibrator.context, horizon, calibrator.context
    )
    stream = calibrator.stream(_Prefetched(source))
    issued: list[Forecast] = []
    hidden = np.zeros(table.values.shape, dtype=bool)
    # a stream has times only if its calibrator has; the table's are even, so all follow from the first
    start = None if table.times is None or calibrator.grid is None else table.times[0]
    for row, values in enumerate(table.values):
        before = stream.hidden.values()
        covariates = None if ahead is None else ahead[row + 1 : row + 1 + horizon]
        forecast = stream.step(values, at=start if row == 0 else None, future=covariates)
        hidden[row] = [now > then for now, then in zip(stream.hidden.values(), before, strict=True)]
        if forecast is not None:
            issued.append(forecast)
        if progress is not None:
            progress(row + 1, count)
    if not issued:
        raise TooShortError("the forecaster speaks at none of the rows; bring forecasts for them.")
    believed = np.where(hidden, np.nan, table.values)
    return _collect(
        calibrator, believed, None if start is None else table.times, hidden, issued, stream.realised_risk()
    )


class _Prefetched(Forecaster):
    """Asks for many windows at once, as they will be if every cell is believed, and for others one by one."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.quantiles = source.forecaster.quantiles
        self._block = range(0)
        self._base: dict[int, Floats] = {}

    @property
    def record(self) -> str:
        return self._source.forecaster.record

    def speaks_at(self, origins: NDArray[np.int64], times: Times | None) -> NDArray[np.bool_]:
        return self._source.forecaster.speaks_at(origins, times)

    def forecast(self, query: Query) -> Any:
        origin = int(query.origins[0])
        if not np.array_equal(windows_at(self._source.filled, query.origins, self._source.context), query.windows):
            return self._source.forecaster.forecast(query)
        if origin not in self._block:
            stop = min(origin + BLOCK, len(self._source.rows.values))
            spoken = self._source.origins(origin, stop)
            self._block, self._base = range(origin, stop), {}
            with suppress(ForecasterError):  # perhaps at a window that the stream never comes to: ask one by one
                answer = self._source.answer(spoken)
                self._base = {origin: answer.of(place) for place, origin in enumerate(spoken.tolist())}
        return self._base[origin][None] if origin in self._base else self._source.forecaster.forecast(query)


def _collect(
    calibrator: Calibrator,
    rows: Floats,
    times: Times | None,
    hidden: NDArray[np.bool_],
    issued: list[Forecast],
    realised: RealisedRisk,
) -> Run:
    origins = np.asarray([f.origin for f in issued])
    certificates = [f.certificate for f in issued if f.certificate is not None]
    return Run(
        calibrator=calibrator,
        rows=rows,
        times=times,
        hidden=hidden,
        origins=origins,
        mean=np.stack([f.mean for f in issued]),
        base=np.stack([f.base for f in issued]),
        outcome=outcomes_at(rows, origins, calibrator.horizon),
        gate=np.stack([f.gate for f in issued]),
        sd=np.stack([f.sd for f in issued]),
        levels=issued[0].levels,
        multipliers=np.stack([f.multipliers for f in issued]),
        expected_error=np.stack([f.expected_error for f in issued]),
        certificate=_columns(certificates),
        last_certificate=certificates[-1] if certificates else None,
        realised=realised,
        warnings=episodes(issued),
    )


def _columns(certificates: list[Certificate]) -> dict[str, Floats]:
    if not certificates:
        return {}
    names = ["value"] + [f.name for f in dataclasses.fields(Certificate) if f.type in ("float", "int")]
    return {name: np.asarray([getattr(c, name) for c in certificates], dtype=np.float64) for name in names}
