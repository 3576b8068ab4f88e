"""How a forecaster behaves when it is asked: without side effects, and the same every time."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from ompb.checkup.probe import Probe, part
from ompb.errors import CheckError
from ompb.seam.query import quantiles_of

SINGLES = 3
# Share of answers in which two quantiles may be the wrong way round: those of an untrained network often are.
CROSSING = 0.9


def look(probe: Probe) -> None:
    """Raise at the first fault."""
    probe.ask(part(probe.few, slice(1)))  # whatever is no forecast at all is told first
    _require_still(probe)
    _require_untouched(probe)
    _require_let_go(probe)
    _require_repeatable(probe)
    _require_same_alone(probe)
    _require_in_order(probe)


def _require_still(probe: Probe) -> None:
    """A network must be in evaluation mode, and its answer off the graph."""
    with _trained_modules() as seen:
        said = probe.forecaster.forecast(part(probe.few, slice(2)).copy())
    if seen:
        raise CheckError(
            "training",
            f"a network of the forecaster ({seen[0]}) ran in training mode, in which dropout draws and batch "
            "normalisation learns; call model.eval() once before it is wrapped, or use ompb.adapters.torch.wrap.",
        )
    if getattr(said, "requires_grad", False) is True:
        raise CheckError(
            "gradient",
            "the forecaster returned a tensor that requires grad, so every call builds a graph; call the model under "
            "torch.inference_mode(), or use ompb.adapters.torch.wrap.",
        )


@contextmanager
def _trained_modules() -> Iterator[list[str]]:
    """The kinds of torch modules that are called in training mode meanwhile; torch itself is never imported here."""
    seen: list[str] = []
    torch = sys.modules.get("torch")
    if torch is None:
        yield seen
        return

    def note(module: Any, arguments: Any) -> None:
        del arguments
        if module.training:
            seen.append(type(module).__name__)

    hook = torch.nn.modules.module.register_module_forward_pre_hook(note)
    try:
        yield seen
    finally:
        hook.remove()


def _require_untouched(probe: Probe) -> None:
    query, before = probe.few.copy(), probe.few
    probe.forecaster.forecast(query)
    for name in ("windows", "origins", "times", "future"):
        asked, was = getattr(query, name), getattr(before, name)
        if asked is not None and not np.array_equal(asked, was):
            raise CheckError(
                "changes input",
                f"the forecaster writes into the {name} it is asked with; copy them first: {name} = {name}.copy().",
            )


def _require_let_go(probe: Probe) -> None:
    query = probe.few.copy()
    arrays = {name: getattr(query, name) for name in ("windows", "origins", "times", "future")}
    given = {name: weakref.ref(array) for name, array in arrays.items() if array is not None}
    del arrays
    probe.forecaster.forecast(query)
    del query
    if any(array() is not None for array in given.values()):
        gc.collect()  # it takes long; what lies in a circle of references is let go, too
    kept = [name for name, array in given.items() if array() is not None]
    if kept:
        raise CheckError(
            "keeps input",
            f"the forecaster holds on to the {kept[0]} it was asked with after it has answered: a frozen forecaster "
            "remembers nothing. Drop them, or keep a copy if you must.",
        )


def _require_repeatable(probe: Probe) -> None:
    apart = probe.apart(probe.answered, probe.ask(probe.few))
    if apart:
        raise CheckError(
            "random",
            f"the forecaster answered the same question twice, up to {apart:.3g} source standard deviations apart: it "
            "draws at random or learns from being asked. Fix its seed within each call, return the mean or quantiles "
            "of its samples, or ask a fresh copy each time.",
        )


def _require_same_alone(probe: Probe) -> None:
    for place in reversed(range(min(SINGLES, len(probe.few.origins)))):
        only = slice(place, place + 1)
        apart = probe.apart(probe.answered[only], probe.ask(part(probe.few, only)))
        if apart:
            raise CheckError(
                "batch",
                f"the forecaster answers a window alone, up to {apart:.3g} source standard deviations apart from what "
                f"it says of it among {len(probe.few.origins)}: windows of a batch leak into each other or come back "
                "in another order (ids that sort as text do that). Forecast each window from itself alone.",
            )


def _require_in_order(probe: Probe) -> None:
    """Quantiles may cross here and there, but not nearly everywhere."""
    quantiles = quantiles_of(probe.forecaster)
    for place, (lower, upper) in enumerate(pairwise(quantiles)):
        falls = float((probe.answered[..., place + 1] < probe.answered[..., place]).mean())
        if falls > CROSSING:
            raise CheckError(
                "quantile order",
                f"the forecaster's {upper:g}-quantile lies below its {lower:g}-quantile in {falls:.0%} of its answers: "
                f"the last axis is in another order than its quantiles, {quantiles}. Return them in that order.",
            )
