"""Correlations by other formulas, and which of them count."""

import numpy as np
import pytest
from made_up_runs import made_up_steps

from ompb.paper.association import LEAST, Association, association, associations, best, mean_over_seeds
from ompb.paper.severity import Severity


def test_by_other_formulas() -> None:
    chance = np.random.default_rng(0)
    x = chance.normal(size=50)
    y = x + chance.normal(size=50)
    found = association(x, y)
    assert found is not None
    assert found.pearson == pytest.approx(np.mean((x - x.mean()) * (y - y.mean())) / x.std() / y.std())
    difference = np.argsort(np.argsort(x)) - np.argsort(np.argsort(y))
    assert found.spearman == pytest.approx(1 - 6 * np.sum(difference**2) / (50 * (50**2 - 1)))  # without ties
    assert (found.pairs, found.seeds) == (50, 1)


def test_only_known_pairs_count() -> None:
    x = np.arange(LEAST + 2.0)
    gaps = x**2
    gaps[[0, 5]] = np.nan
    found = association(x, gaps)
    assert found is not None
    assert found.spearman == pytest.approx(1.0)
    assert found.pairs == LEAST
    assert association(x[:-1], gaps[:-1]) is None  # one too few


def test_what_does_not_move_has_no_correlation() -> None:
    x = np.arange(20.0)
    assert association(x, np.full(20, 3.0)) is None
    assert association(np.float32(1.3) * np.ones(20) + 1e-8 * x, x) is None  # the rounding of a constant


def test_severity_is_matched_by_origin() -> None:
    steps = made_up_steps(40)
    origins = steps["origin"][::2]
    severity = Severity(origins, {"ks": steps["mae"][::2] * 2 + 1, "rbf_mmd": -steps["disagreement"][::2]})
    found = associations(steps, None, severity)
    assert found["severity_ks mae"].spearman == pytest.approx(1.0)
    assert found["disagreement rbf_mmd"].pearson == pytest.approx(-1.0)
    assert found["severity_ks mae"].pairs == 20
    assert found["value mae"].pairs == 40
    assert not any("severity" in key for key in associations(steps, None, None))


def test_errors_of_the_bare_forecaster_are_kept_apart() -> None:
    steps = made_up_steps(40)
    bare = made_up_steps(40, 1, mae=steps["novelty"] ** 2, mse=-steps["gate"])
    found = associations(steps, bare, None)
    assert found["novelty bare_mae"].spearman == pytest.approx(1.0)
    assert found["gate bare_mse"].pearson == pytest.approx(-1.0)
    assert found["novelty mae"] == associations(steps, None, None)["novelty mae"]
    assert "novelty bare_mae" not in associations(steps, None, None)


def test_means_over_seeds_of_what_all_have() -> None:
    one, other = {"a": Association(0.1, 0.2, 30), "b": Association(0, 0, 30)}, {"a": Association(0.3, 0.6, 30)}
    found = mean_over_seeds([one, other])
    assert list(found) == ["a"]
    assert found["a"].pearson == pytest.approx(0.2)
    assert found["a"].spearman == pytest.approx(0.4)
    assert found["a"].seeds == 2


def test_the_best_is_the_largest_and_not_the_most_negative() -> None:
    found = {"value mae": Association(0, -0.9, 30), "gate mae": Association(0, 0.1, 30)}
    assert best(found, "mae", ("value", "gate", "novelty")) == "gate"
    assert best(found, "mse", ("value", "gate")) is None
