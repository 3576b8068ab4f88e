"""The core on other arrays, and on more lanes: the same code on NumPy and torch, on one series and on fifty."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import ompb
from ompb.core.lanes import Issued, Lanes, SourceLaw
from ompb.datasets.synthetic import shifted_stream

CONTEXT, HORIZON, SEASON, CHANNELS = 24, 6, 12, 2


def small_calibrator(seed: int, **options: Any) -> tuple[ompb.Calibrator, Any]:
    source, target = shifted_stream("level", seed, 500, 120, CHANNELS, SEASON)
    forecaster = ompb.Ridge.fit(source, CONTEXT, HORIZON)
    return ompb.Calibrator.fit(
        forecaster, source, context=CONTEXT, horizon=HORIZON, season=SEASON, discounts=(0.98, 0.999), **options
    ), (forecaster, target)


def inputs(cal: ompb.Calibrator, forecaster: Any, target: Any) -> tuple[Any, Any, Any]:
    """Standardised rows (T, N), windows (T, N, L) and base forecasts (T, N, H), with some cells missing."""
    origins = np.arange(CONTEXT - 1, len(target))
    windows = target[origins[:, None] + np.arange(1 - CONTEXT, 1)]
    standard = [np.moveaxis((x - cal.centre) / cal.scale, -1, 1) for x in (windows, forecaster(windows))]
    rows = (target[origins] - cal.centre) / cal.scale
    rows[20, 0] = rows[21, 1] = rows[21, 0] = np.nan
    return rows, *standard


def moved(value: Any, convert: Any) -> Any:
    """A value class with every array converted."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value, **{f.name: moved(getattr(value, f.name), convert) for f in dataclasses.fields(value)}
        )
    return convert(value) if isinstance(value, np.ndarray) else value


def drive(law: SourceLaw, rows: Any, windows: Any, base: Any) -> list[Issued]:
    lanes = Lanes.start(law)
    issued = []
    for t in range(len(rows)):
        lanes.reveal(law, t, rows[t])
        issued.append(lanes.issue(law, t, windows[t], base[t]))
        if t == 23:
            lanes.reveal_late(law, 21, 23, rows[22])
    return issued


@pytest.mark.parametrize("options", [{}, {"draws": 5, "gate": "shared"}, {"kind": "subgamma", "gate": "open"}])
def test_torch_equals_numpy(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    cal, (forecaster, target) = small_calibrator(0, **options)
    rows, windows, base = inputs(cal, forecaster, target)
    numpy_run = drive(cal.law, rows, windows, base)
    tensors = [torch.from_numpy(np.ascontiguousarray(x)) for x in (rows, windows, base)]
    torch_run = drive(moved(cal.law, lambda x: torch.from_numpy(x.copy())), *tensors)
    for ours, theirs in zip(numpy_run, torch_run, strict=True):
        assert isinstance(theirs.correction, torch.Tensor)
        for name in ("correction", "gate", "sd", "half_widths"):
            np.testing.assert_allclose(getattr(theirs, name).numpy(), getattr(ours, name), rtol=1e-9, atol=1e-12)
        for name, value in (ours.terms or {}).items():
            np.testing.assert_allclose((theirs.terms or {})[name].numpy(), value, rtol=1e-7, atol=1e-9)


def test_fifty_series_together_equal_fifty_alone() -> None:
    parts = [small_calibrator(seed) for seed in range(50)]
    streams = [inputs(cal, forecaster, target) for cal, (forecaster, target) in parts]
    laws = [cal.law for cal, _ in parts]
    # the taus are numbers of one series; the fleet shares those of the first
    laws = [
        dataclasses.replace(law, reader=dataclasses.replace(law.reader, scales=laws[0].reader.scales)) for law in laws
    ]
    together = drive(joined(laws), *(np.concatenate([s[i] for s in streams], axis=1) for i in range(3)))
    for number, (law, stream) in enumerate(zip(laws, streams, strict=True)):
        lanes = slice(number * CHANNELS, (number + 1) * CHANNELS)
        for fleet, alone in zip(together, drive(law, *stream), strict=True):
            for name in ("correction", "gate", "sd", "half_widths"):
                np.testing.assert_allclose(getattr(fleet, name)[lanes], getattr(alone, name), rtol=1e-10, atol=1e-13)
            for name, value in (alone.terms or {}).items():
                np.testing.assert_allclose((fleet.terms or {})[name][number], value[0], rtol=1e-8, atol=1e-11)


def joined(laws: list[SourceLaw]) -> SourceLaw:
    """One law whose lanes are those of all."""

    def stack(name: str, part: str) -> Any:
        return np.concatenate([getattr(getattr(law, part), name) for law in laws])

    first = laws[0]
    head = dataclasses.replace(first.head, **{f.name: stack(f.name, "head") for f in dataclasses.fields(first.head)})
    probe = dataclasses.replace(
        first.probe, **{f.name: stack(f.name, "probe") for f in dataclasses.fields(first.probe)}
    )
    reader = dataclasses.replace(first.reader, noise=stack("noise", "reader"), mean_noise=stack("mean_noise", "reader"))
    return dataclasses.replace(first, head=head, probe=probe, reader=reader)
