"""Comparisons over common seeds, the headline, losses and ranks, from cells made by hand."""

from __future__ import annotations

import pytest
from made_up import line, result
from page_folder import cells

from ompb.bench.store import Result
from ompb.errors import OptionError
from ompb.paper.grid import Spot
from ompb.paper.networks import BROKEN
from ompb.paper.page.compared import ELSEWHERE, Grid
from ompb.paper.page.headline import END, PLACES, START, headline, with_block
from ompb.paper.page.intervals import coverage, intervals
from ompb.paper.page.material import Aim
from ompb.paper.page.standing import against_each_kind, losses, ranking
from ompb.paper.page.tables import aims, full_tables, history, made_by

PLACE = Spot("etth", "tcn", 24, "id")


def grid(*results: Result) -> Grid:
    return Grid.of(results)


def test_a_method_is_held_against_ompb_on_the_seeds_that_both_have() -> None:
    seeds = ((0, 0.5), (1, 0.6), (2, 0.9))
    made = grid(*(result("ompb", mae, seed=seed) for seed, mae in seeds), result("elf", 1.0, seed=1))
    found = made.beside(PLACE, "elf")
    assert found is not None
    assert (found.seeds, found.value, found.ours, found.ratio) == (1, 1.0, 0.6, 0.6)
    assert made.beside(PLACE, "solid") is None
    alone = grid(result("ompb", 0.5, seed=0), result("elf", 1.0, seed=1), result("elf", 3.0, seed=2))
    found = alone.beside(PLACE, "elf")
    assert found is not None
    assert (found.seeds, found.value, found.ours, found.ratio) == (2, 2.0, None, None)


def test_nothing_is_relative_to_a_method_without_error() -> None:
    made = grid(result("ompb", 0.5), result("elf", 0.0))
    found = made.beside(PLACE, "elf")
    assert found is not None
    assert found.ratio is None
    assert losses(made).lines == ()


def test_cells_of_analyses_are_left_out() -> None:
    made = grid(result("ompb", 1.0), result('ompb[gate="open"]', 0.1), result("elf", 0.1, backbone="tcn@5"))
    assert (made.places, made.methods(PLACE)) == ([PLACE], ["ompb"])
    assert losses(made).lines == ()


def test_the_headline_says_who_is_who_and_on_which_seeds() -> None:
    made = headline(grid(*cells()))
    assert [words[0] for words in made.lines] == [
        "**`ompb`**",
        "bare TCN, frozen",
        "the paper's method, honestly (`ompb-paper`)",
        "best published rival, variants counted, of 2 (`elf`)",
        "best trivial reference of 1 (`bias`)",
        "a leak: the paper's method shown rows to come",
        "the same leak, as the paper prints it",
    ]
    assert line(made, "**`ompb`**") == ("3", *["0.510"] * 4)
    assert line(made, "the paper's method, honestly (`ompb-paper`)") == ("2", *["0.705 (0.505)"] * 4)
    assert line(made, "best published rival, variants counted, of 2 (`elf`)") == ("1", *["0.600 (0.500)"] * 4)
    assert line(made, "the same leak, as the paper prints it") == ("", "0.363", "0.529", "0.381", "0.557")
    ways = (("retrain", 0.9), ("retrain-warm", 0.8), ("retrain+ompb", 0.1))
    trained = [result(way, mae, horizon=at.horizon, split=at.split) for way, mae in ways for at in PLACES]
    retrained = headline(grid(*cells(), *trained))
    assert line(retrained, "retrained as rows arrive, best of 2 ways (`retrain-warm`)") == ("1", *["0.800 (0.500)"] * 4)
    assert len(retrained.lines) == 8
    assert made.notes[0].endswith("100 forecasts of 24 rows each. 100 forecasts of 96 rows each.")


def test_the_headline_tells_of_the_leaks_that_are_there() -> None:
    both = headline(grid(*cells()))
    assert (
        "Every row but the last two uses only rows that have arrived. The last two are of the paper's"
        in (both.notes[0])
    )
    alone = headline(grid(*(one for one in cells() if one.cell.protocol == "honest")))
    assert "Every row but the last uses only rows that have arrived. The last is of the paper's" in alone.notes[0]
    assert alone.lines[-1][0] == "a leak: the paper's method shown rows to come, as the paper prints it"


