"""Options: what is accepted becomes a plain Python value, what is not gets an error that says what is."""

from __future__ import annotations

import dataclasses
import inspect
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import ompb
from ompb.errors import NotFiniteError, OptionError
from ompb.settings import PARAMETERS

ROWS = np.random.default_rng(0).normal(size=(200, 2)).cumsum(axis=0)


def last(windows: Any) -> Any:
    return np.repeat(windows[:, -1:], 4, axis=1)


def fit(source: Any = ROWS, **options: Any) -> ompb.Calibrator:
    return ompb.Calibrator.fit(last, source, context=12, horizon=4, season=None, **options)


@pytest.mark.parametrize(
    ("name", "given", "kept"),
    [
        ("anchor", Fraction(800), 800.0),
        ("anchor", np.float32(100), 100.0),
        ("patience", np.int64(5), 5),
        ("patience", np.uint8(0), 0),
        ("profile", np.bool_(False), False),
        ("discounts", [np.float64(0.9), 1], (0.9, 1.0)),
        ("discounts", np.asarray([0.99, 0.999]), (0.99, 0.999)),
        ("guard", None, None),
        ("guard", 30, 30.0),
        ("members", ["backbone", "head"], ("backbone", "head")),
        ("stride", None, None),
        ("spans", [np.int64(1), 3], (1, 3)),
        ("gate_discounts", [1, np.float32(0.5)], (1.0, 0.5)),
        ("cautions", (5, Fraction(1, 2)), (5.0, 0.5)),
        ("novelty", 0, 0.0),
        ("novelty_fade", 3, 3.0),
    ],
)
def test_numbers_of_any_make_become_pythons_own(name: str, given: Any, kept: Any) -> None:
    found = getattr(ompb.Settings.of(**{name: given}), name)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("anchor", 10**400),
        ("anchor", Fraction(10**400)),
        ("anchor", Decimal("NaN")),
        ("tau_d_factor", 1e300),
        ("variance_factor", 1e300),
        ("evidence", 1e9),
        ("draws", 1_000_000),
        ("draws", 1),
        ("ring", 10**12),
        ("patience", 2.0),
        ("patience", -1),
        ("patience", True),
        ("guard", 0.0),
        ("guard", "off"),
        ("guard_rows", -1),
        ("members", "backbone"),
        ("members", ("head",)),
        ("members", ("backbone", "head", "head")),
        ("members", ("backbone", "crystal ball")),
        ("intervals", "guess"),
        ("kind", "guess"),
        ("conformal_rate", np.inf),
        ("spans", ()),
        ("spans", "12"),
        ("spans", 1),
        ("spans", (2, 4)),
        ("spans", (1, 4, 2)),
        ("spans", (1, 2, 2)),
        ("spans", (1, 1001)),
        ("gate_discounts", ()),
        ("gate_discounts", 0.9),
        ("gate_discounts", (0.9, 0.0)),
        ("gate_discounts", (0.9, 1.1)),
        ("cautions", (200.0, 0.0)),
        ("cautions", (200.0,)),
        ("cautions", (200.0, 20.0, 2.0)),
        ("novelty", -1),
        ("novelty", np.nan),
        ("novelty_fade", 0.0),
    ],
)
def test_what_is_out_of_range_is_named_with_what_is_accepted(name: str, given: Any) -> None:
    with pytest.raises(OptionError, match=rf"option {name} = .*; accepted: "):
        ompb.Settings.of(**{name: given})


@pytest.mark.parametrize("name", ["guard", "stride"])
def test_none_is_named_where_it_is_accepted(name: str) -> None:
    assert getattr(ompb.Settings.of(**{name: None}), name) is None
    with pytest.raises(OptionError, match="accepted: None, or "):
        ompb.Settings.of(**{name: "none"})


@pytest.mark.parametrize("count", [1, 3])
def test_there_are_as_many_speeds_as_cautions(count: int) -> None:
    speeds = {"gate_discounts": (0.99, 0.9, 0.5)[:count], "cautions": (100.0, 10.0, 1.0)[:count]}
    stream = fit(**speeds).stream(last)
    forecasts = [f for f in map(stream.step, ROWS) if f is not None]
    assert stream._state.online.gate.rows.shape == (2, count)
    assert np.isfinite([f.mean for f in forecasts]).all()


@pytest.mark.parametrize("unseen", [np.float32(0.25), np.float64(0.25), np.int64(50), 0.25, 50])
def test_the_unseen_part_by_any_number(unseen: Any) -> None:
    np.testing.assert_array_equal(fit(unseen=unseen).centre, ROWS[:150].mean(axis=0))


def test_a_source_that_begins_without_a_known_cell_is_refused() -> None:
    empty = ROWS.copy()
    empty[:150] = np.nan
    with pytest.raises(NotFiniteError, match="no outcome is known in the part of the source that is learned from"):
        fit(empty)


def test_every_option_is_checked() -> None:
    """An object that is no value of any kind fits no option."""
    for field in dataclasses.fields(ompb.Settings):
        with pytest.raises(OptionError, match=field.name):
            ompb.Settings.of(**{field.name: object()})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"seasno": 3}, r"^unknown option 'seasno'; did you mean 'season'\? Accepted: members, .* season, "),
        ({"gates": "shared"}, r"^unknown option 'gates'; did you mean 'gate'\? Accepted: members, "),
        ({"zzz": 3}, r"^unknown option 'zzz'; accepted: members, .*; and to Calibrator\.fit: context, .* progress\.$"),
    ],
)
def test_an_unknown_option_is_told_the_nearest_name(given: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        fit(**given)


def test_a_parameter_of_fit_is_no_setting() -> None:
    for fitting in (ompb.Calibrator.fit, ompb.calibrate):
        parameters = inspect.signature(fitting).parameters.values()
        assert tuple(one.name for one in parameters if one.kind is one.KEYWORD_ONLY) == PARAMETERS
    with pytest.raises(OptionError, match=r"^'season' is a parameter of Calibrator\.fit and no setting; accepted: "):
        ompb.Settings.of(season=3)


def test_representations_are_short() -> None:
    cal = fit()
    stream = cal.stream(last)
    forecasts = [stream.step(row) for row in ROWS[:40]]
    run = ompb.backtest(cal, last, ROWS)
    ridge = ompb.Ridge.fit(ROWS, 12, 4)
    for value in (cal, stream, run, forecasts[-1], ridge, ompb.Recorded(np.zeros((500, 4, 2))), cal.scaler):
        assert len(repr(value)) < 200
        assert type(value).__name__ in repr(value)


def test_calibrators_can_be_compared_and_not_be_changed() -> None:
    cal = fit()
    assert cal == cal
    assert cal != fit()
    for array in (cal.centre, cal.scale):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0
    with pytest.raises(dataclasses.FrozenInstanceError):
        cal.horizon = 3  # type: ignore[misc]
