"""Tasks in processes of this machine. One that dies is replaced; the others do not notice."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Self

from ompb.bench.executors.contract import Died, Ended, Event, Found, Task, silent
from ompb.floor import checks

# Processes are started afresh: a copy of one in which torch has run may hang.
_SPAWN = get_context("spawn")


class Processes:
    """An executor of so many processes, each of which does one task after the other."""

    is_here = True

    def __init__(self, jobs: int) -> None:
        self.slots = checks.count("jobs", jobs)
        self._at_work: dict[Connection, tuple[_Worker, Task]] = {}
        self._idle: list[_Worker] = []

    def start(self, task: Task) -> None:
        """Hand it to a process that has nothing to do, else to a new one."""
        worker = self._idle.pop() if self._idle else _Worker.start()
        with suppress(ConnectionError):  # if it died idle, `wait` will say so
            worker.connection.send(task)
        self._at_work[worker.connection] = worker, task

    def wait(self) -> Event:
        """What the first process has to say that has something to say."""
        connection = wait(self._at_work)[0]
        assert isinstance(connection, Connection)
        worker, task = self._at_work[connection]
        try:
            said = connection.recv()
        except (EOFError, OSError):
            del self._at_work[connection]
            return Died(task, worker.end())
        if isinstance(said, _Said):
            return Found(task, said.value)
        if isinstance(said, _Raised):
            raise RuntimeError(f"a worker failed, which is a mistake in the program:\n{said.trace}")
        del self._at_work[connection]
        self._idle.append(worker)
        return Ended(task)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in (*self._idle, *(worker for worker, _ in self._at_work.values())):
            worker.process.terminate()
            worker.end()


@dataclass(frozen=True, slots=True)
class _Worker:
    process: SpawnProcess
    connection: Connection

    @classmethod
    def start(cls) -> _Worker:
        ours, theirs = _SPAWN.Pipe()
        process = _SPAWN.Process(target=_serve, args=(theirs,))
        process.start()
        theirs.close()  # else its end would not be noticed here
        return cls(process, ours)

    def end(self) -> str:
        """How the process ended, in words; waits until it has."""
        self.connection.close()
        self.process.join()
        status = self.process.exitcode or 0
        return signal.Signals(-status).name if status < 0 else f"exit status {status}"


@dataclass(frozen=True, slots=True)
class _Said:
    value: Any


@dataclass(frozen=True, slots=True)
class _Raised:
    trace: str


def _serve(connection: Connection) -> None:
    """Do the tasks that come in, and say what they find, then None."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process hears it, and ends this one
    _end_with_parent()
    with suppress(EOFError):
        while True:
            for said in _sayings(connection.recv()):
                connection.send(said)


def _sayings(task: Task) -> Iterator[_Said | _Raised | None]:
    try:
        for value in task(silent):
            yield _Said(value)
    except Exception:  # whatever it is, the first process raises it
        yield _Raised(traceback.format_exc())
    else:
        yield None


def _end_with_parent() -> None:
    """When the first process is killed, what it was waiting for is of no use."""
    parent = parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
