from made_up import line, result, runs

from ompb.bench.findings import Section
from ompb.paper.analysis import Scope
from ompb.paper.main import ANALYSES, reduce, wanted
from ompb.paper.printed import accuracy

QUICK = Scope(quick=True)


def sections(table: str, *results: object) -> dict[str, Section]:
    found = reduce(table, runs(results), QUICK).sections  # type: ignore[arg-type]
    return {section.title: section for section in found if section.title != "Who is ahead"}


def test_ours_beside_the_papers() -> None:
    """The paper prints 0.4588 for the bare TCN and 0.3635 for its own method, which stands beside both of ours."""
    found = sections("etth_all_split", result("original", 0.9176), result("ompb-paper", 0.5), result("ompb", 0.3))
    (section,) = found.values()
    assert section.title == "etth_all_split: etth, protocol honest"
    assert line(section, "tcn", "24", "id", "original")[:3] == ("0.9176", "0.4588", "2.000")
    assert line(section, "tcn", "24", "id", "ompb")[:3] == ("0.3000", "0.3635", "0.825")
    assert line(section, "tcn", "24", "id", "ompb-paper")[:3] == ("0.5000", "0.3635", "1.376")
    assert [words[3] for words in section.lines] == ["original", "ompb", "ompb-paper", "onenet", "proceed", "solid"]
    assert line(section, "tcn", "24", "id", "solid")[0] == ""


def test_the_numbers_that_cannot_be_are_marked() -> None:
    (section,) = sections("etth_all_split", result("original", 1.0, split="ood")).values()
    assert line(section, "tcn", "24", "ood", "proceed")[1] == "1.1002 [a]"
    assert any(note.startswith("[a] An MSE below the square") for note in section.notes)


def test_protocols_apart_and_other_protocols_epochs_and_options_left_out() -> None:
    strange = [
        result("copy", 0.1, protocol="full"),
        result("copy", 0.1, backbone="tcn@5"),
        result("ompb-paper[draws=2]", 0.1),
        result("copy", 0.1, dataset="ili"),
    ]
    found = sections("etth_all_split", result("copy", 0.4), result("copy", 0.2, protocol="one-step"), *strange)
    assert list(found) == ["etth_all_split: etth, protocol honest", "etth_all_split: etth, protocol one-step"]
    honest, leaky = found.values()
    assert (line(honest, "tcn", "24", "id", "copy")[0], line(leaky, "tcn", "24", "id", "copy")[0]) == (
        "0.4000",
        "0.2000",
    )
    assert leaky.notes[0].startswith("LEAKS: a delay of 1")
    assert not any("0.1000" in words for words in (*honest.lines, *leaky.lines))


def test_labelled_backbones_stand_in_the_place_of_the_papers() -> None:
    (section,) = sections("etth_all_split", result("original", 0.5, backbone="gpt4ts[random]")).values()
    assert {words[0] for words in section.lines} == {"gpt4ts[random]"}
    assert line(section, "gpt4ts[random]", "24", "id", "original")[1] == "0.3794"


def test_the_stand_in_has_no_ratio() -> None:
    found = sections(
        "weather_all_split",
        result("original", 0.6706, dataset="weather-5k"),
        result("original", 0.5, dataset="weather-stand-in"),
    )
    true, stand_in = found.values()
    assert line(true, "tcn", "24", "id", "original")[:3] == ("0.6706", "0.3353", "2.000")
    assert line(stand_in, "tcn", "24", "id", "original")[:3] == ("0.5000", "0.3353", "")


def test_cells() -> None:
    quick = wanted("etth_all_split", QUICK)
    assert {(cell.dataset, cell.backbone, cell.horizon, cell.seed) for cell in quick} == {("etth", "tcn", 24, 0)}
    leaky = {cell.method for cell in quick if cell.protocol == "one-step"}
    assert {"original", "profile", "copy", "ompb-paper", "solid"} <= leaky
    assert {cell.method for cell in quick if cell.protocol == "honest"} == {"ompb", "gd", "elf", *leaky}
    full = wanted("ili_results", Scope())
    shown = {cell.method for cell in full if cell.protocol == "one-step"}
    assert not shown & {"ompb", "retrain", "retrain+ompb"}
    printed = {method for _, _, method, *_ in accuracy("ili_results")}
    assert shown == {"original", "last", "bias", "copy", "ompb-paper", *printed - {"ompb"}}
    assert {"ompb", "retrain", "retrain+ompb", *shown} <= {cell.method for cell in full if cell.protocol == "honest"}
    assert len(set(full)) == len(full)
    assert {cell.horizon for cell in full} == {24, 48, 72}
    assert "profile" not in {cell.method for cell in full}
    assert {cell.seed for cell in full if cell.method == "ompb"} == {0, 1, 2}
    solid = [cell for cell in full if cell.method == "solid"]
    often = {(cell.backbone, cell.protocol) for cell in solid if cell.seed > 0}
    assert often == {("tcn", "honest"), ("autoformer", "honest")}
    assert all({cell.seed for cell in solid if (cell.backbone, cell.protocol) == one} == {0, 1, 2} for one in often)
    assert {cell.dataset for cell in wanted("weather_all_split", Scope())} == {"weather-stand-in"}


def test_nothing_has_run() -> None:
    assert [analysis.name for analysis in ANALYSES] == ["etth_all_split", "ili_results", "weather_all_split"]
    for analysis in ANALYSES:
        finding = analysis.reduce(runs([]), QUICK)
        assert (finding.analysis, finding.sections) == (analysis.name, ())
        assert finding.text == "No cell of this table has run yet."


def test_text_and_missing() -> None:
    finding = reduce("etth_all_split", runs([result("original", 0.5), result("ompb", 0.4)]), QUICK)
    assert "`ompb` (honest) has a smaller MAE than `original` (honest) in 1 of 1 places" in finding.text
    assert finding.made_from["cells"] == 2
    ahead, section = finding.sections
    assert ahead.lines == (("ompb", "honest", "original", "1", "1", "0.800"),)
    assert any(note.startswith("Missing: ") for note in section.notes)


def test_what_is_missing_is_said_of_each_section() -> None:
    """Of the quick cells under the honest protocol a bare backbone is there, of those under the other nothing else."""
    found = sections("etth_all_split", result("original", 0.4), result("original", 0.4, protocol="one-step"))
    for protocol, section in zip(("honest", "one-step"), found.values(), strict=True):
        asked = [cell for cell in wanted("etth_all_split", QUICK) if cell.protocol == protocol]
        (note,) = (note for note in section.notes if note.startswith("Missing: "))
        assert note.startswith(f"Missing: {len(asked) - 1} of {len(asked)} cells (")
        assert {"honest": "one-step", "one-step": "honest"}[protocol] not in note


def test_weights_of_another_origin_are_asked_for_like_the_usual_ones() -> None:
    (section,) = sections("etth_all_split", result("original", 0.5, backbone="gpt4ts[random]")).values()
    assert not any(note.startswith("Lines") for note in section.notes)


def test_lines_that_nobody_asks_for_are_explained() -> None:
    places = [("weather-stand-in", protocol) for protocol in ("honest", "one-step")]
    found = sections(
        "weather_all_split", *(result("original", 0.4, dataset=data, protocol=protocol) for data, protocol in places)
    )
    honest, leaky = ([note for note in section.notes if note.startswith("Lines")] for section in found.values())
    assert honest == []  # asked for, and so missing
    assert leaky == [
        "Lines with the paper's numbers alone: `onenet`, `proceed`, `solid` are not asked for under one-step on data "
        "that stand in for the paper's."
    ]
