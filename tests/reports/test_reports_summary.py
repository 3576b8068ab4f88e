import json
from dataclasses import replace

import numpy as np
import pytest
from small_study import small_study

from ompb.reports.summary import last_certificate, realised_sentence, summary
from ompb.types import RealisedRisk


def test_last_certificate_is_the_one_the_stream_issued_last() -> None:
    study = small_study()
    certificate = last_certificate(study)
    assert certificate is not None
    assert certificate.terms()["value"] == pytest.approx(study.run.certificate["value"][-1])
    assert (certificate.in_sample, certificate.kind, type(certificate.windows)) == (False, "freedman", int)
    assert last_certificate(small_study(certificate=False)) is None


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
    assert summary(study)["tail_risk"].startswith("If how inputs map")
