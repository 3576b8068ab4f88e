"""Fixtures shared by all tests."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import settings

REPOSITORY = Path(__file__).parents[1]

# Tests of adapters need the libraries themselves; `make test` runs them in an environment that has them all.
# One that has some of them has to have all, says the first of those tests.
_WRAPPED = ("darts", "gluonts", "mlforecast", "neuralforecast", "skforecast", "sklearn", "sktime", "statsforecast")
collect_ignore = [] if any(map(find_spec, _WRAPPED)) else ["adapters"]

# Property tests search anew in every run on a developer's machine; where CI is set they take the same examples each
# time, so that a change is judged by what it changed. How long an example takes depends on what else runs.
settings.register_profile("here", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder with the public data sets: OMPB_DATA, by default ../shared/data beside the repository."""
    folder = REPOSITORY / os.environ.get("OMPB_DATA", "../shared/data")
    if not folder.is_dir():
        pytest.skip(f"public data not found in {folder}; set OMPB_DATA to its folder")
    return folder


Loopback: TypeAlias = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    """Runs a command where there is no network but this machine's own, and ends all that it started with it.

    Ray opens ports on every address there is: here there is one.
    """
    may = [] if os.geteuid() == 0 else ["--map-root-user"]
    apart = ["unshare", "--net", "--pid", "--fork", "--kill-child", "--mount-proc", *may]
    apart += ["sh", "-c", 'ip link set lo up && "$@"', "sh"]
    try:
        subprocess.run([*apart, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a network namespace, in which Ray is tested, cannot be made here; unshare and ip are needed")
    home = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # Ray's sockets need a short path
    settings = {"HOME": home, "RAY_TMPDIR": home, "RAY_USAGE_STATS_ENABLED": "0", "RAY_memory_monitor_refresh_ms": "0"}

    def run(command: Sequence[object], cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
        words = [*apart, *map(str, command)]
        return subprocess.run(
            words, cwd=cwd, env=os.environ | settings | more, capture_output=True, text=True, check=False
        )

    yield run
    shutil.rmtree(home, ignore_errors=True)
