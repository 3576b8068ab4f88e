"""benchmarks/rehearsal.py chooses as it says, on a tiny stream."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ompb import Recorded, Ridge, Settings

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


def test_no_setting_alone_does_better_than_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import rehearsal

    monkeypatch.setattr(rehearsal, "CANDIDATES", {"evidence": (2.0, 12.0), "backbone_prior": (0.5, 0.99)})
    hours = np.arange(400)[:, None]
    rows = np.sin(2 * np.pi * hours / 12) + 0.3 * np.random.default_rng(0).normal(size=(400, 2))
    past, later = rows[:250], rows[250:]
    ridge = Ridge.fit(past, 24, 6)
    sizes = {"context": 24, "horizon": 6, "season": 12}
    monkeypatch.setattr(rehearsal, "WORTH", 0.0)
    streams = {}
    for name, disturb in rehearsal.DISTURBANCES.items():
        streams[name] = disturb(later), Recorded(rehearsal.recorded(ridge, disturb(later), 24))
    before = Recorded(rehearsal.recorded(ridge, past, 24))
    start = Settings(certificate=False)
    search = rehearsal.Search([rehearsal.Rehearsal("sines", sizes, past, before, streams)], 1)
    best = search.best(start)

    def standing(settings: Settings) -> tuple[int, float]:
        found = search.tried[settings]
        return found.harmed, found.score

    changed = [replace(best, **{name: value}) for name, values in rehearsal.CANDIDATES.items() for value in values]
    assert standing(best) == min(standing(settings) for settings in changed)
    assert best.backbone_prior == 0.5  # most of the streams are disturbed: it pays to let go
    page = rehearsal.page(search, start, best)
    assert all(f"\n| {name} | " in page for name in streams)
    monkeypatch.setattr(rehearsal, "WORTH", 10.0)
    assert search.best(start) == start  # nothing is worth that much
