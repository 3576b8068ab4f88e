"""The error to expect against a loop, and against the errors of a made-up stream."""

import math

import numpy as np

import ompb
from ompb.core.expected import GAUSSIAN, MEMORY, ExpectedErrors

LEADS = 1 / np.arange(1, 4)


def test_the_ratio_follows_errors_in_their_issued_standard_deviations() -> None:
    chance = np.random.default_rng(0)
    expected = ExpectedErrors(LEADS)
    state, ratio = expected.start(np.zeros((2, 3))), [GAUSSIAN, GAUSSIAN]
    for _ in range(40):
        sd = chance.uniform(0.5, 2.0, size=(2, 3))
        observed = (chance.random((2, 3)) < 0.6).astype(float)
        error = chance.normal(size=(2, 3)) * observed
        state = expected.learn(state, error / sd, observed @ LEADS)
        for lane in range(2):
            heard = [(LEADS[h], abs(error[lane, h]) / sd[lane, h]) for h in range(3) if observed[lane, h]]
            ratio[lane] += sum(lead * (size - ratio[lane]) for lead, size in heard) / LEADS.sum() / MEMORY
        np.testing.assert_allclose(state.ratio, ratio, rtol=1e-12)
    np.testing.assert_allclose(expected.of(state, sd), np.asarray(ratio) * sd.mean(axis=1))


def test_before_any_outcome_it_is_that_of_gaussian_errors() -> None:
    expected = ExpectedErrors(LEADS)
    assert np.allclose(expected.of(expected.start(np.zeros((1, 3))), np.full((1, 3), 2.0)), 2 * math.sqrt(2 / math.pi))


def test_it_is_large_where_errors_are_and_of_their_size() -> None:
    """Noise that swells and ebbs: the error to expect follows the error that comes, in the user's units."""
    chance, rows = np.random.default_rng(1), 1600
    hours = np.arange(rows)[:, None]
    swell = np.exp(np.sin(2 * np.pi * hours / 160))
    values = 500 + 100 * (np.sin(2 * np.pi * hours / 12) + 0.3 * swell * chance.normal(size=(rows, 2)))
    profile = ompb.SeasonalProfile(4, 12)
    calibrator = ompb.Calibrator.fit(profile, values[:800], context=24, horizon=4, season=12, certificate=False)
    run = ompb.backtest(calibrator, profile, values[800:])
    error = np.abs(run.mean - run.outcome).mean(axis=1)[:-4]
    expected = run.expected_error[:-4]
    for channel in range(2):
        assert np.corrcoef(expected[:, channel], error[:, channel])[0, 1] > 0.5
        sd = run.sd[:-4, :, channel].mean(axis=1)
        assert np.corrcoef(sd, error[:, channel])[0, 1] < np.corrcoef(expected[:, channel], error[:, channel])[0, 1]
    assert 0.85 < expected.mean() / error.mean() < 1.15