def test_counts_of_forecasts_that_differ_are_all_told() -> None:
    made = headline(
        grid(result("ompb", 0.5, facts={"windows": 3365}), result("ompb", 0.5, split="ood", facts={"windows": 120}))
    )
    assert made.notes[0].endswith(" 120 or 3365 forecasts of 24 rows each.")


def test_only_what_is_between_the_markers_is_replaced() -> None:
    text = f"before\n{START}\nold\n{END}\nafter\n"
    once = with_block(text, "new")
    assert once == f"before\n{START}\n\nnew\n\n{END}\nafter\n"
    assert with_block(once, "new") == once
    with pytest.raises(OptionError, match="no place for what is made"):
        with_block("before\n", "new")


def test_losses_are_listed_largest_first() -> None:
    better, errors = ("bias", "cosa", "elf", "gd"), (0.9, 0.6, 0.5, 0.8)
    made = losses(
        grid(
            *(result("ompb", mae, seed=seed) for seed, mae in ((0, 1.0), (1, 3.0))),
            *(result("bias", mae, seed=seed) for seed, mae in ((0, 0.9), (1, 2.9))),  # 4 / 3.8
            result("elf", 0.8),  # 1 / 0.8, on the first seed
            result("solid", 0.996),  # 1.004: too little to count
            result("copy", 0.1, protocol="one-step"),
            *(result(name, mae, split="ood") for name, mae in zip(("ompb", *better), (1.0, *errors), strict=True)),
        )
    )
    assert made.lines == (
        ("etth", "tcn", "24", "ood", "elf", "1", "1.0000", "0.5000", "2.0000", "cosa, gd, 1 more"),
        ("etth", "tcn", "24", "id", "elf", "1", "1.0000", "0.8000", "1.2500", "bias"),
    )


def test_half_a_percent_is_a_loss_as_the_note_says() -> None:
    made = losses(grid(result("ompb", 1.005), result("elf", 1.0)))
    assert "and the method relative to which it is largest; means over the seeds that both have" in made.notes[0]
    assert [words[-2] for words in made.lines] == ["1.0050"]
    assert "is 1.005 times that of another method, or more" in made.notes[0]
    assert against_each_kind(grid(result("ompb", 1.005), result("elf", 1.0))).lines[0][-1] == "1"


def test_of_several_rivals_the_best_at_each_place_counts() -> None:
    made = against_each_kind(grid(*cells()))
    # bias is better than ompb at one of four places: 0.51 / 0.46, elsewhere 0.51 / 0.81
    assert line(made, "best trivial reference") == ("4", f"{0.51 / 0.81:.3f}", f"{0.51 / 0.46:.3f}", "1")
    assert line(made, "best published method") == ("4", f"{0.5 / 0.6:.3f}", f"{0.5 / 0.6:.3f}", "0")
    assert "retrained backbone" not in [words[0] for words in made.lines]


def test_methods_are_ranked_by_the_cells_they_have() -> None:
    made = ranking(
        grid(
            # places among four: ompb 0, elf 1/3, then a tie that shares (2 + 3) / 2 / 3
            result("original", 1.0),
            result("ompb", 0.5),
            result("elf", 0.8),
            result("copy", 1.00001),
            # among three: ompb 0, original 1/2, copy 1
            result("original", 2.0, split="ood"),
            result("ompb", 1.8, split="ood"),
            result("copy", 1800.0, split="ood"),
            # no cells of the ranking: nothing to compare, no bare backbone, another protocol, intervals only
            result("original", 1.0, seed=1),
            result("elf", 9.0, seed=2),
            result("elf", 0.1, split="ood", protocol="one-step"),
            result("aci", 1.0),
        ),
        "all",
    )
    assert made.lines == (
        ("ompb", "2", "0.000", "0.700", "0.900", "", "0 of 2", ""),
        ("elf", "1", "0.333", "0.800", "0.800", "0.500", "0 of 1", "1 of 1"),
        ("original", "2", "0.667", "1.000", "1.000", "0.700", "0 of 2", "2 of 2"),
        ("copy", "2", "0.917", "diverged", "diverged", "0.700", "1 of 2", "2 of 2"),
    )


