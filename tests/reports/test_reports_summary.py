import json
from dataclasses import replace

import numpy as np
from small_study import small_study

from ompb.diagnosis import proxy_loss
from ompb.reports.summary import realised_sentence, share_above_sentence, summary
from ompb.types import RealisedRisk


def test_last_certificate_is_the_one_the_stream_issued_last() -> None:
    study = small_study()
    certificate = study.run.last_certificate
    assert certificate is not None
    assert certificate.value == study.run.certificate["value"][-1]
    assert small_study(certificate=False).run.last_certificate is None


def test_the_share_of_losses_above_the_certificate_is_told() -> None:
    study = small_study()
    loss = proxy_loss(study.run)
    complete = np.isfinite(loss)
    above = np.mean(loss[complete] > study.run.certificate["value"][complete])
    assert 0 < above < 1
    assert f"{above:.0%} of the {complete.sum()} forecasts" in share_above_sentence(study)
    assert share_above_sentence(small_study(certificate=False)) == ""
    unknown = replace(study.run, outcome=np.full_like(study.run.outcome, np.nan))
    assert share_above_sentence(replace(study, run=unknown)) == ""


def test_realised_sentence_says_how_old_the_newest_label_is() -> None:
    study = small_study()
    assert f"issued {study.run.realised.newest_age} rows before the last row" in realised_sentence(study)
    nothing = replace(study.run, realised=RealisedRisk(1.0, 0.0, 0, 5, 0.05))
    assert "nothing is proved" in realised_sentence(replace(study, run=nothing))


def test_summary_is_strict_json() -> None:
    study = small_study()
    unknown = replace(study, run=replace(study.run, outcome=np.full_like(study.run.outcome, np.nan)))
    for each in (study, unknown, small_study(certificate=False)):
        tree = summary(each)
        assert json.loads(json.dumps(tree, allow_nan=False)) == tree
    assert summary(unknown)["scores"]["late"][0]["mae"] is None
    assert summary(study)["tail_risk"].startswith("With confidence 0.95, and if risk minus half")
