import math

from made_up import line, result, runs

from ompb.bench.store import Result
from ompb.paper import probabilistic
from ompb.paper.analysis import Scope
from ompb.paper.networks import BROKEN

QUICK = Scope(quick=True)
SCORES = {
    "nll": 0.5, "coverage80": 0.79, "coverage95": 0.94, "width80": 1.0, "width95": 1.5, "ece": 0.01,
    "winkler80": 2.0, "winkler95": 3.0,
}  # fmt: skip


def law(method: str, crps: float, **place: object) -> Result:
    return result(method, 0.4, metrics={**SCORES, "crps": crps}, **place)  # type: ignore[arg-type]


def test_every_score_of_every_method() -> None:
    finding = probabilistic.reduce(runs([law("ompb", 0.2), law("original", 0.25), law("copy", 0.1)]), QUICK)
    section, beside = finding.sections
    assert section.headings[4:-2] == tuple(probabilistic.METRICS.values())
    assert line(section, "tcn", "24", "id", "ompb")[:4] == ("0.5000", "0.2000", "0.7900", "0.9400")
    assert [words[3] for words in section.lines] == ["original", "copy", "ompb"]
    assert probabilistic.LAW in section.notes
    assert "`ompb` has a smaller CRPS than `original` in 1 of 1 places (median ratio 0.800), " in finding.text
    assert "`copy` in 0 of 1 places (median ratio 2.000)" in finding.text
    assert finding.text.count("has a smaller CRPS") == 1
    assert {words[2] for words in beside.lines} == {"original", "ompb"}


def test_beside_the_paper_at_every_horizon() -> None:
    """Seeds are averaged: (0.2 + 0.4) / 2 and 0.2 / sqrt(2). The paper has no Winkler score; its widths never move."""
    results = [law("ompb-paper", 0.2, protocol="one-step"), law("ompb-paper", 0.4, protocol="one-step", seed=1)]
    results.append(law("ompb-paper", 0.5, protocol="one-step", horizon=96))
    beside = probabilistic.reduce(runs(results), Scope()).sections[1]
    assert beside.headings[4:] == ("ours, 24 rows", "ours, 96 rows", "paper")
    crps = line(beside, "tcn", "id", "ompb-paper", "CRPS")
    assert crps == ("0.3000 ± 0.1414", "0.5000", "0.3690")
    assert line(beside, "tcn", "id", "ompb-paper", "80% width")[2] == "1.4114 [b]"
    assert not any("Winkler" in words[3] for words in beside.lines)
    assert probabilistic.NO_HORIZON in beside.notes
    assert any("as if the width never moved" in note for note in beside.notes)


def test_what_is_blank_is_explained() -> None:
    """ACI has no density; a cell from before some scores were kept shows those it has."""
    early = result("retrain+ompb", 0.4, metrics={"nll": 0.5, "crps": 0.2})
    intervals = result("aci", 0.4, metrics={name: value for name, value in SCORES.items() if name != "nll"})
    finding = probabilistic.reduce(runs([law("ompb", 0.2), law("ompb", 0.2, seed=1), early, intervals]), QUICK)
    section = finding.sections[0]
    assert line(section, "tcn", "24", "id", "retrain+ompb") == ("0.5000", "0.2000", *[""] * 7, "100", "0")
    assert line(section, "tcn", "24", "id", "aci")[:3] == ("", "", "0.7900")
    assert "Intervals and no density, so no NLL and no CRPS: `aci`." in section.notes
    (note,) = (note for note in section.notes if note.startswith("Where a score is blank"))
    assert note.endswith(": `retrain+ompb` (80% coverage, 95% coverage, 80% width, 95% width, ECE, 80% Winkler, "
                         "95% Winkler).")  # fmt: skip
    plain = probabilistic.reduce(runs([law("ompb", 0.2)]), QUICK).sections[0]
    assert not any("blank" in note or "density" in note for note in plain.notes)