def test_an_error_is_relative_to_the_network_that_it_stands_on() -> None:
    """0.6 of a bare 0.8: better by a quarter, though the bare network of the place has 0.5."""
    elsewhere = result("elf", 0.6, metrics={"bare_mae": 0.8})
    lines = {words[0]: words[1:] for words in ranking(grid(result("original", 0.5), elsewhere), "all").lines}
    assert lines["elf"][2:4] == ("0.750", "0.750")
    assert lines["elf"][5] == "0 of 1"


def test_coverage_goes_from_the_worst_cell_to_the_best() -> None:
    inside = [{"coverage80": 0.7, "coverage95": 0.9}, {"coverage80": 0.8, "coverage95": 1.0}]
    made = grid(*(result("ompb", 1.0, seed=seed, metrics=metrics) for seed, metrics in enumerate(inside)))
    assert coverage(made).lines == (("etth", "24", "2", "0.700", "0.750", "0.800", "0.900", "0.950", "1.000"),)


def test_intervals_are_means_over_cells_and_blank_where_there_is_no_density() -> None:
    aci = {"coverage80": 0.75, "coverage95": 0.95, "width80": 2.0, "width95": 3.0, "ece": 0.1}
    made = intervals(grid(result("aci", 1.0, metrics=aci), result("original", 1.0)), "all")
    assert made.lines == (("tcn", "aci", "1", "", "0.750", "0.950", "2.000", "3.000", "", "", "0.100"),)


def test_a_cell_that_has_diverged_is_counted_and_in_no_mean() -> None:
    def cell(mae: float, width: float, seed: int) -> Result:
        return result("solid", mae, seed=seed, metrics={"coverage80": 0.8, "width80": width})

    bare = [result("original", 1.0, seed=seed) for seed in (0, 1, 2)]
    made = intervals(grid(*bare, cell(0.9, 2.0, 0), cell(99.0, 4.0, 1), cell(100.0, 1e24, 2)), "all")
    assert line(made, "tcn", "solid")[:5] == ("2", "1", "0.800", "", "3.000")
    alone = intervals(grid(*bare, cell(1e24, 1e24, 0)), "all")
    assert line(alone, "tcn", "solid") == ("0", "1", *[""] * 7)
    unknown = intervals(grid(cell(1e24, 2.0, 0)), "all")  # no bare backbone to tell by
    assert line(unknown, "tcn", "solid")[:2] == ("1", "")


def test_a_mean_with_a_diverged_seed_says_so_in_place_of_digits() -> None:
    made = grid(
        *(result("original", 1.0, split="ood", seed=seed) for seed in (0, 1)),
        *(result("ompb", 0.5, split="ood", seed=seed) for seed in (0, 1)),
        result("proceed", 1.0, split="ood"),
        result("proceed", 1e24, split="ood", seed=1),
        result("proceed", 1e24, split="ood", protocol="one-step"),
        result("solid", 1.0, split="ood"),
    )
    for section, ours in zip(full_tables(made, "etth"), ("0.5000", "0.2500"), strict=True):
        words = line(section, "tcn", "24", "ood", "proceed")
        assert words[1:5] == ("diverged", ours, "", "diverged")
        assert words[5]
        assert words[6] == ""
        assert line(section, "tcn", "24", "ood", "solid")[1:4] == (
            "1.0000",
            ours,
            "0.500" if ours == "0.5000" else "0.250",
        )


def test_only_seeds_of_the_comparison_can_diverge() -> None:
    bare = [result("original", 1.0, seed=seed) for seed in (0, 1)]
    made = grid(*bare, result("ompb", 0.5), result("gd", 0.8), result("gd", 1e24, seed=1))
    for section in full_tables(made, "etth"):
        assert line(section, "tcn", "24", "id", "gd")[0] == "1 / 0"
        assert "diverged" not in line(section, "tcn", "24", "id", "gd")


