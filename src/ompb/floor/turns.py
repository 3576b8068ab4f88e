"""One call at a time: a second one, from another thread or from a forecaster that is being asked, is refused.

Copies are no calls: they can be made at any time, of a state that stays good until the next one has been taken.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from ompb.errors import BusyError

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_State = TypeVar("_State")

COPIES = 100  # made of a state while others take its place, before they are given up


class Mark:
    """Lives as long as a call is at work."""


class Turns:
    """Whose turn it is: the earliest call whose mark, which dies with the call however that ends, is alive.

    A list's own operations are indivisible, so it needs no lock, which an interrupt could leave locked for good.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._calls: list[weakref.ref[Mark]] = []

    def enter(self, mark: Mark) -> None:
        """Take the turn, or raise `BusyError`. The caller drops the mark when it is done."""
        call = weakref.ref(mark)
        del mark  # a traceback may keep this frame alive
        self._calls.append(call)
        for earlier in self._calls.copy():
            if earlier is call:
                return
            if earlier() is not None:
                self._calls.remove(call)
                raise BusyError(
                    f"this {self._what} is at work on another row; make one call after the other, from one thread, and "
                    "not from its own forecaster. For several threads, give each series a stream of its own."
                )
            with suppress(ValueError):  # another call has just done so
                self._calls.remove(earlier)


def copied(now: Callable[[], _State], copy: Callable[[_State], _Result], what: str) -> _Result:
    """A copy of the present state, whoever is at work on the next one; ``now`` says which is present.

    A call writes to buffers that states share, where the present one does not read. The one after it may write where
    that one does: so a copy is good if its state is still the present one when it is done.
    """
    for _ in range(COPIES):
        state = now()
        done = copy(state)
        if now() is state:
            return done
    raise BusyError(
        f"this {what} takes in rows faster than it can be copied; save, copy or take from it between two rows."
    )


class TakesTurns(Protocol):
    """What makes one call at a time."""

    _turns: Turns


_Owner = TypeVar("_Owner", bound=TakesTurns)


def in_turn(
    method: Callable[Concatenate[_Owner, _Arguments], _Result],
) -> Callable[Concatenate[_Owner, _Arguments], _Result]:
    """The same method, refused with `BusyError` while another call is at work."""

    @wraps(method)
    def call(self: _Owner, /, *arguments: _Arguments.args, **named: _Arguments.kwargs) -> _Result:
        mark = Mark()
        try:
            self._turns.enter(mark)
            return method(self, *arguments, **named)
        finally:
            del mark  # a traceback may keep this frame alive

    return call
