"""Where tasks run: one small contract, and a file for each way to meet it.

A task is work that can be sent to another process. What it finds comes back one by one, so that what was found before
its process died is not lost.
"""

from ompb.bench.executors.contract import Died, Ended, Event, Executor, Found, Task
from ompb.bench.executors.in_turn import InTurn
from ompb.bench.executors.processes import Processes

__all__ = ["Died", "Ended", "Event", "Executor", "Found", "InTurn", "Processes", "Task"]
