"""Functions that a compiler may make a few kernels of, where many lanes are followed on a device.

A step is some hundred small operations. Each of them costs a launch and a pass over all lanes; compiled together they
cost a few of both. A *fused* function makes arrays of arrays, of values made of them and of rules, and changes nothing
but dead places. No whole number of the clock reaches it but as an array, since a compiler makes a program of its own
for every other one: places in rings are found by whoever calls it.

Which functions are fused is said here once; whether they are compiled, and how, by whoever follows the rows. NumPy runs
them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property, wraps
from typing import Any, ParamSpec, TypeAlias, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

# Calls a fused function with its arguments; whole numbers among them must reach it as arrays ().
Caller: TypeAlias = Callable[[Callable[..., Any], tuple[Any, ...]], Any]

_CALLER: ContextVar[Caller | None] = ContextVar("caller of fused functions", default=None)


def fused(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """The same function, left to the caller where there is one; its arguments are given by place."""

    @wraps(function)
    def call(*arguments: _Arguments.args, **none: _Arguments.kwargs) -> _Result:
        caller = _CALLER.get()
        if caller is None:
            return function(*arguments, **none)
        result: _Result = caller(function, arguments)
        return result

    return call


@contextmanager
def calling(caller: Caller | None) -> Iterator[None]:
    """Leave fused functions to a caller, as long as this lasts; None: they run as they are."""
    before = _CALLER.set(caller)
    try:
        yield
    finally:
        _CALLER.reset(before)


def prepared(rules: Any) -> None:
    """Let rules, and those within them, make all that they keep once it is made: a program keeps nothing."""
    for kind in type(rules).__mro__:
        for name, found in vars(kind).items():
            if isinstance(found, cached_property):
                getattr(rules, name)
    for part in list(vars(rules).values()):
        for one in part if type(part) is tuple else (part,):
            if type(one).__module__.startswith("ompb.") and hasattr(one, "__dict__"):
                prepared(one)
