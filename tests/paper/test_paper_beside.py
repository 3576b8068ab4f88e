import math
from dataclasses import replace
from typing import Any

from made_up import line, result

from ompb.bench.store import BARE
from ompb.paper.beside import ELSEWHERE, GROUPS, HINT, Doubts, Entry, Measured, Place, compare
from ompb.paper.grid import Spot
from ompb.paper.networks import BROKEN
from ompb.paper.printed import Number
from ompb.paper.tally import Duel, duels, made_from, missing, sentence, who_is_ahead

HERE = Spot("etth", "tcn", 24, "id")


def place(method: str, protocol: str = "honest", spot: Spot = HERE) -> Place:
    return Place(spot, protocol, method)


def entry(method: str, protocol: str = "honest", spot: Spot = HERE, **printed: Number) -> Entry:
    return Entry((method,), place(method, protocol, spot), printed)


def test_means_and_spreads_are_over_the_seeds_of_a_group() -> None:
    """Seeds 0 and 2 are common: (0.2 + 0.8) / 2 = 0.5, and a standard deviation of 0.6 / sqrt(2)."""
    results = [result("ompb", value, seed=seed) for seed, value in enumerate((0.2, 0.2, 0.8))]
    results += [result("copy", 0.5, seed=seed) for seed in (0, 2)]
    section = compare("", ("method",), [[entry("copy"), entry("ompb"), entry("never")]], Measured.of(results))
    whole, copied, again = section.lines
    assert (whole[:2], whole[-2:]) == (("ompb", "0.4000 ± 0.3464"), ("100", "0 1 2"))
    assert (copied[0], copied[1], copied[-1]) == ("copy", "0.5000 ± 0.0000", "0 2")
    assert (again[0], again[1], again[-1]) == ("ompb", "0.5000 ± 0.4243", "0 2")
    assert GROUPS in section.notes
    assert Duel.of(Measured.of(results), ("honest", "ompb"), ("honest", "copy")).ratios == (1.0,)  # as the table has it


def test_one_method_with_a_single_seed_does_not_take_the_seeds_of_the_others() -> None:
    """The line that stands again leaves the paper's number where it stood first."""
    results = [result(name, 0.5, seed=seed) for name in ("original", "ompb", "bias") for seed in range(3)]
    block = [entry("original", mae=Number("0.25")), entry("bias"), entry("ompb"), entry("solid", mae=Number("0.4"))]
    section = compare("", ("method",), [block], Measured.of([*results, result("solid", 0.2)]))
    assert [(words[0], words[-1]) for words in section.lines] == [
        ("original", "0 1 2"), ("bias", "0 1 2"), ("ompb", "0 1 2"), ("original", "0"), ("ompb", "0"), ("solid", "0"),
    ]  # fmt: skip
    assert section.lines[0][1:4] == ("0.5000 ± 0.0000", "0.25", "2.000")
    assert section.lines[3][1:4] == ("0.5000", "", "")
    assert section.lines[5][1:4] == ("0.2000", "0.4", "0.500")


def test_blocks_do_not_share_seeds_and_nothing_in_common_is_two_groups() -> None:
    results = [result("ompb", 0.2, seed=1), result("copy", 0.3, seed=0)]
    apart = compare("", ("method",), [[entry("ompb")], [entry("copy")]], Measured.of(results))
    assert GROUPS not in apart.notes
    together = compare("", ("method",), [[entry("ompb"), entry("copy")]], Measured.of(results))
    for section in (apart, together):
        assert [line(section, name)[0::3] for name in ("ompb", "copy")] == [("0.2000", "1"), ("0.3000", "0")]


def test_a_line_that_lacks_a_metric_of_one_seed_is_blank_there() -> None:
    results = [result("ompb", 0.2, metrics={"crps": 0.1}), result("ompb", 0.4, seed=1)]
    metrics = {"mae": "MAE", "crps": "CRPS"}
    section = compare("", ("method",), [[entry("ompb")]], Measured.of(results), metrics=metrics)
    assert line(section, "ompb") == ("0.3000 ± 0.1414", "", "100", "0 1")


