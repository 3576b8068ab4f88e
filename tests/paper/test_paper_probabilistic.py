from made_up import line, result, runs

from ompb.bench.store import Result
from ompb.paper import probabilistic
from ompb.paper.analysis import Scope

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
    assert "`ompb` has a smaller CRPS than `original` in 1 of 1 places (median ratio 0.800)." in finding.text
    assert "`copy` in 0 of 1 places (median ratio 2.000)" in finding.text
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


def test_results_from_before_laws_were_scored_do_not_count() -> None:
    finding = probabilistic.reduce(runs([result("original", 0.4)]), QUICK)
    assert finding.sections == ()
    assert finding.made_from["cells"] == 0


def test_cells() -> None:
    full = probabilistic.wanted(Scope())
    assert {(cell.dataset, cell.horizon) for cell in full} == {("etth", 24), ("etth", 96)}
    assert {cell.protocol for cell in full if cell.method == "ompb"} == {"honest"}
    assert len(set(full)) == len(full)
