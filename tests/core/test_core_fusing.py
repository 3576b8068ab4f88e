"""Fused functions: run as they are, or left to a caller; rules that have made all they keep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest

from ompb.core.fusing import calling, fused, prepared
from ompb.core.rings import vectors_from


@fused
def twice(values: Any, plus: int) -> Any:
    """2 x + plus."""
    return 2 * values + plus


def test_a_fused_function_is_itself_until_somebody_calls_it() -> None:
    seen: list[tuple[str, tuple[Any, ...]]] = []

    def caller(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
        seen.append((function.__name__, arguments))
        return -function(*arguments)

    assert (twice(3, 1), twice.__doc__) == (7, "2 x + plus.")
    with calling(caller):
        assert twice(3, 1) == -7
        with calling(None):
            assert twice(4, 1) == 9
        assert twice(5, 1) == -11
    assert twice(3, 1) == 7
    assert seen == [("twice", (3, 1)), ("twice", (5, 1))]


def test_an_error_leaves_nobody_calling() -> None:
    with pytest.raises(TypeError), calling(lambda function, arguments: function(*arguments)):
        twice(None, 1)
    assert twice(1, 1) == 3


@dataclass(frozen=True)
class Rules:
    parts: tuple[Rules, ...] = ()

    @cached_property
    def kept(self) -> int:
        return len(self.parts)


def test_prepared_rules_have_made_all_that_they_keep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rules, "__module__", "ompb.core.rules")
    rules = Rules((Rules(), Rules((Rules(),))))
    prepared(rules)
    assert [vars(one)["kept"] for one in (rules, *rules.parts, *rules.parts[1].parts)] == [2, 0, 1, 0]


def test_vectors_are_gathered_where_a_place_is_an_array() -> None:
    ring = np.arange(24.0).reshape((2, 6, 2))
    np.testing.assert_array_equal(vectors_from(ring, np.asarray(2), 3), vectors_from(ring, 2, 3))
