import numpy as np
import pytest

from ompb.errors import ForecasterError, ShapeError
from ompb.forecasters import Recorded
from ompb.types import Floats


@pytest.fixture
def forecasts() -> Floats:
    return np.arange(24.0).reshape(4, 3, 2)


def test_recorded_returns_the_forecasts_of_the_origins_in_order(forecasts: Floats) -> None:
    np.testing.assert_array_equal(Recorded(forecasts).at([2, 0]), forecasts[[2, 0]])


def test_recorded_keeps_its_own_read_only_copy(forecasts: Floats) -> None:
    recorded = Recorded(forecasts)
    forecasts[:] = 0
    assert recorded.at([3])[0, 2, 1] == 23
    assert not recorded.forecasts.flags.writeable


@pytest.mark.parametrize("origins", [[0, 2, -1], [0, -1, 1], [2, 4, 1], [4]])
def test_recorded_names_the_first_origin_without_a_complete_forecast(forecasts: Floats, origins: list[int]) -> None:
    forecasts[1, 2, 0] = np.nan
    first = next(k for k in origins if k in (-1, 1, 4))
    with pytest.raises(ForecasterError, match=f"origin {first} "):
        Recorded(forecasts).at(origins)


@pytest.mark.parametrize("shape", [(3, 2), (0, 2, 1)])
def test_recorded_refuses_other_shapes(shape: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match="shape"):
        Recorded(np.zeros(shape))
