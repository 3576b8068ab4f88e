"""The page on what the cells are says what the exported cells say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ompb.bench.store import SCORES, Cell, Result, exported

pytest.importorskip("torch")

import provenance


def result(
    method: str = "ompb", backbone: str = "tcn", mae: float = 1.0, torch: str = "2.11.0", **more: float
) -> Result:
    cell = Cell("etth", backbone, 24, "id", "honest", method, 0)
    return Result(cell, {"mae": mae, **more}, {}, {}, {"torch": torch}, "cpu", "abc", {})


def test_the_page_is_of_the_present_results() -> None:
    made = provenance.page(exported(provenance.REPOSITORY / "results" / SCORES))
    assert provenance.PAGE.read_text(encoding="utf-8") == made, "make it anew: python docs/making/provenance.py"


def test_the_training_of_a_network_is_told_by_its_epochs_and_by_what_ran_the_cell() -> None:
    early = provenance.EARLIER[0]
    assert provenance.training(result(), is_stranger=False) == ""
    assert provenance.training(replace(result(), commit=early), is_stranger=False) == "earlier"
    assert provenance.training(result(backbone="tcn@20", torch="2.13.0"), is_stranger=False) == "CPU"
    assert provenance.training(result(backbone="tcn@20"), is_stranger=False) == ""
    assert provenance.training(result(torch="2.13.0"), is_stranger=False) == ""  # its steps ran on a CPU, no more
    assert provenance.training(result(torch="2.13.0"), is_stranger=True) == "CPU"
    assert provenance.training(result(), is_stranger=True) == "earlier"
    assert provenance.training(replace(result(), trained_on="cpu"), is_stranger=False) == "CPU"
    assert provenance.training(replace(result(torch="2.13.0"), trained_on="cuda"), is_stranger=False) == ""


def test_cells_alike_in_all_but_one_column_share_a_line() -> None:
    counts: dict[tuple[str, ...], int] = {("tcn", "24"): 2, ("tcn", "96"): 1, ("ridge", "96"): 1}
    assert provenance.joined(counts, 1) == {("tcn", "24, 96"): 3, ("ridge", "96"): 1}
    assert provenance.joined(counts, 0) == {("tcn", "24"): 2, ("tcn, ridge", "96"): 2}


def test_every_cell_on_another_network_is_in_one_line() -> None:
    """H = 24 has two methods, H = 96 one of them: no line may claim the other. What has no network is in none."""
    found = [on_cpu("ompb", 24), on_cpu("gd", 24), on_cpu("ompb", 96), on_cpu("profile", 24), result("copy")]
    assert provenance.on_other_networks(found).splitlines()[2:] == [
        "| CPU | etth | tcn | 24 | 0 | honest | `gd`, `ompb` | 2 |",
        "| CPU | etth | tcn | 96 | 0 | honest | `ompb` | 1 |",
    ]


def test_all_methods_of_a_place_are_not_named_one_by_one() -> None:
    found = [on_cpu(name, 24) for name in ("ompb", "gd", "er")] + [on_cpu(name, 96) for name in ("ompb", "gd", "er")]
    elf = replace(on_cpu("elf", 96), trained_on="cuda")
    assert provenance.on_other_networks([*found, elf]).splitlines()[2:] == [
        "| CPU | etth | tcn | 24 | 0 | honest | all | 3 |",
        "| CPU | etth | tcn | 96 | 0 | honest | `er`, `gd`, `ompb` | 3 |",
    ]


def on_cpu(method: str, horizon: int) -> Result:
    made = result(method)
    return replace(made, cell=replace(made.cell, horizon=horizon), trained_on="cpu")


def test_two_trainings_are_compared_where_the_recipe_is_the_same() -> None:
    """ETTh's recipe for a TCN is 20 epochs: 1.1 and 0.9 are a tenth off 1, and 5 epochs are another recipe."""
    bare = [result("original", "tcn@20", 1.1), result("original", "tcn@5", 3.0), result("original", "tcn", 1.0)]
    ours = [result("ompb", "tcn@20", 0.99), result("ompb", "tcn", 1.0), result("copy", "tcn@20", 9.0), result("copy")]
    *_, line = provenance.trained_twice([*bare, *ours]).splitlines()
    assert line == "| etth | `tcn` | `tcn@20` | 1 | 10.0% | 1.0% |"


def test_scores_that_lack_are_named() -> None:
    whole = result(coverage80=0.8, winkler80=1.0, crps=0.5)
    assert provenance.lacks(whole) == ""
    assert provenance.lacks(result(crps=0.5)) == "coverage, interval score"
    assert provenance.lacks(result("aci", coverage80=0.8, winkler80=1.0)) == ""  # it has no likelihood
    told = provenance.without_scores([whole, result('ompb[gate="open"]'), replace(result("gd"), cell=leaky("gd"))])
    assert told.splitlines()[2:] == [
        "| etth | `ompb` with options | coverage, interval score, likelihood and CRPS | tcn | 24 | 1 |"
    ]


def leaky(method: str) -> Cell:
    return replace(result(method).cell, protocol="one-step")
