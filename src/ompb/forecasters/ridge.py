"""A linear forecaster: one ridge regression per channel, in closed form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import ArrayLike, NDArray

from ompb.errors import ShapeError
from ompb.floor.checks import count, positive
from ompb.floor.names import in_words
from ompb.rows.inputs import as_rows
from ompb.rows.scaler import Scaler
from ompb.rows.windows import complete_starts
from ompb.types import Floats

BLOCK_WINDOWS = 2048  # windows held at once while fitting: 8 * 2048 * (context + horizon) bytes


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Ridge:
    r"""Linear map from each channel's window to its own H leads, with an intercept.

    For every channel, on data standardised with that channel's source mean and standard deviation,

    .. math:: \min_{W, b}\ \frac1n \sum_{i=1}^{n} \lVert y_i - W^\top w_i - b \rVert^2
              + \text{penalty} \cdot \lVert W \rVert^2

    over its n source windows w_i (context,) and outcomes y_i (horizon,) without a missing value. The
    standardisation is folded into ``weights`` (C, context + 1, horizon), whose last row is the intercept in
    the user's units. Frozen after the fit; a window with a missing value gets a missing (NaN) forecast.

    >>> line = np.arange(50.0).reshape(50, 1)
    >>> ridge = Ridge.fit(line, context=4, horizon=2, penalty=1e-9)
    >>> ridge([[[100.0], [101.0], [102.0], [103.0]]]).round(3).ravel()
    array([104., 105.])
    """

    weights: Floats

    @classmethod
    def fit(cls, source: Any, context: int, horizon: int, penalty: float = 1e-2) -> Ridge:
        """Fit on source rows (T, C), an array or frame (see `ompb.rows.inputs.as_rows`); memory is bounded.

        Windows and outcomes with a NaN are left out, channel by channel. Raises ``TooShortError`` where a
        channel has no complete pair of window and outcome.
        """
        context, horizon, penalty = count("context", context), count("horizon", horizon), positive("penalty", penalty)
        rows = as_rows(source, "source")
        missing = zip(np.isnan(rows.values).T, rows.names, strict=True)
        complete = [complete_starts(of_one, context + horizon, in_words(name)) for of_one, name in missing]
        scaler = Scaler.fit(rows.values)
        series = scaler.standardise(rows.values).T
        weights = np.stack(
            [_fit_channel(s, k, context, horizon, penalty) for s, k in zip(series, complete, strict=True)]
        )
        # folding x = centre + scale z into the intercept brings the map to the user's units
        scale, centre = scaler.scale[:, None], scaler.centre[:, None]
        weights[:, -1] = centre + scale * weights[:, -1] - centre * weights[:, :-1].sum(axis=1)
        weights.flags.writeable = False
        return cls(weights)

    @property
    def context(self) -> int:
        """Rows of a window."""
        return int(self.weights.shape[1]) - 1

    @property
    def horizon(self) -> int:
        """Leads of a forecast."""
        return int(self.weights.shape[2])

    @property
    def channels(self) -> int:
        """Channels C of a row."""
        return int(self.weights.shape[0])

    def __repr__(self) -> str:
        return f"Ridge(context={self.context}, horizon={self.horizon}, channels={self.channels})"

    def __call__(self, windows: ArrayLike) -> Floats:
        """Forecast windows (n, context, C) as (n, horizon, C)."""
        windows = np.asarray(windows, dtype=np.float64)
        if windows.shape[1:] != (self.context, self.channels):
            raise ShapeError(
                f"windows have shape {windows.shape}; this forecaster was fitted on windows "
                f"(n, {self.context}, {self.channels}): pass those."
            )
        lanes = np.ascontiguousarray(windows.transpose(2, 0, 1))  # (C, n, context); BLAS needs it contiguous
        forecasts = np.matmul(lanes, self.weights[:, :-1])
        forecasts += self.weights[:, -1:]
        return np.asarray(forecasts.transpose(1, 2, 0))


def _fit_channel(series: Floats, starts: NDArray[np.intp], context: int, horizon: int, penalty: float) -> Floats:
    """Weights (context + 1, horizon) of one standardised channel (T,)."""
    gram, moments = _normal_equations(series, starts, context, horizon)
    gram[np.diag_indices(context)] += penalty * len(starts)  # the intercept, last, is not penalised
    return np.asarray(np.linalg.solve(gram, moments))


def _normal_equations(series: Floats, starts: NDArray[np.intp], context: int, horizon: int) -> tuple[Floats, Floats]:
    """Sums over outcomes y of v v' (context + 1, context + 1) and v y' (context + 1, horizon), v = (w, 1)."""
    stretches = sliding_window_view(series, context + horizon)
    gram, moments = np.zeros((context + 1, context + 1)), np.zeros((context + 1, horizon))
    for first in range(0, len(starts), BLOCK_WINDOWS):
        block = stretches[starts[first : first + BLOCK_WINDOWS]]
        design = np.column_stack([block[:, :context], np.ones(len(block))])
        gram += design.T @ design
        moments += design.T @ block[:, context:]
    return gram, moments
