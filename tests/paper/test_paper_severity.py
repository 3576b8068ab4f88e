"""The severity of a shift, measured again by hand at single origins."""

import numpy as np
import pytest
from made_up_runs import made_up_data, use_data

from ompb.metrics.shift import jensen_shannon, ks, mmd, wasserstein
from ompb.paper import severity as module
from ompb.paper.severity import MEASURES, Severities, severity

DATA = made_up_data(rows=300)
ORIGINS = 50


@pytest.fixture(autouse=True)
def _few_origins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ORIGINS", ORIGINS)


def test_each_origin_compares_the_newest_window_with_the_source() -> None:
    found = severity(DATA.source, DATA.streams["ood"], DATA.context)
    assert len(found.origins) == ORIGINS
    assert found.origins[0] == DATA.context - 1
    assert found.origins[-1] == 299
    mean, sd = DATA.source.mean(axis=0), DATA.source.std(axis=0)
    source, rows = (DATA.source - mean) / sd, (DATA.streams["ood"] - mean) / sd
    for place in (0, 17, ORIGINS - 1):
        window = rows[found.origins[place] + 1 - DATA.context : found.origins[place] + 1]
        for name, distance in (("ks", ks), ("wasserstein", wasserstein), ("js", jensen_shannon)):
            by_hand = (distance(source[:, 0], window[:, 0]) + distance(source[:, 1], window[:, 1])) / 2
            assert found.measures[name][place] == pytest.approx(by_hand)
        assert found.measures["rbf_mmd"][place] == pytest.approx(mmd(source, window))


def test_a_stream_further_off_is_more_severe() -> None:
    near, far = (severity(DATA.source, DATA.streams[split], DATA.context) for split in ("id", "ood"))
    for name in MEASURES:
        assert far.measures[name].mean() > near.measures[name].mean()


def test_values_are_found_again_by_origin() -> None:
    found = severity(DATA.source, DATA.streams["ood"], DATA.context)
    asked = np.arange(20, 120)
    places, values = found.at(asked)
    assert len(places) > 10
    for name in MEASURES:
        expected = dict(zip(found.origins.tolist(), found.measures[name].tolist(), strict=True))
        assert values[name].tolist() == [expected[origin] for origin in asked[places].tolist()]


def test_streams_are_measured_once_and_absent_data_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    use_data(monkeypatch, DATA)
    severities = Severities()
    assert severities.of("etth", "ood") is severities.of("etth", "ood")
    assert severities.absent == ()
    use_data(monkeypatch, None)
    assert severities.of("ili", "ood") is None
    assert len(severities.absent) == 1
    assert "ili" in severities.absent[0]
