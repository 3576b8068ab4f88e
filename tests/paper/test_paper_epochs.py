from typing import Any

from made_up import line, result, runs

from ompb.bench.store import Cell, Result
from ompb.paper import epochs
from ompb.paper.analysis import Scope

QUICK = Scope(quick=True)


def bare(length: str, mae: float, split: str = "id", **facts: int) -> Result:
    return result("original", mae, backbone=f"tcn@{length}", split=split, facts=facts)


def _where(cell: Cell) -> dict[str, Any]:
    return {name: getattr(cell, name) for name in ("dataset", "backbone", "horizon", "split", "protocol", "seed")}


RESULTS = [
    bare("5", 0.5),
    bare("20", 0.4),
    bare("100", 0.6),
    bare("5", 2.0, "ood"),
    bare("20", 2.0, "ood"),
    bare("100", 3.0, "ood"),
    bare("val", 0.3, stopped_at=31),
    bare("val", 2.5, "ood", stopped_at=31),
]


def test_epochs_beside_the_papers() -> None:
    """The paper has 0.4588 at 20 epochs on ETTh1 and 2.5145 on ETTh2."""
    section = epochs.reduce(runs(RESULTS), QUICK).sections[0]
    assert section.title == "Epochs: etth"
    ours, paper, ratio = line(section, "tcn", "24", "id", "original", "20")[:3]
    assert (ours, paper, ratio) == ("0.4000", "0.4588", "0.872")
    assert line(section, "tcn", "24", "id", "original", "val")[:2] == ("0.3000", "")
    assert any(note.startswith("Missing: ") for note in section.notes)


def test_what_is_missing_of_one_data_set_is_not_said_of_another() -> None:
    there = [result(one.method, 0.5, **_where(one)) for one in epochs.wanted(Scope()) if one.dataset == "etth"]
    finding = epochs.reduce(runs([*there, result("original", 0.5, dataset="ili", backbone="tcn@5")]), Scope())
    notes = {section.title: section.notes for section in finding.sections}
    assert not any(note.startswith("Missing: ") for note in notes["Epochs: etth"])
    assert any(note.startswith("Missing: ") for note in notes["Epochs: ili"])


def test_wins_are_counted_over_splits_and_errors() -> None:
    """ID: 20 epochs win both errors. OOD: 5 and 20 tie in both. So 2, 4, 0 and 20 is chosen, as in the paper."""
    summary = epochs.reduce(runs(RESULTS), QUICK).sections[1]
    assert line(summary, "etth", "tcn", "5") == ("2", "3", "", "")
    assert line(summary, "etth", "tcn", "20") == ("4", "9", "chosen", "20")
    assert line(summary, "etth", "tcn", "100") == ("0", "0", "", "")


def test_ties_go_to_most_wins_of_all_backbones() -> None:
    wins = {("tcn", "5"): 2, ("tcn", "100"): 2, ("autoformer", "100"): 1}
    assert epochs._chosen(wins, ("tcn", "autoformer", "gpt4ts")) == {"tcn": "100", "autoformer": "100"}


def test_two_ways_to_choose() -> None:
    finding = epochs.reduce(runs(RESULTS), QUICK)
    both = finding.sections[2]
    assert line(both, "etth", "tcn", "id", "held-out tenth", "31", "31")[:2] == ("0.3000", "0.4689")
    assert line(both, "etth", "tcn", "id", "known outcomes", "20", "20")[:2] == ("0.4000", "0.4588")
    assert "in 1 of 2 places" in finding.text


def test_what_a_second_training_moves_stands_beside_what_epochs_move() -> None:
    """ETTh's recipe has 20 epochs. The best is ahead by 25 % at home, by nothing away; trainings are 20 % apart."""
    finding = epochs.reduce(runs([*RESULTS, result("original", 0.5)]), QUICK)
    section = finding.sections[-1]
    assert section.title == "One recipe trained twice"
    assert line(section, "etth", "tcn", "24", "id", "20") == ("0.5000", "0.4000", "20.0%")
    assert finding.text.endswith(
        "Two trainings of one recipe and seed differ in MAE by 20.0% in the median of 1 places and by 20.0% at most "
        "(etth, tcn, id, 24 rows). The best number of epochs is ahead of the second by 12.5% in the median of 2 "
        "places, and in 1 of them by less than 20.0%."
    )


def test_an_epoch_that_has_not_run_chooses_nothing() -> None:
    finding = epochs.reduce(runs([bare("5", 0.5), bare("20", 0.4), bare("val", 0.3, stopped_at=7)]), QUICK)
    assert [section.title for section in finding.sections] == ["Epochs: etth", "Two ways to choose, 24 rows"]
    (only,) = finding.sections[1].lines
    assert only[:5] == ("etth", "tcn", "id", "held-out tenth", "7")
    assert "yet" in finding.text


def test_cells() -> None:
    quick = epochs.wanted(QUICK)
    assert {cell.backbone for cell in quick} == {"tcn", "tcn@5", "tcn@20", "tcn@100", "tcn@val"}
    full = epochs.wanted(Scope())
    assert "gpt4ts[gpt2-partial]@val" in {cell.backbone for cell in full}
    assert {cell.horizon for cell in full if cell.backbone.endswith("@val")} == {24}
    assert {cell.horizon for cell in full if cell.dataset == "etth"} == {24, 96, 336}
    assert len(set(full)) == len(full)


def test_nothing_has_run() -> None:
    assert epochs.reduce(runs([]), QUICK).sections == ()
