"""A process that is killed costs time, and nothing else."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from mortal import MortalGrid, timeless
from small_etth import HORIZON

from ompb.bench.executors import Died, Ended, Executor, Found, InTurn, Processes
from ompb.bench.executors.contract import Status
from ompb.bench.store import Store, collect
from ompb.errors import OptionError


@pytest.fixture
def grid(tmp_path: Path) -> MortalGrid:
    return MortalGrid.write(tmp_path)


def test_a_killed_process_costs_a_second_try(grid: MortalGrid, tmp_path: Path) -> None:
    done = subprocess.run(grid.command(tmp_path / "killed", "--jobs", "2"), capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "6 cells finished, 0 were there already, 0 failed" in done.stdout
    assert timeless(tmp_path / "killed") == grid.undisturbed()


def test_a_cell_that_kills_every_process_is_named_and_the_others_finish(grid: MortalGrid, tmp_path: Path) -> None:
    (tmp_path / "deadly").touch()
    methods = ("dies always", "last", "bias")
    done = subprocess.run(
        grid.command(tmp_path / "store", "--jobs", "2", methods=methods), capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (1, "")
    cells = ", ".join(f"etth ridge {HORIZON} {split} honest dies always 0" for split in ("id", "ood"))
    assert f"{cells} failed: its process died 2 times (the last time: SIGKILL)\n" in done.stdout
    assert "4 cells finished, 0 were there already, 2 failed" in done.stdout
    assert [result.cell.method for result in collect(Store(tmp_path / "store"))] == ["bias", "last"] * 2


def test_processes_end_with_the_command(grid: MortalGrid, tmp_path: Path) -> None:
    """The command is killed, and no process it started is left."""
    command = subprocess.Popen(grid.command(tmp_path / "store", "--jobs", "2"), stdout=subprocess.DEVNULL)
    while not (workers := children(command.pid)):
        assert command.poll() is None
        time.sleep(0.01)  # the processor is for those who are waited for
    command.kill()
    command.wait()
    for worker in workers:
        while worker.exists():
            time.sleep(0.01)


def children(process: int) -> list[Path]:
    """Folders of /proc, each of which is there while a child of a process is."""
    if not Path("/proc/self/task").exists():
        pytest.skip("there is no /proc here, which tells the children of a process")
    try:
        found = Path(f"/proc/{process}/task/{process}/children").read_text()
    except FileNotFoundError:
        return []
    return [Path(f"/proc/{child}") for child in found.split()]


@dataclass(frozen=True)
class Count:
    """Yields 0, 1, ... and then ends as told."""

    numbers: int
    end: str = "well"

    def __call__(self, status: Status) -> Iterator[int]:
        for number in range(self.numbers):
            status(f"number {number}")
            yield number
        if self.end == "raises":
            raise KeyError(self.end)
        if self.end == "exits":
            os._exit(3)
        if self.end == "killed":
            os.kill(os.getpid(), signal.SIGTERM)
            signal.pause()


@pytest.mark.parametrize("executor", [InTurn(), Processes(1)], ids=["in turn", "processes"])
def test_findings_come_in_order_task_after_task(executor: Executor) -> None:
    first, second = Count(2), Count(0)
    with executor:
        executor.start(first)
        assert [executor.wait() for _ in range(3)] == [Found(first, 0), Found(first, 1), Ended(first)]
        executor.start(second)
        assert executor.wait() == Ended(second)


@pytest.mark.parametrize("executor", [InTurn(), Processes(1)], ids=["in turn", "processes"])
def test_what_a_task_raises_is_raised(executor: Executor) -> None:
    with executor:
        executor.start(Count(0, "raises"))
        with pytest.raises((KeyError, RuntimeError), match="raises"):
            executor.wait()


def test_a_task_may_say_what_it_is_doing() -> None:
    said: list[str] = []
    with InTurn(said.append) as executor:
        executor.start(Count(2))
        executor.wait()
        executor.wait()
    assert said == ["number 0", "number 1"]


@pytest.mark.parametrize(("end", "how"), [("exits", "exit status 3"), ("killed", "SIGTERM")])
def test_findings_before_a_death_are_kept_and_the_next_process_is_another(end: str, how: str) -> None:
    mortal, other = Count(1, end), Count(1)
    with Processes(1) as executor:
        executor.start(mortal)
        assert [executor.wait(), executor.wait()] == [Found(mortal, 0), Died(mortal, how)]
        executor.start(other)
        assert [executor.wait(), executor.wait()] == [Found(other, 0), Ended(other)]


def test_jobs_are_counted_from_one() -> None:
    with pytest.raises(OptionError, match=re.escape("jobs = 0")):
        Processes(0)