def test_what_a_cell_tells_of_its_network_decides_whether_it_has_diverged() -> None:
    told = {"bare_mae": 0.5, "coverage80": 0.8}
    made = grid(result("gd", 60.0, metrics=told), result("original", 1.0), result("ompb", 0.5))
    assert line(full_tables(made, "etth")[0], "tcn", "24", "id", "gd")[1:4] == ("diverged", "0.5000", "")
    assert line(intervals(made, "all"), "tcn", "gd")[:2] == ("0", "1")


def test_what_has_diverged_is_called_so_in_the_headline() -> None:
    lost = [result("ompb-paper", 1e30, horizon=place.horizon, split=place.split, seed=2) for place in PLACES]
    made = headline(grid(*cells(), *lost))
    assert line(made, "the paper's method, honestly (`ompb-paper`)") == ("3", *["diverged (0.510)"] * 4)
    assert made.notes[1:] == (BROKEN,)
    assert headline(grid(*cells())).notes[1:] == ()


def test_what_has_diverged_is_nobodys_best_rival() -> None:
    bare, ours = result("original", 1.0), result("ompb", 0.5)
    lost = [result(name, 1e30) for name in ("ompb-paper", "elf")]
    assert [words[0] for words in against_each_kind(grid(bare, ours, *lost)).lines] == ["bare backbone"]


def test_where_ours_has_diverged_everything_is_better() -> None:
    others = [result("original", 1.0, split="ood"), result("ompb", 0.5, split="ood")]
    made = grid(result("original", 1.0), result("ompb", 1e30), *others)
    assert line(against_each_kind(made), "bare backbone") == ("2", "diverged", "diverged", "1")
    listed = losses(made)
    assert listed.lines == (("etth", "tcn", "24", "id", "original", "1", "diverged", "1.0000", "diverged", ""),)
    assert BROKEN in listed.notes
    assert line(full_tables(made, "etth")[0], "tcn", "24", "id", "original")[1:4] == ("1.0000", "diverged", "diverged")
    (met,) = aims(made, [Aim(PLACE, "mae", 0.5)]).lines
    assert met[-3:] == ("diverged", "0.5", "missed")


def test_a_full_table_has_both_protocols_and_what_the_paper_prints() -> None:
    made = grid(
        result("ompb", 0.5, split="ood"),
        result("proceed", 1.0, split="ood"),
        result("proceed", 0.55, split="ood", protocol="one-step"),
        result("ompb-paper", 0.6, split="ood", protocol="one-step"),
    )
    errors, squares = full_tables(made, "etth")
    assert line(errors, "tcn", "24", "ood", "ompb") == ("1 / 0", "0.5000", "", "", "", "", "")
    proceed = ("1 / 1", "1.0000", "0.5000", "0.500", "0.5500", "1.1002 [a]", f"{0.55 / 1.1002:.3f}")
    assert line(errors, "tcn", "24", "ood", "proceed") == proceed
    assert errors.notes[-1].startswith("[a] An MSE below the square")
    assert line(errors, "tcn", "24", "ood", "ompb-paper")[4:6] == ("0.6000", "0.5292")
    assert line(squares, "tcn", "24", "ood", "proceed")[1] == "1.0000"


def test_a_ratio_across_networks_is_marked() -> None:
    """Of ours nothing is told of its network: it is the bare backbone's. A thousandth is the same network."""
    others = [("elf", 0.5005), ("retrain", 0.6), ("solid", 0.5)]
    made = grid(
        result("original", 0.5),
        result("ompb", 0.4),
        *(result(name, 0.39, metrics={"bare_mae": bare}) for name, bare in others),
        result("gd", 0.39, seed=1, metrics={"bare_mae": 0.6}),
    )
    for section, ratio in zip(full_tables(made, "etth"), ("1.026", "1.052"), strict=True):
        told = {words[3]: words[7] for words in section.lines}
        assert told == {
            "original": "0.800" if ratio == "1.026" else "0.640",
            "ompb": "",
            "gd": "",
            "elf": ratio,
            "retrain": f"{ratio} *",
            "solid": ratio,
        }
        assert any(note == ELSEWHERE for note in section.notes)
    listed = losses(made)
    assert line(listed, "etth", "tcn", "24", "id", "solid")[3:] == ("1.0256", "retrain, elf")
    assert not any("*" in note for note in listed.notes)
    alone = grid(result("original", 0.5), result("ompb", 0.4), result("retrain", 0.39, metrics={"bare_mae": 0.6}))
    assert line(losses(alone), "etth", "tcn", "24", "id", "retrain")[3] == "1.0256 *"
    assert ELSEWHERE in losses(alone).notes
    assert against_each_kind(alone).notes[0].endswith(" different networks of the same recipe: retrained backbone 1.")
    same = grid(result("original", 0.5), result("ompb", 0.4), result("gd", 0.39))
    assert not any("*" in note for note in (*full_tables(same, "etth")[0].notes, *losses(same).notes))


