"""What betting saves on windows of the world: Gamma on the certificate windows of a public source, beside Freedman's.

The latter is that of a hundredth reading where all readings are to hold at once; ours holds at each of them.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest

from ompb import Calibrator, Certificate, Ridge
from ompb.datasets.benchmark import load

READINGS = 100  # of the source, one every 32 rows: as many as a stream of 3,200 rows makes


@lru_cache
def certificates(folder: Path, horizon: int) -> tuple[Certificate, Certificate]:
    """The first of a stream with Freedman's term, at the confidence that is left to the hundredth, and with ours."""
    data = load("etth", folder)
    forecaster = Ridge.fit(data.source[: round(0.75 * len(data.source))], data.context, horizon)
    spent = {"freedman": 0.05 / (READINGS * (READINGS + 1)), "betting": 0.05}
    found = []
    for kind, delta in spent.items():
        cal = Calibrator.fit(
            forecaster,
            data.source,
            context=data.context,
            horizon=horizon,
            season=data.season,
            unseen=0.25,
            kind=kind,
            delta=delta,
        )
        stream = cal.stream(forecaster)
        said = [stream.step(row) for row in data.source[: data.context]][-1]
        assert said is not None
        assert said.certificate is not None
        found.append(said.certificate)
    return found[0], found[1]


@pytest.mark.parametrize("horizon", [24, 96])
def test_gamma_is_at_most_half_of_what_it_was(data_dir: Path, horizon: int) -> None:
    before, now = certificates(data_dir, horizon)
    assert now.source_risk == before.source_risk
    assert now.gamma <= 0.5 * before.gamma
    assert now.value < 0.3


@pytest.mark.parametrize("horizon", [24, 96])
def test_few_losses_are_cut_off_at_one(data_dir: Path, horizon: int) -> None:
    """At half of tau_y a good part of the windows would be."""
    _, now = certificates(data_dir, horizon)
    at_tau_y, at_half = (now.source.at(tau)[0] for tau in (now.tau_y, now.tau_y / 2))
    assert at_half < 4 * at_tau_y  # some are
    assert at_half > 3.5 * at_tau_y
    assert np.isfinite(at_half)
