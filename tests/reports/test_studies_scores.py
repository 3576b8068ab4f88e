import numpy as np
import pytest
from small_study import CONTEXT, HORIZON, small_study

from ompb.bench.methods import BIAS_RATE
from ompb.studies import Phase, PhaseScores
from ompb.studies.scores import score_phase


def pairs_one_by_one(first: int, stop: int) -> list[tuple[int, int, int]]:
    """(place, lead, channel) of every known outcome in rows first to stop - 1."""
    run = small_study().run
    return [
        (place, lead, channel)
        for place, origin in enumerate(run.origins.tolist())
        for lead in range(HORIZON)
        for channel in range(2)
        if first <= origin + lead + 1 < stop and not np.isnan(run.outcome[place, lead, channel])
    ]


@pytest.mark.parametrize("number", [0, 1])
def test_scores_equal_a_direct_computation_over_the_outcomes_in_the_phase(number: int) -> None:
    study = small_study()
    run, phase = study.run, study.phases[number]
    known = tuple(np.array(pairs_one_by_one(phase.first, phase.stop)).T)
    scale = run.scale[known[2]]
    lines = {scores.name: scores for scores in score_phase(study.run, study.references, phase)}
    for name, forecast in study.forecasts.items():
        error = (forecast[known] - run.outcome[known]) / scale
        assert lines[name].mae == pytest.approx(np.abs(error).mean())
        assert lines[name].mse == pytest.approx((error**2).mean())
    lower, upper = run.interval(0.8)
    inside = (lower[known] <= run.outcome[known]) & (run.outcome[known] <= upper[known])
    assert lines["ompb"].coverage80 == pytest.approx(inside.mean())
    at_origin = (run.origins >= phase.first) & (run.origins < phase.stop)
    assert lines["ompb"].gate == pytest.approx(run.gate[at_origin].mean())
    assert lines["ompb"].certificate == pytest.approx(run.certificate["value"][at_origin].mean())


def test_phases_share_out_all_pairs() -> None:
    study = small_study()
    whole = Phase("whole", 0, len(study.rows))
    counts = [len(pairs_one_by_one(p.first, p.stop)) for p in study.phases]
    parts = [lines[-1].mae for lines in study.scores().values()]
    assert score_phase(study.run, study.references, whole)[-1].mae == pytest.approx(np.average(parts, weights=counts))


def test_only_ours_has_intervals_gate_and_certificate() -> None:
    *others, ours = small_study().scores()["early"]
    assert [line.name for line in others] == [
        "bare forecaster",
        "seasonal profile",
        "last value",
        "running bias",
        "copied residual",
    ]
    assert others[0] == PhaseScores("bare forecaster", others[0].mae, others[0].mse)
    assert None not in (ours.coverage80, ours.width80, ours.coverage95, ours.width95, ours.certificate, ours.gate)
    assert ours.width95 is not None
    assert ours.width80 is not None
    assert ours.width95 > ours.width80


def test_widths_are_in_source_standard_deviations() -> None:
    study = small_study()
    whole = Phase("whole", 0, len(study.rows) + HORIZON)
    lower, upper = study.run.interval(0.95)
    known = ~np.isnan(study.run.outcome)  # as errors are counted
    assert score_phase(study.run, study.references, whole)[-1].width95 == pytest.approx(
        ((upper - lower) / study.run.scale)[known].mean()
    )


def test_references_are_stepped_with_the_rows_the_run_saw() -> None:
    study = small_study()
    run, rows = study.run, study.rows
    assert np.array_equal(study.references["last value"][50], np.tile(run_window(50)[-1], (HORIZON, 1)))
    bias = np.zeros_like(run.base[0])
    for place, origin in enumerate(run.origins):
        for lead in range(min(place, HORIZON)):
            surprise = rows[origin] - run.base[place - lead - 1, lead] - bias[lead]
            bias[lead] += BIAS_RATE * np.where(np.isnan(surprise), 0.0, surprise)
        np.testing.assert_allclose(study.references["running bias"][place], run.base[place] + bias)


def run_window(place: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    study = small_study()
    origin = int(study.run.origins[place])
    window = study.rows[: origin + 1].copy()
    for row in range(1, len(window)):
        window[row] = np.where(np.isnan(window[row]), window[row - 1], window[row])
    return window[-CONTEXT:]
