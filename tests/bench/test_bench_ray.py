"""The same cells as tasks of a Ray cluster, which lives where there is no network."""

import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from mortal import MortalGrid, timeless
from small_etth import HORIZON

from ompb.bench.store import Cell, Store, collect

# The command, after a look at who listens where while Ray runs.
LISTENING = """
import subprocess, sys
import ray
ray.init(num_cpus=2, log_to_driver=False)
listing = subprocess.run(["ss", "--listening", "--tcp", "--numeric", "--no-header"], capture_output=True, text=True)
print("listening:", *sorted({line.split()[3].rpartition(":")[0] for line in listing.stdout.splitlines()}))
from ompb.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_a_killed_worker_costs_a_second_try_or_its_cell(
    tmp_path: Path, loopback: Callable[..., CompletedProcess[str]]
) -> None:
    grid = MortalGrid.write(tmp_path)
    (tmp_path / "deadly").touch()
    methods = ("last", "dies once", "dies always", "bias")
    arguments = grid.command(Path("store"), "--executor", "ray", methods=methods)[3:]  # a store beside the command
    done = loopback([sys.executable, "-c", LISTENING, *arguments], cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert done.stdout.splitlines()[0] in ("listening: 127.0.0.1 [::ffff:127.0.0.1]", "listening: 127.0.0.1")
    assert "6 cells finished, 0 were there already, 2 failed: store\n" in done.stdout
    for split in ("id", "ood"):
        cell = Cell("etth", "ridge", HORIZON, split, "honest", "dies always", 0)
        (line,) = (line for line in done.stdout.splitlines() if str(cell) in line)
        assert " failed: its process died 2 times (the last time: " in line
    assert timeless(tmp_path / "store") == grid.undisturbed()
    assert {result.cell.method for result in collect(Store(tmp_path / "store"))} == {"last", "dies once", "bias"}
