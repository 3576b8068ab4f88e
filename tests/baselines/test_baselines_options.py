"""Options by name in the place of published settings."""

from dataclasses import dataclass, field

import pytest

from ompb.baselines.options import with_options
from ompb.errors import OptionError


@dataclass(frozen=True)
class Inner:
    width: int = 3
    depth: int = 2


@dataclass(frozen=True)
class Outer:
    rate: float = 0.1
    inner: Inner = field(default_factory=Inner)


def test_options_replace_what_they_name_and_nothing_else() -> None:
    published = Outer(rate=0.5)
    assert with_options(published, {}) == published
    assert with_options(published, {"inner": {"width": 9}}) == Outer(0.5, Inner(9, 2))
    assert with_options(published, {"rate": 2.0, "inner": Inner(1, 1)}) == Outer(2.0, Inner(1, 1))
    assert published == Outer(rate=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"speed": 1}, "Outer has no option 'speed'; accepted: inner, rate."),
        ({"inner": {"height": 1}}, "Inner has no option 'height'; accepted: depth, width."),
    ],
)
def test_an_unknown_option_is_told_with_those_that_are_accepted(options: dict[str, object], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        with_options(Outer(), options)
    assert str(caught.value) == message
