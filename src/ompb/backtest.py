"""The same stream over an array of rows, and its results as arrays."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ompb.calibrator import BLOCK, Calibrator
from ompb.errors import OptionError, TooShortError
from ompb.inputs import as_rows_of, base_forecasts, fill_forward
from ompb.types import Certificate, Floats, Forecast, Forecaster, RealisedRisk, half_width

FRAMES = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class Run:
    """A finished backtest of n forecasts in the user's units; row r of the stream is the outcome's row r."""

    origins: NDArray[np.int64]  # (n,)
    mean: Floats  # (n, H, C)
    base: Floats  # (n, H, C)
    outcome: Floats  # (n, H, C); NaN where unknown
    gate: Floats  # (n, C)
    sd: Floats  # (n, H, C)
    levels: Floats  # (levels,)
    multipliers: Floats  # (n, levels, C)
    certificate: dict[str, Floats]  # every numeric term by name, each (n,); empty without certificate
    realised: RealisedRisk
    names: tuple[str, ...]
    scale: Floats  # source standard deviation per channel, (C,): errors divided by it are standardised
    calibrator: Calibrator
    rows: Floats  # (T, C) that were streamed

    def interval(self, level: float) -> tuple[Floats, Floats]:
        """Lower and upper end, each (n, H, C), of the central interval of that level."""
        half = half_width(level, self.levels, self.multipliers)[:, None, :] * self.sd
        return self.mean - half, self.mean + half

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "polars") -> Any:
        """One line per (channel, origin, lead), as a frame of pandas, polars or pyarrow."""
        if backend not in FRAMES or find_spec(backend) is None:
            raise OptionError(f"backend = {backend!r} is not here; accepted, if installed: {', '.join(FRAMES)}.")
        import narwhals as nw  # frames only: keeps `import ompb` light

        count, horizon, channels = self.mean.shape
        lower80, upper80 = self.interval(0.8)
        lower95, upper95 = self.interval(0.95)
        shape = (channels, count, horizon)

        def tall(values: Floats) -> Any:
            return np.ascontiguousarray(np.moveaxis(values, -1, 0)).ravel()

        def per_origin(values: Any) -> Any:
            return np.broadcast_to(np.asarray(values)[None, :, None], shape).ravel()

        columns = {
            "unique_id": np.repeat(np.asarray(self.names), count * horizon),
            "cutoff": per_origin(self.origins),
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


def backtest(
    calibrator: Calibrator,
    forecaster: Forecaster,
    rows: Any,
    *,
    progress: Callable[[int, int], None] | None = None,
) -> Run:
    """Step a fresh stream through rows (T, C), an array or frame; base forecasts are asked for in blocks.

    ``progress`` is called with (rows done, rows in all).
    """
    values = as_rows_of(rows, "rows", calibrator.names)
    if len(values) < calibrator.context:
        raise TooShortError(f"rows has {len(values)} rows; at least {calibrator.context} (context) make one forecast.")
    stream = calibrator.stream(forecaster)
    issued: list[Forecast] = []
    for row, base in _with_base(calibrator, forecaster, values):
        forecast = stream.advance(row, base)
        if forecast is not None:
            issued.append(forecast)
        if progress is not None:
            progress(stream.rows, len(values))
    return _collect(calibrator, values, issued, stream.realised_risk())


def _with_base(
    calibrator: Calibrator, forecaster: Forecaster, values: Floats
) -> Iterator[tuple[Floats, Floats | None]]:
    """Each row with the base forecast made from the window it completes."""
    context = calibrator.context
    filled = fill_forward(values, calibrator.centre)
    for row in values[: context - 1]:
        yield row, None
    for first in range(context - 1, len(values), BLOCK):
        origins = range(first, min(first + BLOCK, len(values)))
        windows = filled[np.asarray(origins)[:, None] + np.arange(1 - context, 1)]
        base = base_forecasts(forecaster, windows, origins, calibrator.horizon)
        yield from zip(values[origins.start : origins.stop], base, strict=True)


def _collect(calibrator: Calibrator, values: Floats, issued: list[Forecast], realised: RealisedRisk) -> Run:
    origins = np.asarray([f.origin for f in issued])
    padded = np.concatenate([values, np.full((calibrator.horizon, values.shape[1]), np.nan)])
    certificates = [f.certificate for f in issued if f.certificate is not None]
    return Run(
        origins=origins,
        mean=np.stack([f.mean for f in issued]),
        base=np.stack([f.base for f in issued]),
        outcome=padded[origins[:, None] + np.arange(1, calibrator.horizon + 1)],
        gate=np.stack([f.gate for f in issued]),
        sd=np.stack([f.sd for f in issued]),
        levels=issued[0].levels,
        multipliers=np.stack([f.multipliers for f in issued]),
        certificate=_columns(certificates),
        realised=realised,
        names=calibrator.names,
        scale=calibrator.scale,
        calibrator=calibrator,
        rows=values,
    )


def _columns(certificates: list[Certificate]) -> dict[str, Floats]:
    if not certificates:
        return {}
    names = ["value"] + [f.name for f in dataclasses.fields(Certificate) if f.type in ("float", "int")]
    return {name: np.asarray([getattr(c, name) for c in certificates], dtype=np.float64) for name in names}
