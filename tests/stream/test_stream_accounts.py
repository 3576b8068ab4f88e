"""How a stream is judged: realised risk and diagnosis, against plain sums over what was issued."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from small_streams import CHANNELS, CONTEXT, HORIZON, calibrator, fit, last_season, target

import ompb
from ompb.types import Floats


def shifted() -> Floats:
    """Rows on which the correction matters, so that what was issued is not what the forecaster said."""
    return target()[:200] + 2


def losses(run: ompb.Run, forecasts: Floats, last_row: int) -> list[float]:
    """min(1, MSE / tau_y^2) of forecasts (n, H, C) whose outcome ends by a row."""
    tau, found = run.certificate["tau_y"][0], []
    for place in range(last_row - HORIZON - int(run.origins[0]) + 1):
        error = (forecasts[place] - run.outcome[place]) / run.scale
        known = error[np.isfinite(error)]
        if known.size:
            found.append(min(1.0, float(np.mean(known**2)) / tau**2))
    return found


GRID = (0.02, 0.05, 0.1, 0.2, 0.35, 0.6, 0.9, 1.3, 1.9)


def plain_upper(losses: list[float], delta: float) -> float:
    """The bound by hand: losses of every origin, each guessed by the mean of those a horizon before it."""
    price = 1 + math.log(1 / delta)
    shortfall = dict.fromkeys(GRID, 0.0)
    for place, loss in enumerate(losses):
        known = losses[: max(place - HORIZON + 1, 0)]
        for stake in GRID:
            guess = max((0.5 + sum(known)) / (1 + len(known)), 1 - 0.98 / stake)
            shortfall[stake] += stake * guess - math.log(1 + stake * (guess - loss))
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        exponents = [(stake * len(losses) * middle - shortfall[stake]) / HORIZON for stake in GRID]
        low, high = (low, middle) if math.log(sum(map(math.exp, exponents)) / len(GRID)) > price else (middle, high)
    return low


@pytest.mark.parametrize("patience", [0, 7, 32])
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_realised_risk_judges_what_was_issued(holes: float, patience: int) -> None:
    """Every forecast, by its cells that are known ``patience`` rows after it is due; not the bare forecaster's."""
    rows = shifted()
    rows[np.random.default_rng(0).random(rows.shape) < holes] = np.nan
    run = ompb.backtest(fit(patience=patience), last_season, rows)
    final = len(rows) - 2 - patience  # the last row that no late cell can reach
    of_issued, of_base = losses(run, run.mean, final), losses(run, run.base, final)
    assert np.mean(of_issued) < 0.9 * np.mean(of_base)  # they can be told apart
    assert len(of_issued) == final - HORIZON - CONTEXT + 2  # every one has a known cell
    assert run.realised.outcomes == len(of_issued)
    assert run.realised.mean == pytest.approx(np.mean(of_issued), rel=1e-9)
    assert run.realised.newest_age == HORIZON + patience + 1
    assert run.realised.upper == pytest.approx(plain_upper(of_issued, 0.05), rel=1e-9)
    assert run.realised.upper < 1


def test_diagnosis_is_its_formula() -> None:
    run = ompb.backtest(calibrator(), last_season, shifted())
    found, every = ompb.diagnose(run), losses(run, run.mean, len(run.rows) - 1)
    due = slice(len(every))
    term = {name: float(values[due].mean()) for name, values in run.certificate.items()}
    risk, source = float(np.mean(every)), term["source_risk"]
    of_source, of_target = term["source_disagreement"], term["target_disagreement"]
    assert abs(of_source) > 0.05 * abs(risk - source)  # its sign can be told
    assert found.outcomes == len(every)
    assert found.target_risk == pytest.approx(risk, rel=1e-9)
    assert found.disagreement_change == pytest.approx(of_target - of_source, rel=1e-9)
    mismatch = (risk - of_target / 2) - (source - of_source / 2)
    assert found.residual_mismatch == pytest.approx(mismatch, rel=1e-9)
    parts = found.source_risk + found.disagreement_change / 2 + found.residual_mismatch
    assert found.target_risk == pytest.approx(parts, rel=1e-12)
    bound = source + term["gamma"] + max(of_target - of_source, 0) / 2 + max(mismatch, 0)
    assert found.martingale_bound == pytest.approx(bound, rel=1e-9)
    iid = math.sqrt(math.log(2 * math.sqrt(term["windows"]) / 0.05) / (2 * term["windows"]))
    assert found.iid_bound - found.martingale_bound == pytest.approx(iid - term["gamma"], rel=1e-9)
    assert found.share_above == np.mean(np.asarray(every) > run.certificate["value"][due])


def test_what_arrives_in_time_counts_and_what_comes_too_late_does_not() -> None:
    """The bare forecaster alone, so that all streams issue the same, whatever they have seen."""
    cal = fit(patience=3, members=("backbone",))
    rows = shifted()[:80]

    def judged(arrivals: dict[int, int]) -> ompb.RealisedRisk:
        """Some rows are missing on time, and are observed when another row has come."""
        stream = cal.stream()
        for at, row in enumerate(rows):
            stream.step(np.full(CHANNELS, np.nan) if at in arrivals else row, base=np.tile(row, (HORIZON, 1)))
            for late, when in arrivals.items():
                if when == at:
                    stream.observe(late, rows[late])
        return stream.realised_risk()

    on_time, never = judged({}), judged({50: 999, 51: 999})
    assert never.mean != pytest.approx(on_time.mean, rel=1e-6)
    in_time = judged({50: 52, 51: 54})  # the second is three rows late
    assert dataclasses.astuple(in_time) == pytest.approx(dataclasses.astuple(on_time), rel=1e-12)
    too_late = judged({50: 54, 51: 55})
    assert dataclasses.astuple(too_late) == pytest.approx(dataclasses.astuple(never), rel=1e-12)
