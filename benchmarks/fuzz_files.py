"""Damages saved files in thousands of ways and counts what comes of loading them.

    OMP_NUM_THREADS=1 python benchmarks/fuzz_files.py --files 10000

A damaged file is

refused   loading raised `FormatError`;
equal     loading gave what the undamaged file gives (a block was swapped with an equal one, say);
another   a forgery that is a right file of another value;
wrong     anything else: another error, an accident that went unnoticed, a value that cannot be used; must not happen.
"""

from __future__ import annotations

import argparse
import random
import resource
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import numpy as np

import ompb
from forgeries import ACCIDENTS, FORGERIES, Opened
from ompb.errors import FormatError, OmpbError
from ompb.types import Floats

Load: TypeAlias = Callable[[Path], object]  # what comes of a file, to be compared by ==
OUTCOMES = ("refused", "equal", "another", "wrong")
EXAMPLES = 10  # wrong outcomes that are told in words
CONTEXT, HORIZON, PATIENCE = 24, 6, 8  # of the calibrator that is saved


@dataclass
class Tally:
    """How many files came to what, by the damage done to them."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)

    def of(self, outcome: str) -> int:
        """Files that came to that."""
        return sum(count for (_, found), count in self.counts.items() if found == outcome)

    def add(self, damage: str, outcome: str, reason: str) -> None:
        """Count a file."""
        self.counts[damage, outcome] += 1
        if outcome == "wrong" and len(self.examples) < EXAMPLES:
            self.examples.append(f"{damage}: {reason}")

    def __str__(self) -> str:
        def line(name: str, words: Iterable[object]) -> str:
            return f"{name:18}" + "".join(f"{word!s:>9}" for word in words)

        damages = sorted({damage for damage, _ in self.counts})
        lines = [line(damage, (self.counts[damage, outcome] for outcome in OUTCOMES)) for damage in damages]
        return "\n".join([line("", OUTCOMES), *lines, line("all", map(self.of, OUTCOMES)), *self.examples])


def fuzz(seeds: Mapping[Path, Load], files: int, seed: int = 0) -> Tally:
    """Damage each of some whole files, ``files`` times in all, and load what is left with the function it goes with."""
    rng, tally = random.Random(seed), Tally()
    whole = [(path.read_bytes(), load, load(path)) for path, load in seeds.items()]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "damaged"
        for number in range(files):
            content, load, expected = whole[number % len(whole)]
            damage, forged, damaged = damage_of(rng, content)
            path.write_bytes(damaged)
            tally.add(damage, *outcome_of(path, load, expected, forged=forged))
    return tally


def damage_of(rng: random.Random, content: bytes) -> tuple[str, bool, bytes]:
    """How a file was damaged, whether that is a forgery, and the damaged file."""
    if rng.random() < 0.5:
        accident = rng.choice(ACCIDENTS)
        return accident.__name__, False, accident(rng, content)
    opened, forgery = Opened.of(content), rng.choice(FORGERIES)
    forgery(rng, opened)
    return forgery.__name__, True, opened.sealed()


def outcome_of(path: Path, load: Load, expected: object, *, forged: bool) -> tuple[str, str]:
    """What a file comes to, and why."""
    try:
        found = load(path)
    except FormatError as error:
        return "refused", str(error)
    except Exception as error:
        return "wrong", f"{type(error).__name__}: {error}"
    if found == expected:
        return "equal", ""
    return ("another", "") if forged else ("wrong", "the damage went unnoticed")


def rows(count: int) -> Floats:
    """Two channels with a day of twelve rows, and a cell missing."""
    at = np.arange(count)[:, None]
    values = 10 + np.sin(2 * np.pi * at / 12 + [0, 1]) + 0.1 * np.cos(at * [1.7, 2.3])
    values[count // 2, 0] = np.nan
    return np.asarray(values)


def follow(stream: ompb.Stream) -> object:
    """What a stream says of some rows, one of them late. A typed error is an answer; NaN is none."""
    said: list[object] = []
    try:
        for row in rows(40):
            forecast = stream.step(row)
            if forecast is not None:
                said.append(told(forecast))
            if np.isnan(row).any() and stream.rows > PATIENCE:
                stream.observe(stream.rows - 1, np.where(np.isnan(row), 10.0, np.nan))
    except OmpbError as error:
        return str(error)
    return [*said, stream.realised_risk()]


def told(forecast: ompb.Forecast) -> object:
    """All of a forecast. Raises if any of it is NaN or infinite."""
    assert forecast.certificate is not None
    arrays = [forecast.mean, forecast.sd, forecast.gate, *forecast.interval(0.99)]
    if not all(np.isfinite(array).all() for array in arrays):
        raise ArithmeticError("the loaded stream forecasts NaN")
    if not np.isfinite([term for term in forecast.certificate.terms().values() if isinstance(term, float)]).all():
        raise ArithmeticError("the loaded stream certifies NaN")
    return [array.tobytes() for array in arrays], forecast.certificate.value


def package_seeds(folder: Path) -> dict[Path, Load]:
    """A saved calibrator and a saved stream in the middle of its work."""
    source = rows(400)
    forecaster = ompb.Ridge.fit(source, CONTEXT, HORIZON)
    cal = ompb.Calibrator.fit(forecaster, source, context=CONTEXT, horizon=HORIZON, season=12, patience=PATIENCE)
    stream = cal.stream(forecaster)
    for row in rows(80) + 1:
        stream.step(row)
    cal.save(folder / "calibrator")
    stream.save(folder / "stream")
    return {
        folder / "calibrator": lambda path: follow(ompb.Calibrator.load(path).stream(forecaster)),
        folder / "stream": lambda path: follow(ompb.Stream.load(path, cal, forecaster)),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    np.seterr(all="ignore")  # forged numbers may be of any size; what counts is what comes out
    with TemporaryDirectory() as folder:
        seeds = package_seeds(Path(folder))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        tally = fuzz(seeds, chosen.files, chosen.seed)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(tally)
    print(f"peak memory grew by {grown / 1024:.0f} MiB")
    return int(tally.of("wrong") > 0)


if __name__ == "__main__":
    raise SystemExit(main())
