"""Beyond one process: fleets in shards, fits and backtests in chunks, on a Ray cluster.

Ray gives places and new processes; that each row is learned once is a property of snapshots with their tick inside, and
of a log that can be read again. Connect with ``ray.init`` first; else Ray starts a cluster on this machine.
"""

from ompb.floor.extras import extra

with extra("ray", needed_by="ompb.ray"):
    import ray as _ray  # noqa: F401

from ompb.ray.batch import backtest, calibrate
from ompb.ray.log import Log, Sink
from ompb.ray.part import Part
from ompb.ray.sharded import Shards, shards

__all__ = ["Log", "Part", "Shards", "Sink", "backtest", "calibrate", "shards"]
