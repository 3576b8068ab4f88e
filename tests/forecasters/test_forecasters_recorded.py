import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ompb.errors import DtypeError, ForecasterError, OmpbError, ShapeError, TimeOrderError
from ompb.floor.times import Times, as_times
from ompb.forecasters import Recorded
from ompb.rows.scaler import Scaler
from ompb.seam.query import Query, ask, speaking
from ompb.types import Floats

ROWS, HORIZON, CHANNELS = 4, 3, 2


@pytest.fixture
def forecasts() -> Floats:
    return np.arange(24.0).reshape(ROWS, HORIZON, CHANNELS)


def days(*numbers: int) -> Times:
    return as_times([f"2024-01-{number:02d}" for number in numbers], "days")


def query(origins: list[int], times: Times | None = None) -> Query:
    return Query(np.zeros((len(origins), 5, CHANNELS)), np.array(origins), times)


def asked(recorded: Recorded, origins: list[int], times: Times | None = None) -> Floats:
    return ask(recorded, query(origins, times), HORIZON, Scaler(np.zeros(2), np.ones(2)), ("a", "b")).base


def test_without_times_the_origin_counts_whatever_the_times_are(forecasts: Floats) -> None:
    np.testing.assert_array_equal(asked(Recorded(forecasts), [2, 0]), forecasts[[2, 0]])
    np.testing.assert_array_equal(asked(Recorded(forecasts), [2, 0], days(8, 9)), forecasts[[2, 0]])


def test_with_times_the_time_counts_whatever_the_origin_is(forecasts: Floats) -> None:
    recorded = Recorded(forecasts, days(1, 3, 4, 9))
    np.testing.assert_array_equal(asked(recorded, [0, 1], days(9, 3)), forecasts[[3, 1]])


def test_recorded_keeps_its_own_read_only_copies(forecasts: Floats) -> None:
    times = days(1, 2, 3, 4)
    recorded = Recorded(forecasts, times)
    forecasts[:], times[:] = 0, times[0]
    assert asked(recorded, [0], days(4))[0, 2, 1] == 23
    assert not recorded.forecasts.flags.writeable
    assert recorded.times is not None
    assert not recorded.times.flags.writeable


@given(st.data())
def test_silence_is_what_is_not_recorded(data: st.DataObject) -> None:
    recorded_days = sorted(data.draw(st.sets(st.integers(1, 28), min_size=1)))
    empty = set(data.draw(st.lists(st.sampled_from(recorded_days))))
    forecasts = np.array([np.full((1, 1), np.nan if day in empty else day) for day in recorded_days], dtype=float)
    wanted = data.draw(st.lists(st.integers(1, 28), min_size=1))
    recorded = Recorded(forecasts, days(*recorded_days))
    speaks = speaking(recorded, np.zeros(len(wanted), dtype=np.int64), days(*wanted))
    assert speaks.tolist() == [day in recorded_days and day not in empty for day in wanted]
    heard = [day for day, says in zip(wanted, speaks, strict=True) if says]
    if heard:
        found = recorded.forecast(Query(np.zeros((len(heard), 1, 1)), np.zeros(len(heard), dtype=int), days(*heard)))
        assert found.ravel().tolist() == heard


@pytest.mark.parametrize("origins", [[0, 2, -1], [0, -1, 1], [2, 4, 1], [4]])
def test_recorded_names_the_first_silent_origin(forecasts: Floats, origins: list[int]) -> None:
    forecasts[1] = np.nan
    recorded = Recorded(forecasts)
    assert recorded.speaks_at(np.array(origins), None).tolist() == [k in (0, 2, 3) for k in origins]
    first = next(k for k in origins if k in (-1, 1, 4))
    with pytest.raises(ForecasterError, match=f"no forecast is recorded for origin {first};"):
        asked(recorded, origins)


def test_recorded_names_the_time_that_is_silent(forecasts: Floats) -> None:
    with pytest.raises(ForecasterError, match=r"origin 8 \(2024-01-05T00:00:00\)"):
        asked(Recorded(forecasts, days(1, 2, 3, 4)), [7, 8], days(4, 5))


def test_a_forecast_in_part_is_an_error_at_its_place(forecasts: Floats) -> None:
    forecasts[1, 2, 0] = np.nan
    recorded = Recorded(forecasts)
    assert recorded.speaks_at(np.array([1]), None).all()
    with pytest.raises(ForecasterError, match="nan at lead 3, channel 'a', for origin 1; every value must be finite"):
        asked(recorded, [0, 1])


def test_recorded_by_time_needs_times_of_its_kind(forecasts: Floats) -> None:
    recorded = Recorded(forecasts, days(1, 2, 3, 4))
    with pytest.raises(ForecasterError, match=r"asked for without times; pass times of that kind"):
        asked(recorded, [0])
    with pytest.raises(ForecasterError, match="with times such as 7"):
        asked(recorded, [0], np.array([7]))


def test_the_record_tells_contents_apart(forecasts: Floats) -> None:
    alike = {Recorded(forecasts).record, Recorded(forecasts.tolist()).record}
    others = {
        Recorded(forecasts + 1e-12).record,
        Recorded(forecasts[1:]).record,
        Recorded(forecasts.reshape(ROWS, CHANNELS, HORIZON)).record,
    }
    assert (len(alike), len(others - alike)) == (1, 3)
    assert Recorded(forecasts, days(1, 2, 3, 4)).record == ""  # found by time: no mistake to be made


def test_what_is_masked_is_not_recorded() -> None:
    made = np.ma.masked_array(np.ones((3, 2, 1)), mask=False)
    made[1] = np.ma.masked
    assert Recorded(made).speaks_at(np.arange(3), None).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("made", "times", "kind", "words"),
    [
        (np.zeros((3, 2)), None, ShapeError, r"shape \(3, 2\)"),
        (np.zeros((0, 2, 1)), None, ShapeError, "non-empty"),
        (np.zeros((2, 2, 1)) + 1j, None, DtypeError, "complex128"),
        (np.zeros((2, 2, 1)), [1], ShapeError, "2 forecasts and 1 times"),
        (np.zeros((2, 2, 1)), [2, 1], TimeOrderError, "1 comes after 2"),
        (np.zeros((2, 2, 1)), [1, 1], TimeOrderError, "1 appears twice"),
    ],
)
def test_recorded_refuses_what_it_cannot_use(made: Floats, times: Times, kind: type[OmpbError], words: str) -> None:
    with pytest.raises(kind, match=words):
        Recorded(made, times)