def test_whoever_brings_intervals_and_no_density_is_called_so() -> None:
    """And what else a cell of ACI lacks is named."""
    inside = {name: value for name, value in SCORES.items() if name != "nll"}
    found = [result("mine", 0.4, metrics=inside), result("aci", 0.4, metrics={"coverage80": 0.8, "width80": 1.0})]
    notes = probabilistic.reduce(runs(found), QUICK).sections[0].notes
    assert "Intervals and no density, so no NLL and no CRPS: `aci`, `mine`." in notes
    (early,) = (note for note in notes if note.startswith("Where a score is blank"))
    assert early.endswith(": `aci` (95% coverage, 95% width, ECE, 80% Winkler, 95% Winkler).")


def test_a_law_that_is_wider_than_the_papers_is_called_so() -> None:
    """The paper prints 1.4114 for the TCN: 2.8228 is twice as wide, 14.114 ten times, and the median of both six."""
    wide = [result("ompb-paper", 0.4, split=split, metrics={**SCORES, "crps": 0.1, "width80": width})
            for split, width in (("id", 2.8228), ("ood", 14.114))]  # fmt: skip
    text = probabilistic.reduce(runs(wide), QUICK).text
    assert (
        "is 6.0 times as wide as the paper prints in the median place and 10.0 times at most: 14.1140 against 1.4114 "
        "under honest on ood, tcn, 24 rows, where 0.7900 of the outcomes lie inside." in text
    )
    assert "as wide as" not in probabilistic.reduce(runs([law("ompb", 0.2)]), QUICK).text


def test_the_law_of_a_method_that_has_diverged_is_in_no_median() -> None:
    """On the other split the width is the printed one."""
    results = [law("original", 0.25, split=split) for split in ("id", "ood")]
    for split, mae, width in (("id", 1e40, 1e40), ("ood", 0.4, 1.4114)):
        results.append(result("ompb-paper", mae, split=split, metrics={**SCORES, "crps": mae, "width80": width}))
    finding = probabilistic.reduce(runs(results), QUICK)
    assert "is 1.0 times as wide as the paper prints in the median place and 1.0 times at most" in finding.text
    beside = finding.sections[1]
    assert line(beside, "tcn", "id", "ompb-paper", "CRPS")[0] == "diverged"
    assert BROKEN in beside.notes


def test_a_backbone_that_the_paper_lacks_has_no_width_of_its() -> None:
    """Of two places one is around a TCN, of which the paper prints 1.4114."""
    wide = [law("ompb-paper", 0.1, backbone=backbone) for backbone in ("ridge", "tcn")]
    text = probabilistic.reduce(runs(wide), QUICK).text
    assert "is 0.7 times as wide as the paper prints in the median place and 0.7 times at most" in text
    assert "as wide as" not in probabilistic.reduce(runs(wide[:1]), QUICK).text


def test_results_from_before_laws_were_scored_do_not_count() -> None:
    finding = probabilistic.reduce(runs([result("original", 0.4)]), QUICK)
    assert finding.sections == ()
    assert finding.made_from["cells"] == 0


def test_cells() -> None:
    full = probabilistic.wanted(Scope())
    assert {(cell.dataset, cell.horizon) for cell in full} == {("etth", 24), ("etth", 96)}
    assert {cell.protocol for cell in full if cell.method == "ompb"} == {"honest"}
    assert len(set(full)) == len(full)


def test_a_law_that_has_diverged_takes_no_seeds_from_others() -> None:
    kept = [law(name, 0.2, seed=seed) for name in ("original", "ompb", "gd") for seed in (0, 1)]
    finding = probabilistic.reduce(runs([*kept[:-1], result("gd", math.inf, seed=1)]), Scope())
    section = finding.sections[0]
    assert line(section, "tcn", "24", "id", "gd")[:2] == ("diverged", "diverged")
    assert [words[-1] for words in section.lines] == ["0 1"] * 3
    assert not any(note.startswith(probabilistic.EARLY) for note in section.notes)
