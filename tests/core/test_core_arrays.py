"""The core on other arrays, and on more lanes: the same code on NumPy and torch, on one series and on fifty."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import ompb
from ompb.calibrator import online_rules
from ompb.core.evidence import Usual
from ompb.core.members.head import SourceHead
from ompb.core.members.memory import Memory
from ompb.core.online import Issued, Online
from ompb.core.source import SourceFit
from ompb.datasets.synthetic import shifted_stream

CONTEXT, HORIZON, SEASON, CHANNELS = 24, 6, 12, 2
SPANS = (1, 2, 4)
REMEMBERED = SPANS[-1] * CONTEXT
ISSUED = ("correction", "gate", "novelty", "sd", "half_widths", "expected_error")


def small_calibrators(count: int, **options: Any) -> list[tuple[ompb.Calibrator, Any, Any]]:
    """Calibrators, each with its forecaster and its stream."""
    series = {seed: shifted_stream("level", seed, 500, 120, CHANNELS, SEASON) for seed in range(count)}
    sources = {seed: source for seed, (source, _) in series.items()}
    ridges = {seed: ompb.Ridge.fit(source, CONTEXT, HORIZON) for seed, source in sources.items()}
    sizes = {"context": CONTEXT, "horizon": HORIZON, "season": SEASON, "discounts": (0.98, 0.999), "spans": SPANS}
    cals = ompb.calibrate(ridges, sources, **{**sizes, **options})
    return [(cals[seed], ridges[seed], target) for seed, (_, target) in series.items()]


def inputs(cal: ompb.Calibrator, forecaster: Any, target: Any) -> tuple[Any, Any, Any]:
    """Standardised rows (T, N), those remembered (T, N, R) and base forecasts (T, N, H), some cells missing."""
    origins = np.arange(CONTEXT - 1, len(target))
    padded = np.concatenate([np.tile(cal.centre, (REMEMBERED, 1)), target])
    remembered = padded[REMEMBERED + origins[:, None] + np.arange(1 - REMEMBERED, 1)]
    answers = forecaster(remembered[:, -CONTEXT:])
    standard = [np.moveaxis((x - cal.centre) / cal.scale, -1, 1) for x in (remembered, answers)]
    rows = (target[origins] - cal.centre) / cal.scale
    rows[20, 0] = rows[21, 1] = rows[21, 0] = np.nan
    return rows, *standard


def moved(value: Any, convert: Any) -> Any:
    """A value class with every array converted."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.replace(
            value, **{f.name: moved(getattr(value, f.name), convert) for f in dataclasses.fields(value)}
        )
    if isinstance(value, tuple):
        items = [moved(item, convert) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return convert(value) if isinstance(value, np.ndarray) else value


def drive(rules: Online, rows: Any, windows: Any, base: Any) -> list[Issued]:
    """Rows on time, one cell late, and one origin without a forecast, while the memory grows."""
    state = rules.start()
    issued = []
    for t in range(len(rows)):
        state = rules.reveal(state, t, rows[t], state.guard)
        if t == 40:
            state = rules.pass_over(state, t)
            continue
        one, state = rules.issue(state, t, windows[t], base[t], CONTEXT + t)
        issued.append(one)
        if t == 23:
            _, state = rules.reveal_late(state, 21, 23, rows[21], rows[22])
    return issued


def terms(issued: Issued) -> dict[str, Any]:
    """Every term of the certificate by name."""
    reading = issued.certificate
    assert reading is not None
    source = reading.source._asdict()
    return {**reading._asdict(), **source, "source": None}


@pytest.mark.parametrize("options", [{}, {"draws": 5, "gate": "shared"}, {"kind": "subgamma", "gate": "open"}])
def test_torch_equals_numpy(options: dict[str, Any]) -> None:
    torch = pytest.importorskip("torch")
    ((cal, forecaster, target),) = small_calibrators(1, **options)
    rows, windows, base = inputs(cal, forecaster, target)
    numpy_run = drive(cal.online, rows, windows, base)
    tensors = [torch.from_numpy(np.ascontiguousarray(x)) for x in (rows, windows, base)]
    on_torch = moved(cal.source, lambda x: torch.from_numpy(x.copy()))
    torch_run = drive(online_rules(on_torch, cal.settings, CHANNELS, cal.season), *tensors)
    for ours, theirs in zip(numpy_run, torch_run, strict=True):
        assert isinstance(theirs.correction, torch.Tensor)
        for name in ISSUED:
            np.testing.assert_allclose(getattr(theirs, name).numpy(), getattr(ours, name), rtol=1e-9, atol=1e-12)
        found = terms(theirs)
        for name, value in terms(ours).items():
            if value is not None:
                np.testing.assert_allclose(found[name].numpy(), value, rtol=1e-7, atol=1e-9)


def test_windows_that_were_seen_before_are_those_that_are_seen_then() -> None:
    """Together, and while the memory grows: nothing that members see depends on what was learned."""
    ((cal, forecaster, target),) = small_calibrators(1)
    rows, windows, base = inputs(cal, forecaster, target)
    rules, count = cal.online, len(rows)
    known = tuple(min(CONTEXT + t, windows.shape[2]) for t in range(count))
    assert len(set(known)) > 1
    lanes_first = [np.ascontiguousarray(np.moveaxis(part, 0, 1)) for part in (windows, base)]
    seen = rules.see(lanes_first[0], lanes_first[1], known)
    states = [rules.start(), rules.start()]
    for t in range(count):
        states = [rules.reveal(state, t, rows[t], state.guard) for state in states]
        here = tuple(one[:, t : t + 1] for one in seen)
        issued = [
            rules.issue(state, t, windows[t], base[t], CONTEXT + t, seen=before)
            for state, before in zip(states, (None, here), strict=True)
        ]
        states = [state for _, state in issued]
        for name in ISSUED:
            one, other = (getattr(forecast, name) for forecast, _ in issued)
            np.testing.assert_allclose(other, one, rtol=1e-9, atol=1e-12)


def test_fifty_series_together_equal_fifty_alone() -> None:
    parts = small_calibrators(50)
    streams = [inputs(*part) for part in parts]
    settings = parts[0][0].settings
    # the taus are numbers of one series, and so is what the memory reads; the fleet shares those of the first
    sources = [sharing(parts[0][0].source, cal.source, place) for place, (cal, *_) in enumerate(parts)]
    rules = online_rules(joined(sources), settings, CHANNELS, 12)
    together = drive(rules, *(np.concatenate([s[i] for s in streams], axis=1) for i in range(3)))
    for number, (source, stream) in enumerate(zip(sources, streams, strict=True)):
        lanes = slice(number * CHANNELS, (number + 1) * CHANNELS)
        for fleet, alone in zip(together, drive(online_rules(source, settings, CHANNELS, 12), *stream), strict=True):
            for name in ISSUED:
                np.testing.assert_allclose(getattr(fleet, name)[lanes], getattr(alone, name), rtol=1e-10, atol=1e-13)
            found = terms(fleet)
            for name, value in terms(alone).items():
                if value is not None:
                    np.testing.assert_allclose(found[name][number], value[0], rtol=1e-8, atol=1e-11)


def sharing(first: SourceFit, source: SourceFit, number: int) -> SourceFit:
    """A fit with the taus and the memory of another, but for each channel's own regression and what is usual."""
    memory = next(member for member in first.members if isinstance(member, Memory))
    assert len(memory.spans) > 1
    assert first.usual is not None
    own = tuple(dataclasses.replace(span, own=span.own * (1 + number / 100)) for span in memory.spans)
    members = tuple(Memory(own) if isinstance(member, Memory) else member for member in source.members)
    usual = Usual(first.usual.spread * (1 + number / 10))
    return dataclasses.replace(source, members=members, usual=usual, scales=first.scales)


def joined(sources: list[SourceFit]) -> SourceFit:
    """One fit whose lanes are those of all."""

    def stacked(values: list[Any]) -> Any:
        first = values[0]
        if dataclasses.is_dataclass(first) and not isinstance(first, type):
            names = [f.name for f in dataclasses.fields(first)]
            return dataclasses.replace(first, **{name: stacked([getattr(v, name) for v in values]) for name in names})
        if isinstance(first, tuple):
            parts = [stacked(list(items)) for items in zip(*values, strict=True)]
            return type(first)(*parts) if hasattr(first, "_fields") else tuple(parts)
        return np.concatenate(values) if isinstance(first, np.ndarray) else first

    whole: SourceFit = stacked(sources)
    head = next(member for member in whole.members if isinstance(member, SourceHead))
    assert head.weights.shape[0] == len(sources) * CHANNELS
    # what is the same for all
    shared = next(member for member in sources[0].members if isinstance(member, Memory)).spans
    stacks = next(member for member in whole.members if isinstance(member, Memory)).spans
    spans = tuple(dataclasses.replace(one, own=stack.own) for one, stack in zip(shared, stacks, strict=True))
    members = tuple(Memory(spans) if isinstance(member, Memory) else member for member in whole.members)
    return dataclasses.replace(whole, members=members, features=sources[0].features)
