from typing import Any

from made_up import line, result, runs

from ompb.bench.named import Named
from ompb.gradient.settings import PaperPreset
from ompb.paper import ablation
from ompb.paper.analysis import Scope
from ompb.paper.networks import BROKEN
from ompb.settings import Settings

QUICK = Scope(quick=True)


def test_every_variant_can_be_made_and_takes_one_thing_away() -> None:
    assert [PaperPreset(**Named.of(name).options) for name in ablation.PAPERS.values()] == [
        PaperPreset(),
        PaperPreset(gated=False),
        PaperPreset(certified=False),
        PaperPreset(steps=0),
    ]
    assert [Settings.of(**Named.of(name).options) for name in ablation.OURS.values()] == [
        Settings(),
        Settings(gate="open"),
        Settings(certificate=False, novelty=0),
        Settings(online=False),
    ]


def test_the_papers_numbers_stand_beside_the_same_variant() -> None:
    """On ETTh1 the paper has 0.3635 for the TCN with the whole method."""
    results = [
        result(name, value, protocol="one-step")
        for name, value in zip(ablation.PAPERS.values(), (0.727, 0.8, 0.9, 1.0), strict=True)
    ]
    finding = ablation.reduce(runs([*results, result("original", 0.5, protocol="one-step")]), QUICK)
    short, section = finding.sections
    assert section.title == "Ablation: ompb-paper, protocol one-step"
    whole = line(section, "etth", "tcn", "id", "whole")
    assert whole[:3] == ("0.7270", "0.3635", "2.000")
    for words in ("without gate", "without PAC-Bayes", "without online stage"):
        ours, paper, ratio = line(section, "etth", "tcn", "id", words)[:3]
        assert ratio == f"{float(ours) / float(paper):.3f}"
        assert paper != whole[1]
    assert line(section, "etth", "tcn", "id", "original")[:2] == ("0.5000", "")
    shown = {words[2]: words[3:] for words in short.lines if words[:2] == ("ompb-paper", "one-step")}
    assert shown == {
        "without gate": ("1", "1", "0.909", "0.909", "0.909"),
        "without PAC-Bayes": ("1", "1", "0.808", "0.808", "0.808"),
        "without online stage": ("1", "1", "0.727", "0.727", "0.727"),
    }
    assert finding.text == (
        "In the median place most is lost without online stage by `ompb-paper` (one-step, ratio 0.727)."
    )


def test_a_part_that_does_harm_is_named_and_the_paper_stands_beside() -> None:
    """Of the paper's 21 places and two errors, 15 are better without the gate; of the MAE alone it is eight."""
    pairs = (("id", 0.4, 0.2), ("ood", 0.3, 0.6))
    results = [result("ompb", whole, split=split) for split, whole, _ in pairs]
    results += [result('ompb[gate="open"]', without, split=split) for split, _, without in pairs]
    finding = ablation.reduce(runs(results), QUICK)
    short = finding.sections[0]
    assert line(short, "ompb", "honest", "without gate") == ("2", "1", "1.250", "0.500", "2.000")
    assert line(short, "paper", "one-step", "without gate")[:2] == ("21", "13")
    assert line(short, "paper", "one-step", "without online stage")[:2] == ("21", "21")
    assert finding.text.endswith("By more than 0.5% better without a part: `ompb` (honest) without gate.")


def test_a_place_where_one_side_has_diverged_is_left_out() -> None:
    """Of two places of the gate's one is left, of one of the certificate's none."""
    places: list[dict[str, Any]] = [{"split": split, "protocol": "one-step"} for split in ("id", "ood")]
    results = [result("original", 0.5, **place) for place in places]
    results += [result("ompb-paper", value, **place) for value, place in zip((0.4, 1e40), places, strict=True)]
    results += [result("ompb-paper[gated=False]", 0.5, **place) for place in places]
    results.append(result("ompb-paper[certified=False]", 1e40, **places[0]))
    finding = ablation.reduce(runs(results), QUICK)
    short = finding.sections[0]
    assert line(short, "ompb-paper", "one-step", "without gate") == ("1", "1", "0.800", "0.800", "0.800")
    assert line(short, "ompb-paper", "one-step", "without PAC-Bayes") == ("0", "0", "diverged", "", "")
    assert short.notes[1:] == (
        "Left out are places where either has diverged: without gate by `ompb-paper` (one-step) 1, without PAC-Bayes "
        "by `ompb-paper` (one-step) 1.",
        BROKEN,
    )
    assert finding.text == ("In the median place most is lost without gate by `ompb-paper` (one-step, ratio 0.800).")


def test_a_part_without_which_nothing_is_lost_is_not_called_worth_most() -> None:
    finding = ablation.reduce(runs([result("ompb", 0.51), result('ompb[gate="open"]', 0.5)]), QUICK)
    assert finding.text == "By more than 0.5% better without a part: `ompb` (honest) without gate."
    alike = ablation.reduce(runs([result("ompb", 0.5), result('ompb[gate="open"]', 0.5)]), QUICK)
    assert alike.text == "Nothing is known to be lost without a part yet."


def test_ours_is_honest_and_has_its_own_section() -> None:
    results = [result(name, 0.4) for name in ablation.OURS.values()]
    finding = ablation.reduce(runs([*results, result("ompb-paper", 0.5), result("copy", 0.6)]), QUICK)
    short, *sections = finding.sections
    assert {words[0] for words in short.lines} == {"ompb", "paper"}  # of the other method there is the whole alone
    assert [section.title for section in sections] == [
        "Ablation: ompb-paper, protocol honest",
        "Ablation: ompb, protocol honest",
    ]
    ours = sections[1]
    assert line(ours, "etth", "tcn", "id", "without gate")[0] == "0.4000"
    assert line(ours, "etth", "tcn", "id", "copy")[0] == "0.6000"
    of_ours = [cell for cell in ablation.wanted(QUICK) if cell.protocol == "honest" and "paper" not in cell.method]
    (note,) = (note for note in ours.notes if note.startswith("Missing: "))
    assert note.startswith(f"Missing: {len(of_ours) - 5} of {len(of_ours)} cells (")


def test_cells() -> None:
    quick, full = ablation.wanted(QUICK), ablation.wanted(Scope())
    assert len(quick) == 2 * ((5 + 4 + 4) + (5 + 4))
    assert {cell.horizon for cell in full} == {24}
    assert {cell.dataset for cell in full} == {"etth", "ili", "weather-stand-in"}
    assert len(set(full)) == len(full)
    assert not any(cell.method.startswith("ompb[") for cell in full if cell.protocol == "one-step")


def test_nothing_has_run() -> None:
    assert ablation.reduce(runs([]), QUICK).sections == ()