def test_a_history_around_another_network_is_marked() -> None:
    told = {"bare_mae": 2.0}
    made = history(grid(result("original", 1.0), result("ompb", 1.0), result("ompb+history", 0.9, metrics=told)))
    assert made.lines[0][-1] == "0.900 *"
    assert ELSEWHERE in made.notes


def test_across_networks_ours_is_ahead_if_it_does_more_for_its_own() -> None:
    """0.49 of 0.5 is more than 0.5 of 0.6, and 0.1 of 0.5 less than 0.2 of 0.6; around one network errors decide."""
    made = ranking(
        grid(
            *(result("original", 0.5, horizon=horizon) for horizon in (24, 48, 96)),
            *(result("ompb", error, horizon=at) for at, error in ((24, 0.49), (48, 0.1), (96, 0.49))),
            result("retrain", 0.5, metrics={"bare_mae": 0.6}),
            result("retrain", 0.2, horizon=48, metrics={"bare_mae": 0.6}),
            result("retrain", 0.5, horizon=96, metrics={"bare_mae": 0.5}),
        ),
        "all",
    )
    assert line(made, "retrain")[-1] == "2 of 3"
    assert "where the two stand on different networks" in made.notes[0]


def test_a_stand_in_has_no_ratio_to_the_paper() -> None:
    made = grid(result("original", 1.0, dataset="weather-stand-in", protocol="one-step"))
    errors, _ = full_tables(made, "weather-stand-in")
    ((*_, one_step, printed, ratio),) = errors.lines
    assert (one_step, ratio) == ("1.0000", "")
    assert float(printed) > 0


def test_aims_are_met_or_missed() -> None:
    wanted = [Aim(PLACE, "mae", 0.5), Aim(PLACE, "mse", 0.24), Aim(Spot("ili", "tcn", 24, "id"), "mae", 1.0)]
    made = aims(grid(result("ompb", 0.5)), wanted)
    assert [words[4:] for words in made.lines] == [
        ("MAE", "1", "0.5000", "0.5", "met"),
        ("MSE", "1", "0.2500", "0.24", "missed"),
    ]


def test_only_seeds_that_have_a_metric_are_in_its_mean() -> None:
    made = grid(result("ompb", 0.5, metrics={"crps": 0.1}), result("ompb", 0.5, seed=1))
    (met,) = aims(made, [Aim(PLACE, "crps", 0.2), Aim(PLACE, "nll", 0.2)]).lines
    assert met[4:] == ("CRPS", "1", "0.1000", "0.2", "met")


def test_nothing_is_relative_to_a_bare_backbone_without_error() -> None:
    there = [result("original", 1.0, split="ood"), result("ompb", 0.5, split="ood")]
    made = ranking(grid(result("original", 0.0), result("ompb", 0.0), *there), "all")
    assert [words[:2] for words in made.lines] == [("ompb", "1"), ("original", "1")]


def test_history_stands_beside_the_same_networks_without() -> None:
    made = history(grid(result("ompb", 1.0), result("ompb", 9.0, seed=1), result("ompb+history", 0.9)))
    assert made.lines == (("etth", "tcn", "24", "id", "1", "1.0000", "0.9000", "0.900"),)


def test_what_made_the_cells_is_counted() -> None:
    made = made_by([result("ompb", 1.0), result("elf", 1.0, dataset="ili")])
    assert made.lines == (("c0ffee", "cpu", "", "", "etth, ili", "2"),)
