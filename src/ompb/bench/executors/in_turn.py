"""Tasks one after the other in this process."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self

from ompb.bench.executors.contract import Ended, Event, Found, Status, Task, silent


class InTurn:
    """An executor with one slot, whose tasks can tell what they are doing."""

    slots = 1
    is_here = True

    def __init__(self, status: Status = silent) -> None:
        self._status = status
        self._at_work: tuple[Task, Iterator[Any]]

    def start(self, task: Task) -> None:
        """Remember it."""
        self._at_work = task, task(self._status)

    def wait(self) -> Event:
        """Work until something is found."""
        task, findings = self._at_work
        for value in findings:
            return Found(task, value)
        return Ended(task)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to give back."""
