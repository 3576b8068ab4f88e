"""No false alarm on the public data: forecasters that have no fault, of windows with strong and with weak seasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ompb
from ompb.datasets.benchmark import load
from ompb.types import Floats


def last_row(windows: Floats, horizon: int) -> Floats:
    return np.repeat(windows[:, -1:], horizon, axis=1)


def drift(windows: Floats, horizon: int) -> Floats:
    step = (windows[:, -1:] - windows[:, :1]) / (windows.shape[1] - 1)
    return np.asarray(windows[:, -1:] + step * np.arange(1, horizon + 1)[:, None])


@pytest.mark.parametrize("name", ["etth", "ili"])
@pytest.mark.parametrize("place", [0, 1])
def test_no_false_alarm(name: str, place: int, data_dir: Path) -> None:
    data = load(name, data_dir)
    horizon = data.horizons[place]
    forecasters: list[Any] = [
        ompb.Ridge.fit(data.source, data.context, horizon),
        lambda windows: last_row(windows, horizon),
        lambda windows: drift(windows, horizon),
    ]
    if data.season is not None and data.season <= data.context:
        forecasters.append(ompb.SeasonalProfile(horizon, data.season))
    for forecaster in forecasters:
        for season in ("auto", data.season):
            ompb.check(forecaster, data.source, context=data.context, horizon=horizon, season=season)
