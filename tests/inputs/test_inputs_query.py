"""The seam: whatever a forecaster is or does, an answer of the right kind or a ForecasterError."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from ompb.errors import BusyError, ForecasterError, OmpbError, ShapeError
from ompb.rows.scaler import LIMIT, Scaler
from ompb.seam.query import Forecaster, Query, as_forecaster, ask, speaking
from ompb.types import Floats

N, CONTEXT, HORIZON, NAMES = 3, 5, 2, ("load", "wind")
SCALER = Scaler(np.array([100.0, 0.0]), np.array([10.0, 1.0]))


def query(**parts: Any) -> Query:
    return Query(np.arange(30.0).reshape(N, CONTEXT, 2), np.array([4, 5, 6]), **parts)


def asked(forecaster: Any, question: Query | None = None) -> Floats:
    return ask(as_forecaster(forecaster), question or query(), HORIZON, SCALER, NAMES).base


def last_rows(windows: Floats) -> Floats:
    return windows[:, -HORIZON:]


class Told(Forecaster):
    """Keeps what it was asked, then spoils it."""

    def forecast(self, query: Query) -> Any:
        self.query = query.copy()
        said = last_rows(query.windows)
        self.said = said.copy()
        query.windows[:], query.origins[:] = -1, -1
        if query.times is not None and query.future is not None:
            query.times[:], query.future[:] = query.times[0], -1
        return self.said


# What is a forecaster


def test_callables_and_derived_classes_are_forecasters() -> None:
    class Model:
        def predict(self, windows: Floats) -> Floats:
            return last_rows(windows)

        __call__ = predict

    expected = last_rows(query().windows)
    for forecaster in (last_rows, Model(), Model().predict, Told(), as_forecaster(last_rows)):
        np.testing.assert_array_equal(asked(forecaster), expected)
    told = Told()
    assert as_forecaster(told) is told


@pytest.mark.parametrize("candidate", [3, None, "ridge", np.zeros((3, 2, 2)), [last_rows]])
def test_things_that_cannot_be_asked_are_refused(candidate: Any) -> None:
    with pytest.raises(ForecasterError, match=f"is a {type(candidate).__name__}; accepted: a callable"):
        as_forecaster(candidate)


def test_an_object_with_a_forecast_method_is_told_what_to_do() -> None:
    class Model:
        def forecast(self, windows: Floats) -> Floats:
            return last_rows(windows)

    with pytest.raises(ForecasterError, match=r"is a Model.*pass its method, model\.forecast.*derive its class"):
        as_forecaster(Model())
    np.testing.assert_array_equal(asked(Model().forecast), last_rows(query().windows))
    with pytest.raises(ForecasterError, match="the class Model itself; pass an instance"):
        as_forecaster(Model)


@pytest.mark.parametrize("other", [np.add, np.add.at, lambda: 1, np.copyto])
def test_callables_of_another_kind_are_refused_when_asked(other: Any) -> None:
    with pytest.raises(ForecasterError, match=r"failed on windows of shape \(3, 5, 2\)"):
        asked(other)


# What it is told


def test_it_is_told_origins_times_and_covariates_in_copies() -> None:
    times = np.array(["2024-01-01", "2024-01-02", "2024-01-03"], dtype="datetime64[us]")
    question, told = query(times=times, future=np.ones((N, HORIZON, 4))), Told()
    before = question.copy()
    answer = asked(told, question)
    for name in ("windows", "origins", "times", "future"):
        np.testing.assert_array_equal(getattr(told.query, name), getattr(before, name))
        np.testing.assert_array_equal(getattr(question, name), getattr(before, name))
    told.said[:] = 0
    np.testing.assert_array_equal(answer, last_rows(before.windows))


def test_without_times_and_covariates_it_is_told_so() -> None:
    told = Told()
    asked(told)
    assert (told.query.times, told.query.future) == (None, None)


# What it answers

ANSWERS: list[tuple[str, Callable[[Floats], Any]]] = [
    ("integers", lambda w: last_rows(w).astype(int)),
    ("float32", lambda w: last_rows(w).astype(np.float32)),
    ("lists", lambda w: last_rows(w).tolist()),
    ("a tensor", lambda w: torch.from_numpy(last_rows(w))),
    ("a tensor with a gradient", lambda w: torch.from_numpy(last_rows(w)).requires_grad_()),
    ("nothing masked", lambda w: np.ma.masked_array(last_rows(w))),
    ("a view in another order", lambda w: np.asfortranarray(last_rows(w))),
]


@pytest.mark.parametrize("answer", [a for _, a in ANSWERS], ids=[n for n, _ in ANSWERS])
def test_real_numbers_of_any_make_are_understood(answer: Callable[[Floats], Any]) -> None:
    said = asked(answer)
    assert (said.dtype, said.flags.c_contiguous, said.flags.writeable) == (np.dtype(np.float64), True, True)
    np.testing.assert_array_equal(said, last_rows(query().windows))


def full(value: Any, dtype: Any = None) -> Callable[[Floats], Any]:
    return lambda windows: np.full((len(windows), HORIZON, 2), value, dtype=dtype)


REFUSED: list[tuple[str, Any, str]] = [
    ("complex", full(1j), "dtype complex128; accepted: real numbers"),
    ("booleans", full(True), "dtype bool"),
    ("dates", full(np.datetime64("2024-01-01")), "dtype datetime64"),
    ("durations", full(np.timedelta64(1, "s")), "dtype timedelta64"),
    ("text", full("1.0"), "dtype <U3"),
    ("objects", full(1.0, object), "dtype object"),
    ("nothing", lambda _: None, "dtype object"),
    ("ragged", lambda _: [[1.0], [1.0, 2.0]], "a list that is no array of numbers"),
    ("bfloat16", lambda w: torch.ones(len(w), HORIZON, 2, dtype=torch.bfloat16), "a Tensor that is no array"),
    ("one horizon", lambda w: w[:, -1], r"shape \(3, 2\); accepted: \(3, 2, 2\) = \(n, horizon, C\)\.$"),
    ("another horizon", lambda w: w, r"shape \(3, 5, 2\)"),
    ("one window", lambda w: last_rows(w)[:1], r"shape \(1, 2, 2\)"),
    ("quantiles", lambda w: last_rows(w)[..., None].repeat(9, -1), "an ompb.Forecaster that declares them"),
    ("missing", full(np.nan), "nan at lead 1, channel 'load', for origin 4; every value must be finite"),
    ("infinite", full(-np.inf), "-inf at lead 1"),
    ("masked", lambda w: np.ma.masked_equal(last_rows(w), 9.0), "nan at lead 2, channel 'wind', for origin 4"),
    ("too large", full(1e160), r"1e\+160 .* within 1e\+06 source standard deviations of the source mean"),
    ("as large as can be", full(-1.7e308), "within 1e"),
]


@pytest.mark.parametrize(("answer", "words"), [r[1:] for r in REFUSED], ids=[r[0] for r in REFUSED])
def test_other_answers_are_refused(answer: Any, words: str) -> None:
    with pytest.raises(ForecasterError, match=words):
        asked(answer)


def test_the_limit_is_in_source_deviations_of_each_channel() -> None:
    def said(load: float, wind: float) -> Callable[[Floats], Floats]:
        return lambda windows: np.tile([load, wind], (len(windows), HORIZON, 1))

    asked(said(100 + 10 * LIMIT, -LIMIT))
    with pytest.raises(ForecasterError, match="channel 'load'"):
        asked(said(101 + 10 * LIMIT, 0))
    with pytest.raises(ForecasterError, match="channel 'wind'"):
        asked(said(100 + 10 * LIMIT, -LIMIT - 1))


def test_messages_name_the_place_and_the_time() -> None:
    times = np.array(["2024-01-01T00:00", "2024-01-01T01:00", "2024-01-01T02:00"], dtype="datetime64[us]")

    def one_hole(windows: Floats) -> Floats:
        said = last_rows(windows).copy()
        said[2, 1, 0] = np.nan
        return said

    words = r"lead 2, channel 'load', for origin 6 \(2024-01-01T02:00:00\)"
    with pytest.raises(ForecasterError, match=words):
        asked(one_hole, query(times=times))


# What it raises


@pytest.mark.parametrize(
    "error",
    [TypeError, KeyError, ZeroDivisionError, MemoryError, RecursionError, AssertionError, ShapeError],
)
def test_whatever_it_raises_is_the_cause(error: type[Exception]) -> None:
    def failing(_: Floats) -> Floats:
        raise error("out of order")

    with pytest.raises(ForecasterError, match=f"{error.__name__}: .*out of order") as caught:
        asked(failing)
    assert isinstance(caught.value.__cause__, error)
    assert isinstance(caught.value, OmpbError)


def test_a_message_that_ends_in_a_full_stop_gets_no_second_one() -> None:
    def failing(_: Floats) -> Floats:
        raise ValueError("Pass a shorter season.")

    with pytest.raises(ForecasterError, match=r"Pass a shorter season\. It must accept"):
        asked(failing)
    with pytest.raises(ForecasterError, match=r"inhomogeneous part\. Return floats"):
        asked(lambda _: [[1.0], [1.0, 2.0]])


def test_a_forecaster_that_calls_a_busy_stream_is_told_so() -> None:
    def failing(_: Floats) -> Floats:
        raise BusyError("at work")

    with pytest.raises(BusyError, match="at work"):
        asked(failing)


def test_what_it_says_of_itself_stands_and_stopping_is_no_failure() -> None:
    def failing(error: BaseException) -> Callable[[Floats], Floats]:
        def forecaster(_: Floats) -> Floats:
            raise error

        return forecaster

    with pytest.raises(ForecasterError, match=r"^my own words$"):
        asked(failing(ForecasterError("my own words")))
    for stop in (KeyboardInterrupt(), SystemExit()):
        with pytest.raises(type(stop)):
            asked(failing(stop))


# When it speaks


class Daily(Forecaster):
    def __init__(self, says: Callable[[Any, Any], Any]) -> None:
        self.says = says

    def forecast(self, query: Query) -> Any:
        return last_rows(query.windows)

    def speaks_at(self, origins: Any, times: Any) -> Any:
        return self.says(origins, times)


def test_a_forecaster_may_be_silent() -> None:
    origins: NDArray[np.int64] = np.arange(6)
    assert speaking(as_forecaster(last_rows), origins, None).all()
    assert speaking(Daily(lambda at, _: at % 3 == 0), origins, None).tolist() == [True, False, False] * 2
    assert speaking(Daily(lambda at, _: (at % 2 == 0).tolist()), origins, None).sum() == 3


@pytest.mark.parametrize(
    ("says", "words"),
    [
        (lambda at, _: at, "int64 of shape"),
        (lambda at, _: at[1:] > 0, r"bool of shape \(5,\); accepted: bool of shape \(6,\)"),
        (lambda _at, _times: True, r"shape \(\)"),
        (lambda at, times: times > at, "TypeError"),
        (lambda _at, _times: [[True], []], "ValueError"),
    ],
)
def test_when_it_speaks_is_checked(says: Callable[[Any, Any], Any], words: str) -> None:
    with pytest.raises(ForecasterError, match=words):
        speaking(Daily(says), np.arange(6), None)