def test_the_papers_numbers_and_their_doubts() -> None:
    sure, doubtful = Number("0.2500"), Number("0.1", "It is odd.")
    block = [entry("ompb", mae=sure, mse=doubtful), entry("copy", mae=doubtful), entry("lost", mse=sure)]
    section = compare("", ("method",), [block], Measured.of([result("ompb", 0.5)]))
    assert section.headings == ("method", "MAE", "paper", "ratio", "MSE", "paper", "ratio", "n", "seeds")
    assert line(section, "ompb") == ("0.5000", "0.2500", "2.000", "0.2500", "0.1 [a]", "2.500", "100", "0")
    assert line(section, "copy")[:3] == ("", "0.1 [a]", "")
    assert line(section, "lost") == ("", "", "", "", "0.2500", "", "", "")
    assert section.notes[-1] == "[a] It is odd."


def test_what_is_no_forecast_any_more_is_said_in_a_word() -> None:
    """The bare backbone's MAE is 0.25 with the first seed and 1 with the other: the lines are at 25 and 100."""
    results = [result("original", value, seed=seed) for seed, value in enumerate((0.25, 1.0))]
    results += [result("solid", 25.0), result("gd", 19.9), result("copy", 26.0, protocol="delay=12")]
    results += [result("er", value, seed=seed) for seed, value in enumerate((0.2, 101.0))]
    block = [entry(name, mae=Number("0.5")) for name in ("original", "solid", "gd", "er")]
    section = compare("", ("method",), [[*block, entry("copy", "delay=12")]], Measured.of(results))
    assert line(section, "solid")[:6] == ("diverged", "0.5", "", "diverged", "", "")
    assert line(section, "copy")[:6] == ("diverged", "", "", "diverged", "", "")  # held against the honest one
    assert line(section, "gd")[:3] == ("19.9000", "0.5", "39.800")
    assert line(section, "er")[:2] == ("diverged", "0.5")  # of one of its seeds
    assert BROKEN in section.notes
    alone = compare("", ("method",), [[entry("solid")]], Measured.of([result("solid", 1e9)]))
    assert line(alone, "solid")[0] == "1000000000.0000"  # nothing to hold it against


def test_a_seed_is_held_against_the_bare_backbone_of_its_own() -> None:
    """Under the protocol the bare backbone has run with one seed; of the others the honest one tells."""
    bare = [result("original", 0.5, protocol="one-step"), *(result("original", 0.5, seed=seed) for seed in range(3))]
    cells = [result("gd", 1e40 if seed == 1 else 0.4, protocol="one-step", seed=seed) for seed in range(3)]
    section = compare("", ("method",), [[entry("gd", "one-step")]], Measured.of([*bare, *cells]))
    assert line(section, "gd")[0] == "diverged"


def test_what_a_cell_tells_of_its_network_counts_first() -> None:
    told = [result("gd", 1e9, metrics={"bare_mae": 0.5}), result("er", 60.0, metrics={"bare_mae": 0.7})]
    block = [entry("gd"), entry("er")]
    alone = compare("", ("method",), [block], Measured.of(told))
    assert [line(alone, name)[0] for name in ("gd", "er")] == ["diverged", "60.0000"]
    beside = compare("", ("method",), [block], Measured.of([*told, result("original", 0.5)]))
    assert [line(beside, name)[0] for name in ("gd", "er")] == ["diverged", "60.0000"]


def test_nothing_diverges_from_a_bare_backbone_without_error() -> None:
    section = compare("", ("method",), [[entry("gd")]], Measured.of([result("original", 0.0), result("gd", 0.0)]))
    assert line(section, "gd")[0] == "0.0000"


