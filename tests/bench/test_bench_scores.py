"""Running scores, some windows at a time, beside the scores of each window by itself."""

import math

import numpy as np
import pytest

from ompb.bench.contract import Prediction
from ompb.bench.scores import TOGETHER, RunningScores, intervals
from ompb.errors import ShapeError
from ompb.metrics.probabilistic import coverage, crps, nll, width, winkler
from ompb.types import Floats

HORIZON, CHANNELS, WINDOWS = 5, 2, 2 * TOGETHER + 7
LEVELS = (0.5, 0.8, 0.95)


def predicted(kind: str, window: int, rng: np.random.Generator) -> Prediction:
    mean, sd = rng.normal(size=(HORIZON, CHANNELS)), 0.5 + rng.random((HORIZON, CHANNELS))
    if kind == "changing":  # a method that brings more as it learns
        kind = "law" if window < 40 else "both"
    ends = {level: (mean - level * sd, mean + 2 * level * sd) for level in LEVELS}
    return Prediction(mean, None if kind == "intervals" else sd, None if kind == "law" else ends)


def one_by_one(pairs: list[tuple[Prediction, Floats]]) -> dict[str, float]:
    """The mean over windows of each one's score."""
    scores: dict[str, list[float]] = {}
    for prediction, outcome in pairs:
        found: dict[str, float] = {}
        if prediction.sd is not None:
            found |= {score.__name__: score(prediction.mean, prediction.sd, outcome) for score in (nll, crps)}
        for level, (lower, upper) in intervals(prediction).items():
            if level in (0.8, 0.95):
                shown = f"{level * 100:.0f}"
                found |= {f"coverage{shown}": coverage(lower, upper, outcome), f"width{shown}": width(lower, upper)}
                found[f"winkler{shown}"] = winkler(lower, upper, outcome, level)
        for name, value in found.items():
            scores.setdefault(name, []).append(value)
    return {name: math.fsum(values) / len(pairs) for name, values in scores.items()}


@pytest.mark.parametrize("kind", ["law", "intervals", "both", "changing"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_together_windows_score_what_they_do_alone(kind: str, missing: float) -> None:
    rng = np.random.default_rng(0)
    running, pairs = RunningScores(), []
    for window in range(WINDOWS):
        prediction, outcome = predicted(kind, window, rng), rng.normal(size=(HORIZON, CHANNELS))
        outcome[rng.random(outcome.shape) < missing * (window % 40 > 35)] = np.nan
        pairs.append((prediction, outcome))
        running.add(prediction, outcome)
    found = running.metrics()
    assert found.keys() >= one_by_one(pairs).keys() | {"mae", "mse", "ece"}
    for name, expected in one_by_one(pairs).items():
        assert found[name] == pytest.approx(expected, rel=1e-12), name
    assert running.metrics() == found  # nothing counts twice


def test_no_intervals_at_all_are_not_those_of_a_law() -> None:
    """None leaves them to the Gaussian law; an empty mapping says that there are none."""
    rng, scores = np.random.default_rng(2), {}
    mean, outcome = rng.normal(size=(2, HORIZON, CHANNELS))
    for name, own in (("left to the law", None), ("none", {})):
        running = RunningScores()
        running.add(Prediction(mean, np.ones_like(mean), own), outcome)
        scores[name] = running.metrics()
    assert "coverage80" in scores["left to the law"]
    assert "crps" in scores["none"]
    assert not any(name.startswith(("coverage", "width", "winkler")) for name in scores["none"])


def test_what_a_method_writes_over_was_scored_as_it_was() -> None:
    rng = np.random.default_rng(1)
    kept, reused = RunningScores(), RunningScores()
    mean, sd = np.empty((2, HORIZON, CHANNELS))
    for _ in range(3):
        mean[:], sd[:] = rng.normal(size=mean.shape), 1 + rng.random(sd.shape)
        outcome = rng.normal(size=mean.shape)
        kept.add(Prediction(mean.copy(), sd.copy()), outcome)
        reused.add(Prediction(mean, sd), outcome)
    assert reused.metrics() == kept.metrics()


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        (Prediction(np.zeros(CHANNELS)), r"the mean .* \(2,\)"),
        (Prediction(np.zeros((1, CHANNELS))), r"the mean .* \(1, 2\)"),
        (Prediction(np.zeros((HORIZON, CHANNELS)), np.ones(CHANNELS)), r"the sd .* \(2,\)"),
        (
            Prediction(np.zeros((HORIZON, CHANNELS)), None, {0.8: (np.zeros((HORIZON, CHANNELS)), np.zeros(HORIZON))}),
            r"an end of the interval 0.8 .* \(5,\)",
        ),
    ],
)
def test_arrays_of_another_shape_are_refused_by_name(wrong: Prediction, named: str) -> None:
    """None is spread over the leads or channels that it lacks."""
    running, good, outcome = RunningScores(), Prediction(np.ones((HORIZON, CHANNELS))), np.zeros((HORIZON, CHANNELS))
    running.add(good, outcome)
    with pytest.raises(ShapeError, match=rf"{named}; every array of a Prediction has to be \(H, C\) = \(5, 2\)"):
        running.add(wrong, outcome)
    assert running.metrics()["mae"] == 1.0
