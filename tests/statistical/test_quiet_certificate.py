"""The disagreement is quiet while nothing changes, and speaks up before any outcome of a new regime is complete."""

from __future__ import annotations

import numpy as np
import pytest
from known_shifts import SEASON, demo_run, runs

from ompb import Run
from ompb.diagnosis import diagnose, proxy_loss

WARM_UP = 64
TERMS = ("disagreement", "disagreement_change", "source_disagreement")


def at(run: Run, row: int) -> int:
    """Place of the forecast with that origin."""
    return int(np.flatnonzero(run.origins == row)[0])


@pytest.mark.slow
def test_quiet_without_shift() -> None:
    """Target windows of the same law as the source's: the change of the disagreement has no direction to speak of.

    Pooled over seeds it is less than the source's own disagreement, and the term it adds to the certificate less than
    one part in a hundred of the worst loss there is.
    """
    means = {name: [float(run.certificate[name][WARM_UP:].mean()) for run in runs("none").values()] for name in TERMS}
    assert abs(np.mean(means["disagreement_change"])) < 0.5 * np.mean(means["source_disagreement"])
    assert 0 < np.mean(means["disagreement"]) / 2 < 0.01
    assert max(means["disagreement"]) / 2 < 0.03


@pytest.mark.slow
def test_without_shift_the_voices_agree_more_as_often_as_less() -> None:
    """What an absolute difference would charge for: in about half of the steps the target's disagreement is smaller."""
    less = [np.mean(run.certificate["disagreement_change"][WARM_UP:] < 0) for run in runs("none").values()]
    assert 0.3 < np.mean(less) < 0.7


def test_demo_covariate_shift_is_warned_of_before_any_of_its_outcomes_is_complete() -> None:
    """Its first rows give the rarest warning of all, within a horizon (24 rows), after which an outcome is complete."""
    demo, run = demo_run()
    change = demo.phases[1].first - demo.source_rows
    alerts = [alert for episode in run.warnings for alert in episode.alerts]
    rarest = max(alerts, key=lambda alert: alert.rows_between)
    assert change <= rarest.since < change + SEASON
    assert rarest.rows_between >= 1e5
    assert all(alert.rows_between < 1e4 for alert in alerts if not change - SEASON <= alert.since < change + 3 * SEASON)


def test_demo_covariate_shift_is_in_the_certificate_within_a_few_seasons() -> None:
    """What is issued after the change would do badly on the source, and the certificate says so."""
    demo, run = demo_run()
    change = at(run, demo.phases[1].first - demo.source_rows)
    value = run.certificate["value"]
    assert value[WARM_UP : change - SEASON].max() < 0.5
    assert np.median(value[change + 5 * SEASON : change + 20 * SEASON]) > 0.9


def test_demo_tells_how_often_a_loss_was_above_the_certificate() -> None:
    """More often after the concept has changed, which no certificate sees, than before any change."""
    demo, run = demo_run()
    loss = proxy_loss(run)
    above = np.where(np.isfinite(loss), loss > run.certificate["value"], np.nan)
    edges = [at(run, phase.first - demo.source_rows) if phase.first > demo.source_rows else 0 for phase in demo.phases]
    calm, concept = np.nanmean(above[: edges[1]]), np.nanmean(above[edges[2] :])
    assert calm < 0.2 < concept
    assert diagnose(run).share_above == pytest.approx(float(np.nanmean(above)))