def test_letters_go_on_after_z() -> None:
    doubts = Doubts()
    shown = [doubts.shown(Number("1", str(place))) for place in range(28)]
    assert [shown[place] for place in (0, 25, 26, 27)] == ["1 [a]", "1 [z]", "1 [aa]", "1 [ab]"]
    assert doubts.shown(Number("2", "25")) == "2 [z]"


def test_other_data_has_no_ratio() -> None:
    spot = Spot("weather-stand-in", "tcn", 24, "id")
    measured = Measured.of([result("ompb", 0.5, dataset="weather-stand-in")])
    section = compare("", ("method",), [[entry("ompb", spot=spot, mae=Number("0.25"))]], measured)
    assert line(section, "ompb")[:3] == ("0.5000", "0.25", "")
    assert "weather-stand-in is not the paper's weather, so there is no ratio." in section.notes


def test_leaks_are_named_once_for_each_delay() -> None:
    protocols = ("honest", "one-step", "delay=12", "delay=24", "delay=48")
    measured = Measured.of([result("copy", 0.5, protocol=protocol) for protocol in protocols])
    section = compare("", ("method",), [[entry("copy", protocol) for protocol in protocols]], measured)
    leaks = [note for note in section.notes if note.startswith("LEAKS")]
    assert leaks == [f"LEAKS: a delay of {d} shows a method H-{d} of the H rows it is scored on." for d in (1, 12)]


def test_a_leak_that_is_not_everywhere_says_where() -> None:
    """A delay of 48 is shorter than 96 rows and as long as 48."""
    results = [result("copy", 0.5, protocol="delay=48", dataset=data, horizon=horizon)
               for data, horizon in (("ili", 48), ("etth", 96))]  # fmt: skip
    block = [Entry((), Place.of(found.cell)) for found in results]
    notes = compare("", (), [block], Measured.of(results)).notes
    assert notes[0] == "LEAKS: a delay of 48 shows a method H-48 of the H rows it is scored on: etth at H = 96."


def test_the_rows_of_ili_are_a_guess() -> None:
    for data, is_said in (("ili", True), ("etth", False)):
        spot = Spot(data, "tcn", 24, "id")
        block = [entry("ompb", spot=spot, mae=Number("0.25"))]
        section = compare("", ("method",), [block], Measured.of([result("ompb", 0.5, dataset=data)]))
        assert (HINT in section.notes) == is_said
    alone = compare("", ("method",), [[entry("ompb", spot=spot)]], Measured.of([result("ompb", 0.5, dataset="ili")]))
    assert HINT not in alone.notes  # no number of the paper's beside it


def test_duels_are_over_places_both_have_and_their_common_seeds() -> None:
    """Ratios 0.5 and 2; the third place has no rival. Seed 1 of the first has none either."""
    results = [result("ompb", 0.2), result("ompb", 9.0, seed=1), result("original", 0.4)]
    results += [result("ompb", 0.4, split="ood"), result("original", 0.2, split="ood"), result("ompb", 1, horizon=48)]
    measured = Measured.of(results)
    assert Duel.of(measured, ("honest", "ompb"), ("honest", "original")).ratios == (0.5, 2.0)
    met = duels(measured, [(("honest", "ompb"), ("honest", "original")), (("honest", "ompb"), ("honest", "copy"))])
    ((pair, duel),) = met.items()
    assert sentence(pair, duel) == (
        "`ompb` (honest) has a smaller MAE than `original` (honest) in 1 of 2 places (median ratio 1.250)."
    )
    (section,) = who_is_ahead(met)
    assert section.lines == (("ompb", "honest", "original", "2", "1", "1.250"),)
    assert who_is_ahead({}) == ()


