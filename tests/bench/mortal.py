"""A grid of cells with methods that kill their process: once, or always."""

import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from small_etth import HORIZON, write_small_etth

from ompb.bench.store import Result, Store, collect

MORTAL = """
import os, signal
from pathlib import Path
from ompb.bench.contract import Prediction
from ompb.bench.methods import method

PLACE = Path(__file__).parent


class Mortal:
    settings = {}
    steps = 0

    def __init__(self, may_die):
        self.may_die = may_die

    def step(self, snapshot):
        self.steps += 1
        if self.steps == 5 and self.may_die():
            os.kill(os.getpid(), signal.SIGKILL)
        return Prediction(snapshot.base)


def first_time():
    if (PLACE / "died").exists():
        return False
    (PLACE / "died").touch()
    return True


def always():
    return (PLACE / "deadly").exists()


@method("dies once")
def dies_once(task):
    return Mortal(first_time)


@method("dies always")
def dies_always(task):
    return Mortal(always)
"""


@dataclass(frozen=True)
class MortalGrid:
    """The command that runs such cells, with its files in a folder."""

    folder: Path

    @classmethod
    def write(cls, folder: Path) -> "MortalGrid":
        (folder / "data").mkdir()
        (folder / "mortal.py").write_text(MORTAL)
        write_small_etth(folder / "data")
        return cls(folder)

    def command(
        self, store: Path, *options: str, methods: tuple[str, ...] = ("last", "dies once", "bias")
    ) -> list[str]:
        words = ["--add", self.folder / "mortal.py", "--dataset", "etth", "--backbone", "ridge", "--horizon", HORIZON]
        words += ["--method", *methods, "--folder", self.folder / "data", "--store", store, *options]
        return [sys.executable, "-m", "ompb", "bench", "run", *map(str, words)]

    def undisturbed(self) -> list[Result]:
        """The results of one process; by now nobody dies a first time."""
        assert (self.folder / "died").exists()
        subprocess.run(self.command(self.folder / "undisturbed"), check=True, capture_output=True)
        return timeless(self.folder / "undisturbed")


def timeless(store: Path) -> list[Result]:
    return [replace(result, timing={}) for result in collect(Store(store))]
