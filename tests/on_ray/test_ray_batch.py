"""Fits and backtests in chunks are those of this process."""

import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

COMPARED = """
import numpy as np
import ray
import ompb

ray.init(num_cpus=2, log_to_driver=False)
chance = np.random.default_rng(0)
hours = np.arange(300)[:, None]
sources = {f"meter-{n}": np.sin(2 * np.pi * hours / 12 + n) + chance.normal(0, 0.2, (300, 1)) for n in range(5)}
stamps = np.datetime64("2024-01-01T00", "us") + np.arange(300) * np.timedelta64(1, "h")
times = {one: stamps + number for number, one in enumerate(sources)}
forecaster = ompb.SeasonalProfile(horizon=4, season=12)
options = {"context": 24, "horizon": 4, "season": 12}

there = ompb.ray.calibrate(forecaster, sources, size=2, times=times, **options)
here = ompb.calibrate(forecaster, sources, times=times, **options)
print(list(there) == list(sources), all(there[one].fingerprint == here[one].fingerprint for one in sources))

runs = ompb.ray.backtest(there, forecaster, sources, size=2, times=times)
same = {one: ompb.backtest(here[one], forecaster, sources[one], times=times[one]) for one in sources}
print(list(runs) == list(sources), all((runs[one].mean == same[one].mean).all() for one in sources))

try:
    ompb.ray.calibrate(forecaster, sources | {"short": np.zeros((9, 1))}, size=4, **options)
except ompb.errors.TooShortError as error:
    print("short" in str(error))
"""


@pytest.mark.slow
def test_chunks_change_nothing(tmp_path: Path, loopback: Callable[..., CompletedProcess[str]]) -> None:
    done = loopback([sys.executable, "-W", "error", "-c", COMPARED], cwd=tmp_path)
    assert done.stdout.split() == ["True"] * 5, done.stderr
