import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from ompb.errors import DtypeError, NotFiniteError, ShapeError
from ompb.metrics.point import known_mean, mae, mse
from ompb.types import Floats

SOMETIMES_UNKNOWN = st.floats(-1e6, 1e6) | st.just(np.nan)


@given(arrays(np.float64, (2, 5, 3), elements=SOMETIMES_UNKNOWN))
def test_unknown_pairs_count_as_if_they_were_not_there(pair: Floats) -> None:
    forecast, outcome = pair
    known = ~np.isnan(forecast) & ~np.isnan(outcome)
    if known.any():
        errors = (forecast - outcome)[known]
        assert mae(forecast, outcome) == pytest.approx(np.mean(np.abs(errors)))
        assert mse(forecast, outcome) == pytest.approx(np.mean(errors**2))
    else:
        assert np.isnan(mae(forecast, outcome))
        assert np.isnan(mse(forecast, outcome))


def test_axis_keeps_the_others_and_gives_nan_where_nothing_is_known() -> None:
    forecast = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    outcome = np.array([[0.0, np.nan, 1.0], [0.0, np.nan, np.nan]])
    np.testing.assert_array_equal(mae(forecast, outcome, axis=0), [2.5, np.nan, 2.0])
    np.testing.assert_array_equal(mse(forecast, outcome, axis=1), [2.5, 16.0])
    np.testing.assert_array_equal(mse(forecast, outcome, axis=(0, 1)), 7.0)


def test_integers_are_welcome() -> None:
    assert mae([1, 2], [2, 4]) == 1.5


def test_known_mean_of_nothing_is_nan() -> None:
    assert np.isnan(known_mean(np.array([])))


def test_shapes_must_be_equal() -> None:
    with pytest.raises(ShapeError, match=r"forecast \(2,\), outcome \(3,\)"):
        mae(np.zeros(2), np.zeros(3))


def test_text_is_refused() -> None:
    with pytest.raises(DtypeError, match="outcome has dtype <U1"):
        mse([1.0], ["a"])


@pytest.mark.parametrize(("forecast", "outcome"), [([np.inf], [1.0]), ([1.0], [-np.inf])])
def test_infinity_is_refused(forecast: list[float], outcome: list[float]) -> None:
    with pytest.raises(NotFiniteError, match="1 infinite"):
        mae(forecast, outcome)
