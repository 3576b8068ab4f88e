"""How a stream is judged: realised risk and diagnosis, against plain sums over what was issued."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from small_streams import CONTEXT, HORIZON, calibrator, fit, last_season, target

import ompb
from ompb.types import Floats


def shifted() -> Floats:
    """Rows on which the correction matters, so that what was issued is not what the forecaster said."""
    return target()[:200] + 2


def losses(run: ompb.Run, forecasts: Floats, every: int) -> list[float]:
    """min(1, MSE / tau_y^2) of forecasts (n, H, C) whose outcome is due, every so many of them."""
    tau, found = run.certificate["tau_y"][0], []
    for place in range(0, len(run.origins) - HORIZON, every):
        error = (forecasts[place] - run.outcome[place]) / run.scale
        known = error[np.isfinite(error)]
        if known.size:
            found.append(min(1.0, float(np.mean(known**2)) / tau**2))
    return found


@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_realised_risk_judges_what_was_issued(holes: float) -> None:
    """Each forecast that does not overlap the one before, by its cells that are known; not the bare forecaster's."""
    rows = shifted()
    rows[np.random.default_rng(0).random(rows.shape) < holes] = np.nan
    run = ompb.backtest(calibrator(), last_season, rows)
    of_issued, of_base = losses(run, run.mean, HORIZON), losses(run, run.base, HORIZON)
    assert np.mean(of_issued) < 0.9 * np.mean(of_base)  # they can be told apart
    assert run.realised.outcomes == len(of_issued)
    assert run.realised.mean == pytest.approx(np.mean(of_issued), rel=1e-9)
    assert run.realised.newest_age == (len(rows) - CONTEXT) % HORIZON + HORIZON
    guesses = [(0.5 + sum(of_issued[:i])) / (1 + i) for i in range(len(of_issued))]
    deviation = sum((loss - guess) ** 2 for loss, guess in zip(of_issued, guesses, strict=True))
    grid = (0.01, 0.02, 0.04, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8)
    price = math.log(len(grid) / 0.05)
    slack = min((price + (-math.log(1 - x) - x) * deviation) / (x * len(of_issued)) for x in grid)
    assert run.realised.upper == pytest.approx(min(1.0, np.mean(of_issued) + slack), rel=1e-9)


def test_diagnosis_is_its_formula() -> None:
    run = ompb.backtest(calibrator(), last_season, shifted())
    found, every = ompb.diagnose(run), losses(run, run.mean, 1)
    due = slice(len(every))
    term = {name: float(values[due].mean()) for name, values in run.certificate.items()}
    risk, source = float(np.mean(every)), term["source_risk"]
    of_source, of_target = term["source_disagreement"], term["target_disagreement"]
    assert abs(of_source) > 0.05 * abs(risk - source)  # its sign can be told
    assert found.outcomes == len(every)
    assert found.target_risk == pytest.approx(risk, rel=1e-9)
    assert found.disagreement == pytest.approx(abs(of_source - of_target), rel=1e-9)
    mismatch = abs((risk - of_target / 2) - (source - of_source / 2))
    assert found.residual_mismatch == pytest.approx(mismatch, rel=1e-9)
    bound = source + term["gamma"] + abs(of_source - of_target) / 2 + mismatch
    assert found.martingale_bound == pytest.approx(bound, rel=1e-9)
    assert found.target_risk <= found.martingale_bound


@pytest.mark.parametrize(("tau", "factor"), [(0.25, 16.0), (0.5, 4.0), (1.0, 1.0), (3.0, 1.0)])
def test_the_tail_of_an_error_below_tau_y_costs_the_square_of_their_ratio(tau: float, factor: float) -> None:
    """Losses are squared errors: an error of half tau_y has a proxy loss of a quarter."""
    stream = calibrator().stream(last_season)
    issued = [stream.step(row) for row in target()[:CONTEXT]][-1]
    assert issued is not None
    assert issued.certificate is not None
    small = dataclasses.replace(issued.certificate, source_risk=0.02, gamma=0.01, disagreement=0.02, tau_y=1.0)
    assert small.tail_risk(tau).probability == pytest.approx(factor * 0.04, rel=1e-12)


def test_what_arrives_late_is_learned_but_does_not_count() -> None:
    """An outcome is judged when its last row is due, by the cells that are known then."""
    stream, blind = calibrator().stream(last_season), fit(patience=0).stream(last_season)
    rows = shifted()[:60]
    for at, row in enumerate(rows):
        missing = np.full(2, np.nan) if at == 40 else row
        stream.step(missing)
        blind.step(missing)
        if at == 41:
            stream.observe(40, rows[40])
    assert stream.realised_risk().outcomes == blind.realised_risk().outcomes
