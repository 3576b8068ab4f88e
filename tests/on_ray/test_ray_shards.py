"""Shards of a fleet: whoever dies, the results are those of a run in which nobody did."""

import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import followed
import pytest

from ompb.fleet.fleet import Fleet

Loopback = Callable[..., CompletedProcess[str]]
pytestmark = pytest.mark.slow  # to start Ray takes seconds


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The digest of the results of one fleet in this process."""
    sink = followed.Folder(tmp_path_factory.mktemp("results"))
    fleet = Fleet(followed.calibrator(), followed.last_value, followed.IDS)
    for at, rows, late in filter(None, followed.log(None)):
        for when, cells in late.items():
            fleet.observe(when, cells)
        forecast = fleet.step(rows, at=at)
        assert forecast is not None
        sink.write(at, [followed.picked(forecast)])
    return sink.digest()


def test_a_worker_may_die_at_any_moment(undisturbed: str, tmp_path: Path, loopback: Loopback) -> None:
    moments = ("nobody", "step", "before", "during", "after")
    done = loopback([sys.executable, "-W", "error", followed.__file__, tmp_path, *moments])
    lines = [line.split() for line in done.stdout.splitlines() if "(raylet)" not in line]  # Ray tells of deaths too
    assert [line[:2] for line in lines] == [[moment, undisturbed] for moment in moments], done.stderr
    assert [(tmp_path / moment / "died").exists() for moment in moments] == [False, True, True, True, True]
    assert all(int(line[2]) <= 3 * 4 for line in lines)  # snapshots that nobody needs are gone


# A cluster that outlives the process that follows: killed, and started again.
OUTLIVED = """
import os, subprocess, sys
import ray
cluster = ray.init(num_cpus=2, log_to_driver=False)
os.environ["RAY_ADDRESS"] = cluster["address"]
print(subprocess.run([sys.executable, *sys.argv[1:]]).returncode, flush=True)
subprocess.run([sys.executable, *sys.argv[1:]], check=True)
"""


def test_the_driver_may_die(undisturbed: str, tmp_path: Path, loopback: Loopback) -> None:
    done = loopback([sys.executable, "-c", OUTLIVED, followed.__file__, tmp_path, "driver"])
    assert done.stdout.split()[:3] == [str(-signal.SIGKILL), "driver", undisturbed], done.stderr


def test_the_head_may_die_with_all_its_workers(undisturbed: str, tmp_path: Path, loopback: Loopback) -> None:
    """Then Ray ends the driver."""
    command = [sys.executable, followed.__file__, tmp_path, "head"]
    ended = loopback(command, RAY_gcs_rpc_server_reconnect_timeout_s="3")
    assert ended.returncode, ended.stderr
    assert ended.stdout == ""
    done = loopback(command)
    assert done.stdout.split()[:2] == ["head", undisturbed], done.stderr


# What cannot be followed is refused, and leaves sink and snapshots as they were.
REFUSED = """
import os, signal, sys
from pathlib import Path
import followed, ray
import ompb

ray.init(num_cpus=2, log_to_driver=False)
folder, sink = Path(sys.argv[1]) / "snapshots", followed.Folder(Path(sys.argv[1]) / "results")
sink.place.mkdir()

def run(upto, cal=None, ids=followed.IDS, forecaster=followed.last_value, left_out=None):
    shards = ompb.ray.shards(
        cal or followed.calibrator(), forecaster, ids, size=5, folder=folder, every=4, pick=followed.picked
    )
    log = lambda after: (entry for entry in followed.log(after) if entry and left_out != entry[0] <= upto)
    return len(list(shards.run(log, sink)))

def deadly(windows):
    os.kill(os.getpid(), signal.SIGKILL)

print(run(upto=1020))
for wrong in (
    {"cal": followed.calibrator(seed=1)},
    {"ids": followed.IDS[::-1]},
    {"left_out": 1025},
    {"forecaster": deadly},
):
    try:
        run(upto=1030, **wrong)
    except ompb.errors.OmpbError as error:
        print(f"{type(error).__name__}: {error}")
print(run(upto=1030))
"""


def test_what_cannot_be_followed_is_refused(tmp_path: Path, loopback: Loopback) -> None:
    done = loopback([sys.executable, "-c", REFUSED, tmp_path], cwd=Path(followed.__file__).parent)
    assert done.returncode == 0, done.stderr
    first, calibrator, series, gap, death, last = [line for line in done.stdout.splitlines() if "(raylet)" not in line]
    assert int(first) == 21
    assert re.match("FormatError: .* calibrator", calibrator)
    assert re.match("FormatError: .* holds other series than this shard", series)
    assert re.match("GapError: at = 1026 leaves ticks out; expected: 1025", gap)
    assert re.match("WorkerError: a worker died 3 times in a row at the ticks behind 1020", death)
    assert int(last) == 1030 - 1020
