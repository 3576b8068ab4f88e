"""Pretrained models behind a pipeline: Chronos and its successors, TimesFM, and whatever has the same verbs.

=========================================================================== ====================================
verb                                                                        answer for B series
=========================================================================== ====================================
``predict_quantiles(series, prediction_length=, quantile_levels=)``         (B, horizon, Q), and a mean
``forecast(horizon=, inputs=)``                                             (B, horizon), (B, horizon, 10): mean
                                                                            and the nine deciles
``predict(series, prediction_length=)``                                     points (B, horizon), or samples
                                                                            (B, samples, horizon)
=========================================================================== ====================================

The first verb that a pipeline has is used. Channels are asked about one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from ompb.adapters.base import Adapter, as_series, levels, of_series
from ompb.errors import ForecasterError
from ompb.floor.checks import count, seed
from ompb.floor.extras import extra
from ompb.seam.query import Query
from ompb.types import Floats

BATCH = 256
QUANTILES = (0.1, 0.5, 0.9)
DECILES = tuple(round(0.1 * tenth, 1) for tenth in range(1, 10))
VERBS = ("predict_quantiles", "forecast", "predict")


def wrap(
    pipeline: Any,
    *,
    context: int,
    horizon: int,
    quantiles: Sequence[float] = QUANTILES,
    longest: int | None = None,
    batch: int = BATCH,
    samples_seed: int | None = None,
) -> Pipeline:
    """A pretrained pipeline as a forecaster.

    Args:
        pipeline: an object with one of the verbs above.
        context: rows in a window.
        horizon: rows in a forecast.
        quantiles: to ask for, see `ompb.Forecaster.quantiles`; () for the median alone.
        longest: rows it can read. Longer windows are cut to their newest rows here, in the open; by default what the
            pipeline says of itself, and a longer ``context`` is refused, since pipelines cut in silence.
        batch: series in one call.
        samples_seed: for one that draws samples (``forecast_type`` says so; by default the seed is then 0): series are
            asked about one by one, each with this seed, so that the same question has the same answer.
    """
    verb = next((name for name in VERBS if callable(getattr(pipeline, name, None))), None)
    if verb is None:
        raise ForecasterError(f"the pipeline is a {type(pipeline).__name__} without any of {', '.join(VERBS)}.")
    reads = getattr(pipeline, "model_context_length", None)
    if longest is None and isinstance(reads, int) and context > reads:
        raise ForecasterError(
            f"context={context} is more than the {reads} rows that the pipeline reads; pass context={reads}, or "
            f"longest={reads} to have windows cut to their newest rows."
        )
    samples = "SAMPLES" in str(getattr(pipeline, "forecast_type", "")).upper()
    found = Pipeline(
        pipeline=pipeline,
        context=context,
        horizon=horizon,
        verb=verb,
        quantiles=levels(quantiles),
        longest=context if longest is None else count("longest", longest),
        batch=count("batch", batch),
        samples_seed=0 if samples and samples_seed is None else samples_seed,
    )
    if samples_seed is not None:
        seed("samples_seed", samples_seed)
    if verb == "forecast" and not set(found.quantiles) <= set(DECILES):
        raise ForecasterError(
            f"the pipeline gives the deciles 0.1 .. 0.9, and quantiles={found.quantiles}; choose among them."
        )
    return found


@dataclass(frozen=True, eq=False, kw_only=True)
class Pipeline(Adapter):
    """What `wrap` returns."""

    pipeline: Any
    verb: str
    quantiles: tuple[float, ...]
    longest: int
    batch: int
    samples_seed: int | None

    def forecast(self, query: Query) -> Floats:
        """Forecasts (n, horizon, C, Q), or (n, horizon, C) of the median."""
        windows = self.windows_of(query)[:, -self.longest :]
        series = as_series(windows)
        step = self.batch if self.samples_seed is None else 1
        said = np.concatenate([self._said(series[first : first + step]) for first in range(0, len(series), step)])
        return of_series(said if self.quantiles else said[..., 0], len(windows))

    def _said(self, series: Floats) -> Floats:
        """Quantiles (B, horizon, Q) of series (B, context), or (B, horizon, 1)."""
        wanted = self.quantiles or (0.5,)
        with nullcontext() if self.samples_seed is None else _seeded(self.samples_seed):
            if self.verb == "predict_quantiles":
                said = self._by_predict_quantiles(series, wanted)
            else:
                said = (
                    self._by_forecast(series, wanted) if self.verb == "forecast" else self._by_predict(series, wanted)
                )
        expected = (len(series), self.horizon, len(wanted))
        if said.shape != expected:
            raise ForecasterError(
                f"the pipeline's {self.verb} gave {said.shape} for {len(series)} series; accepted: {expected}, the "
                "quantiles last. See ompb.adapters.pipelines for the verbs that are understood."
            )
        return said

    def _by_predict_quantiles(self, series: Floats, wanted: tuple[float, ...]) -> Floats:
        said = self.pipeline.predict_quantiles(
            _tensor(series), prediction_length=self.horizon, quantile_levels=list(wanted)
        )
        quantiles = said[0] if isinstance(said, tuple) else said
        if isinstance(quantiles, list):  # one tensor (1, horizon, Q) a series, of a model of many variates
            quantiles = np.concatenate([_array(one) for one in quantiles])
        return _array(quantiles)

    def _by_forecast(self, series: Floats, wanted: tuple[float, ...]) -> Floats:
        _, deciles = self.pipeline.forecast(horizon=self.horizon, inputs=list(series.astype(np.float32)))
        return _array(deciles)[: len(series), :, [1 + DECILES.index(level) for level in wanted]]

    def _by_predict(self, series: Floats, wanted: tuple[float, ...]) -> Floats:
        said = _array(self.pipeline.predict(_tensor(series), prediction_length=self.horizon))
        if said.ndim == 3:
            return np.moveaxis(np.quantile(said, wanted, axis=1), 0, -1)
        if self.quantiles:
            raise ForecasterError("the pipeline's predict gives points, not quantiles; wrap it with quantiles=().")
        return said[..., None]


def _tensor(series: Floats) -> Any:
    with extra("torch", needed_by="ompb.adapters.pipelines"):
        import torch
    return torch.tensor(series, dtype=torch.float32)


def _array(said: Any) -> Floats:
    said = said.detach().cpu() if hasattr(said, "detach") else said
    return np.asarray(said, dtype=np.float64)


@contextmanager
def _seeded(number: int) -> Iterator[None]:
    """Torch draws from this seed meanwhile, and afterwards as if nothing had been."""
    with extra("torch", needed_by="ompb.adapters.pipelines"):
        import torch
    with torch.random.fork_rng():
        torch.manual_seed(number)
        yield
