"""Tasks on a Ray cluster, whose machines see the same folders as this one; one that dies is not tried again by Ray."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, Self

from ompb.bench.executors.contract import Died, Ended, Event, Found, Task, silent
from ompb.floor import checks
from ompb.floor.extras import extra

with extra("ray", needed_by="the executor ray"):
    import ray
    from ray.exceptions import RayError, RayTaskError


class RayTasks:
    """An executor of as many tasks at once as asked for, else as the cluster has processors.

    Connects to the cluster that RAY_ADDRESS names, else starts one on this machine, unless that has been done.
    """

    is_here = False

    def __init__(self, jobs: int | None = None, device: str = "cpu") -> None:
        if not ray.is_initialized():
            ray.init(log_to_driver=False, logging_level=logging.WARNING)
        there: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        self.slots = max(1, int(there.get("CPU", 1))) if jobs is None else checks.count("jobs", jobs)
        gpus = min(1.0, there.get("GPU", 0.0) / self.slots) if device != "cpu" else 0.0
        self._findings = _findings.options(num_gpus=gpus)
        self._at_work: dict[Any, Task] = {}

    def start(self, task: Task) -> None:
        """Leave it to Ray where."""
        self._at_work[self._findings.remote(task)] = task

    def wait(self) -> Event:
        """What the first task has to say that has something to say."""
        ready: list[Any] = ray.wait(list(self._at_work), num_returns=1, fetch_local=False)[0]
        findings = ready[0]
        task = self._at_work[findings]
        try:
            return Found(task, ray.get(next(findings)))
        except StopIteration:
            event: Event = Ended(task)
        except RayTaskError:
            raise
        except RayError as error:
            event = Died(task, " ".join(str(error).split()))
        del self._at_work[findings]
        return event

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for findings in self._at_work:
            ray.cancel(findings, force=True)


@ray.remote(max_retries=0, num_returns="streaming")  # who retries is the one who knows what was found
def _findings(task: Task) -> Iterator[Any]:
    yield from task(silent)
