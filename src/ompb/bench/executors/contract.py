"""What an executor is asked for: start a task, and say what happens next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias

Status: TypeAlias = Callable[[str], None]


def silent(doing: str) -> None:
    """Keep what is being done to oneself."""


class Task(Protocol):
    """Work that can be pickled, and whose findings can."""

    def __call__(self, status: Status) -> Iterator[Any]:
        """Do it, and yield each finding; ``status`` is told what is being done."""


@dataclass(frozen=True, slots=True)
class Found:
    """A task yielded something."""

    task: Any  # as it was started
    value: Any


@dataclass(frozen=True, slots=True)
class Ended:
    """A task has yielded all it had."""

    task: Any  # as it was started


@dataclass(frozen=True, slots=True)
class Died:
    """The process of a task is gone, and with it what was not found yet."""

    task: Any  # as it was started
    how: str


Event: TypeAlias = Found | Ended | Died


class Executor(Protocol):
    """Runs up to ``slots`` tasks at once. What a task raises is raised by `wait`."""

    @property
    def is_here(self) -> bool:
        """Whether tasks run on this machine, so that its devices are theirs."""

    @property
    def slots(self) -> int:
        """How many tasks may be at work."""

    def start(self, task: Task) -> None:
        """Let a task begin; asked for only while a slot is free."""

    def wait(self) -> Event:
        """The next event of the tasks at work; there is at least one."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
