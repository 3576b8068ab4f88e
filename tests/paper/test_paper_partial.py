from pathlib import Path

from made_up import line, result, runs

from ompb.bench.store import Result, Store
from ompb.paper import partial
from ompb.paper.analysis import Runs, Scope
from ompb.paper.costs import Cost, Costs

PLACE = {"horizon": 96, "split": "ood", "protocol": "one-step"}


def sized(method: str, mae: float, trainable: int) -> Result:
    return result(method, mae, facts={"trainable": trainable}, **PLACE)  # type: ignore[arg-type]


def test_modes_beside_the_papers() -> None:
    """The paper: 0.5570 frozen, 0.7124 with the last layer, 0.7410 with adapters."""
    results = [
        result("ompb-paper", 1.114, **PLACE),  # type: ignore[arg-type]
        sized("ompb-paper-last-layer", 0.7124, 22176),
        sized("ompb-paper-lora", 1.5, 3000),
        result("original", 2.0, **PLACE),  # type: ignore[arg-type]
    ]
    finding = partial.reduce(runs(results), Scope())
    ahead, section, sizes = finding.sections
    assert line(ahead, "ompb-paper", "one-step", "ompb-paper-last-layer") == ("1", "0", "1.564")
    where = ("etth", "tcn", "96", "ood")
    assert line(section, *where, "ompb-paper")[:3] == ("1.1140", "0.5570 [a]", "2.000")
    assert line(section, *where, "ompb-paper-last-layer")[:3] == ("0.7124", "0.7124", "1.000")
    assert line(section, *where, "original")[:2] == ("2.0000", "")
    nothing = ("", "", "")
    assert line(sizes, "etth", "tcn", "96", "ompb-paper") == ("0", "0", *nothing)
    assert line(sizes, "etth", "tcn", "96", "ompb-paper-last-layer") == ("22176", "22176", *nothing)
    assert line(sizes, "etth", "tcn", "96", "ompb-paper-lora") == ("3000", "2816", *nothing)
    assert finding.text == ""


def test_costs_stand_beside_the_weights_relative_to_the_frozen_backbone() -> None:
    where = "etth", "tcn", 96
    costs = Costs({(where, "ompb-paper"): Cost(20.0, 2.5), (where, "ompb-paper-lora"): Cost(90.0, 9.75)}, "abc", "v")
    found = (result("ompb-paper", 1.0, **PLACE), sized("ompb-paper-lora", 1.5, 3000))  # type: ignore[arg-type]
    price = partial.reduce(Runs(Store(Path("nowhere")), found, costs), Scope()).sections[-1]
    assert line(price, "etth", "tcn", "96", "ompb-paper")[2:] == ("20", "1", "2.5")
    assert line(price, "etth", "tcn", "96", "ompb-paper-lora")[2:] == ("90", "4.5", "9.75")
    assert any("commit abc" in note for note in price.notes)


def test_a_size_that_no_cell_tells_is_blank_and_not_zero() -> None:
    sizes = partial.reduce(runs([result("ompb-paper-lora", 0.4, split="ood")]), Scope(quick=True)).sections[-1]
    assert line(sizes, "etth", "tcn", "24", "ompb-paper-lora") == ("", "", *[""] * 3)


def test_at_another_horizon_the_paper_has_no_size() -> None:
    sizes = partial.reduce(runs([result("ompb-paper", 0.4, split="ood")]), Scope(quick=True)).sections[-1]
    assert line(sizes, "etth", "tcn", "24", "ompb-paper") == ("0", "", *[""] * 3)


def test_cells() -> None:
    full = partial.wanted(Scope(gpt4ts="gpt4ts[random]"))
    assert {(cell.dataset, cell.backbone, cell.horizon, cell.split) for cell in full} == {
        ("etth", "tcn", 96, "ood"),
        ("ili", "gpt4ts[random]", 48, "ood"),
        ("weather-stand-in", "autoformer", 96, "ood_far"),
    }
    assert len(set(full)) == len(full)
    assert {cell.method for cell in full if cell.protocol == "one-step"} >= set(partial.MODES)
    quick = partial.wanted(Scope(quick=True))
    assert {(cell.dataset, cell.backbone, cell.horizon, cell.seed) for cell in quick} == {("etth", "tcn", 24, 0)}


def test_nothing_has_run() -> None:
    finding = partial.reduce(runs([]), Scope())
    assert finding.sections == ()
    assert "yet" in finding.text