def test_a_duel_leaves_out_places_where_either_side_has_diverged() -> None:
    """Ratios 0.5 and 2; at 48 rows the first is no forecast's, at 96 rows the second."""
    spots: tuple[dict[str, Any], ...] = ({}, {"split": "ood"}, {"horizon": 48}, {"horizon": 96})
    pairs = ((0.2, 0.4), (0.4, 0.2), (1e40, 0.4), (0.2, 1e40))
    results = [result(name, value, **spot)
               for spot, pair in zip(spots, pairs, strict=True)
               for name, value in zip(("original", "ompb", "gd"), (0.5, *pair), strict=True)]  # fmt: skip
    duel = Duel.of(Measured.of(results), ("honest", "ompb"), ("honest", "gd"))
    assert (duel.ratios, duel.diverged) == ((0.5, 2.0), 2)
    assert str(duel) == "in 1 of 2 places (median ratio 1.250, left out: 2 where either has diverged)"
    (section,) = who_is_ahead({(("honest", "ompb"), ("honest", "gd")): duel})
    assert section.notes[1:] == ("Left out are places where either has diverged: ompb against gd (honest) 2.",)


def test_what_is_missing_and_what_was_there() -> None:
    there = [result("ompb", 0.5), result("copy", 0.5)]
    wanted = [found.cell for found in (*there, result("copy", 0, seed=1), result("copy", 0, seed=2))]
    assert missing(wanted, there) == "Missing: 2 of 4 cells (copy honest 2)."
    assert missing(wanted[:2], there) == ""
    many = [result(f"m{place}", 0, seed=seed).cell for place in range(14) for seed in range(2)]
    assert missing([*wanted[:1], *many], there).endswith(", and others 4).")
    assert missing(many, there) == "None of the 28 cells asked for has run."
    assert made_from(there) == {"cells": 2, "commits": ["c0ffee"], "devices": ["cpu"]}
    whole = [replace(there[0], commit="0123456789abcdef"), replace(there[1], commit="0123456789ab")]
    assert made_from(whole)["commits"] == ["0123456789ab"]  # of a store, and of an exported table


def test_every_method_of_a_stream_is_scored_on_as_many_forecasts() -> None:
    early = replace(result("copy", 0.2), facts={})  # of a version that did not say how many
    measured = Measured.of([result("original", 0.3), early, result("last", 0.1, horizon=96)])
    assert [measured.windows(Place.of(one.cell)) for one in (early, result("last", 0.1, split="ood"))] == ["100", ""]
    unknown = Measured.of([early])
    assert unknown.windows(Place.of(early.cell)) == ""


def test_a_line_around_another_network_is_named() -> None:
    """On the seeds of its group alone: the second of `retrain` stands on the same network as the bare forecaster."""
    results = [result("original", 1.0, seed=seed) for seed in range(2)]
    results += [result("retrain", 0.8, seed=seed, metrics={BARE: 1.2 - 0.2 * seed}) for seed in range(2)]
    results += [result("ompb", 0.7, seed=seed, metrics={BARE: 1.0001}) for seed in range(2)]
    block = [entry(name) for name in ("original", "ompb", "retrain")]
    said = f"{ELSEWHERE}: `retrain` 1."
    assert said in compare("", ("method",), [block], Measured.of(results)).notes
    one_seed = [one for one in results if one.cell.seed == 1]
    assert not any(note.startswith(ELSEWHERE) for note in compare("", ("m",), [block], Measured.of(one_seed)).notes)


def test_what_has_diverged_has_no_mean_of_the_seeds_that_survived() -> None:
    """It keeps an infinite error and no other score."""
    lost = result("gd", math.inf, seed=1)
    kept = [result(name, 0.5, seed=seed, metrics={"crps": 0.2}) for name in ("gd", "original") for seed in (0, 1)]
    measured = Measured.of([*(one for one in kept if one.cell != lost.cell), lost])
    assert measured.mean(place("gd"), "crps", (0, 1)) == math.inf
    assert measured.mean(place("gd"), "crps", (0,)) == 0.2
    assert measured.mean(place("gd"), "nll", (0,)) is None
    assert measured.mean(place("gd"), "crps", (0, 2)) is None
    assert measured.mean(place("gd"), "crps", ()) is None
