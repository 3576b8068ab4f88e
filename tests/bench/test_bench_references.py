import numpy as np
import pytest

from ompb.bench.references import (
    CopyResidual,
    LastValue,
    Original,
    Profile,
    Reference,
    RunningBias,
    references,
)
from ompb.errors import OptionError
from ompb.types import Floats

CONTEXT, HORIZON, SEASON, RATE = 8, 4, 3, 0.3
NAMES = tuple(references(SEASON))


@pytest.fixture
def rows() -> Floats:
    values = np.random.default_rng(0).normal(10, 1, (30, 2))
    values[[12, 13, 20], [0, 1, 1]] = np.nan
    return values


@pytest.fixture
def bases() -> Floats:
    return np.random.default_rng(1).normal(10, 1, (30, HORIZON, 2))


def issue(reference: Reference, rows: Floats, bases: Floats) -> Floats:
    """Forecasts (n, H, C) of origins CONTEXT - 1 .. T - 1."""
    origins = range(CONTEXT - 1, len(rows))
    return np.array([reference.step(rows[t], rows[t - CONTEXT + 1 : t + 1], bases[t]) for t in origins])


def test_original_profile_and_last_value(rows: Floats, bases: Floats) -> None:
    np.testing.assert_array_equal(issue(Original(), rows, bases), bases[CONTEXT - 1 :])
    for k, forecast in enumerate(issue(LastValue(), rows, bases)):
        np.testing.assert_array_equal(forecast, [rows[CONTEXT - 1 + k]] * HORIZON)
    for k, forecast in enumerate(issue(Profile(SEASON), rows, bases)):
        t = CONTEXT - 1 + k
        expected = [(rows[t + h - 6] + rows[t + h - 3]) / 2 for h in (1, 2, 3, 1)]
        np.testing.assert_allclose(forecast, expected)


def test_running_bias_equals_its_double_loop_twin(rows: Floats, bases: Floats) -> None:
    bias = np.zeros((HORIZON, 2))
    for t, forecast in enumerate(issue(RunningBias(RATE), rows, bases), start=CONTEXT - 1):
        for h in range(1, HORIZON + 1):
            for c in range(2):
                if t - h >= CONTEXT - 1 and not np.isnan(rows[t, c]):
                    bias[h - 1, c] += RATE * (rows[t, c] - bases[t - h, h - 1, c] - bias[h - 1, c])
        np.testing.assert_allclose(forecast, bases[t] + bias)


def test_copied_residual_equals_its_double_loop_twin(rows: Floats, bases: Floats) -> None:
    for t, forecast in enumerate(issue(CopyResidual(), rows, bases), start=CONTEXT - 1):
        expected = bases[t].copy()
        for h in range(1, HORIZON + 1):
            for c in range(2):
                outcome = rows[t - HORIZON + h, c]
                if t - HORIZON >= CONTEXT - 1 and not np.isnan(outcome):
                    expected[h - 1, c] += outcome - bases[t - HORIZON, h - 1, c]
        np.testing.assert_allclose(forecast, expected)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("poison", [np.nan, 1e6])
@pytest.mark.parametrize("last_known", [CONTEXT, 15, 28])
def test_nothing_issued_depends_on_later_rows(
    name: str, poison: float, last_known: int, rows: Floats, bases: Floats
) -> None:
    poisoned = rows.copy()
    poisoned[last_known + 1 :] = poison
    issued = last_known - CONTEXT + 2
    clean = issue(references(SEASON)[name], rows, bases)[:issued]
    np.testing.assert_array_equal(issue(references(SEASON)[name], poisoned, bases)[:issued], clean)


@pytest.mark.parametrize("name", NAMES)
def test_references_change_neither_their_input_nor_what_they_issued(name: str, rows: Floats, bases: Floats) -> None:
    rows_before, bases_before = rows.copy(), bases.copy()
    reference = references(SEASON)[name]
    issued, copies = [], []
    for t in range(CONTEXT - 1, len(rows)):
        issued.append(reference.step(rows[t], rows[t - CONTEXT + 1 : t + 1], bases[t]))
        copies.append(issued[-1].copy())
    np.testing.assert_array_equal(issued, copies)
    np.testing.assert_array_equal(rows, rows_before)
    np.testing.assert_array_equal(bases, bases_before)


@pytest.mark.parametrize("rate", [0.0, 1.5, float("nan")])
def test_running_bias_refuses_other_rates(rate: float) -> None:
    with pytest.raises(OptionError, match="rate"):
        RunningBias(rate)
