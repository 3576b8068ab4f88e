from pathlib import Path

import pytest

from ompb.bench.findings import Section
from ompb.bench.store import Cell, Result
from ompb.bench.tables import NO_PAPER, TABLES, TRIVIAL, make_table, paper_folder, printed_numbers, render
from ompb.errors import FormatError, InputError, OptionError

HEADER = "table,dataset,backbone,method,horizon,split,metric,value,bold\n"


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    lines = [
        f"etth_all_split,etth,tcn,{method},24,{split},{metric},{value},0\n"
        for method, value in (("original", "0.5000"), ("solid", "0.4000"), ("ompb", "0.2000"))
        for split in ("id", "ood")
        for metric in ("mae", "mse")
    ]
    (tmp_path / "accuracy.csv").write_text(HEADER + "".join(lines) + "ili_results,ili,tcn,ompb,24,id,mae,9,0\n")
    return tmp_path


def result(method: str, mae: float, *, protocol: str = "honest", backbone: str = "tcn", **other: object) -> Result:
    place: dict[str, object] = {"dataset": "etth", "horizon": 24, "split": "id", "seed": 0, **other}
    cell = Cell(protocol=protocol, backbone=backbone, method=method, **place)  # type: ignore[arg-type]
    return Result(cell, {"mae": mae, "mse": mae**2, "nll": 0.0}, {}, {}, "cpu", None, {})


def line(section: Section, *start: str) -> tuple[str, ...]:
    (found,) = (line for line in section.lines if line[: len(start)] == start)
    return found[4:]


def test_ours_beside_the_papers(paper: Path) -> None:
    (section,) = make_table("etth_all_split", [result("original", 0.45), result("ompb", 0.3)], paper)
    assert section.title == "etth_all_split: etth, protocol honest"
    assert section.headings[4:] == ("MAE", "paper", "ratio", "MSE", "paper", "ratio")
    assert line(section, "tcn", "24", "id", "original") == ("0.4500", "0.5000", "0.900", "0.2025", "0.5000", "0.405")
    assert line(section, "tcn", "24", "id", "ompb")[:3] == ("0.3000", "0.2000", "1.500")
    assert any("one-step" in note for note in section.notes)


def test_what_is_missing_stays_blank(paper: Path) -> None:
    (section,) = make_table("etth_all_split", [result("ompb", 0.3)], paper)
    assert line(section, "tcn", "24", "id", "original") == ("", "0.5000", "", "", "0.5000", "")
    assert line(section, "tcn", "24", "ood", "solid")[:3] == ("", "0.4000", "")
    assert line(section, "tcn", "24", "ood", "ompb-paper")[:3] == ("", "0.2000", "")
    for method in TRIVIAL:
        assert set(line(section, "tcn", "24", "ood", method)) == {""}


def test_trivial_methods_are_always_there() -> None:
    for results in ([result("ompb", 0.3)], [result("copy", 0.2, protocol="one-step")]):
        (section,) = make_table("etth_all_split", results, None)
        assert {"original", *TRIVIAL} <= {line[3] for line in section.lines}


def test_without_the_paper_the_table_says_so() -> None:
    (section,) = make_table("etth_all_split", [result("original", 0.45)], None)
    assert section.notes == (NO_PAPER,)
    assert section.headings[4:] == ("MAE", "MSE")
    assert line(section, "tcn", "24", "id", "original") == ("0.4500", "0.2025")
    (nothing,) = make_table("ili_results", [], None)
    assert (nothing.title, nothing.lines) == ("ili_results: ili, protocol honest", ())


@pytest.mark.parametrize(("protocol", "shown"), [("one-step", "H-1"), ("delay=5", "H-5")])
def test_a_leaky_protocol_is_named(protocol: str, shown: str) -> None:
    sections = make_table("etth_all_split", [result("copy", 0.4), result("copy", 0.2, protocol=protocol)], None)
    honest, leaky = sorted(sections, key=lambda section: "honest" not in section.title)
    assert leaky.title.endswith(f"protocol {protocol}")
    assert f"LEAKS: this protocol shows a method {shown} of the H rows it is scored on." in leaky.notes
    assert not any("LEAKS" in note for note in honest.notes)
    assert line(leaky, "tcn", "24", "id", "copy")[0] == "0.2000"


def test_a_delay_as_long_as_the_horizon_does_not_leak() -> None:
    (section,) = make_table("etth_all_split", [result("copy", 0.4, protocol="delay=24")], None)
    assert not any("LEAKS" in note for note in section.notes)


def test_labelled_backbones_stand_in_the_place_of_the_papers(paper: Path) -> None:
    path = paper / "accuracy.csv"
    path.write_text(path.read_text().replace(",tcn,", ",gpt4ts,"))
    (section,) = make_table("etth_all_split", [result("original", 0.45, backbone="gpt4ts[random]")], paper)
    assert {line[0] for line in section.lines} == {"gpt4ts[random]"}
    assert line(section, "gpt4ts[random]", "24", "id", "original")[:3] == ("0.4500", "0.5000", "0.900")


def test_seeds_are_averaged() -> None:
    results = [result("ompb", value, seed=seed) for seed, value in enumerate((0.3, 0.4))]
    (section,) = make_table("etth_all_split", results, None)
    assert line(section, "tcn", "24", "id", "ompb")[0] == "0.3500 ± 0.0707"
    assert any("seeds" in note for note in section.notes)


def test_the_stand_in_is_not_compared_with_the_paper(paper: Path) -> None:
    path = paper / "accuracy.csv"
    path.write_text(path.read_text().replace("etth_all_split,etth", "weather_all_split,weather"))
    results = [result("original", 0.45, dataset=name) for name in TABLES["weather_all_split"]]
    true, stand_in = make_table("weather_all_split", results, paper)
    assert line(true, "tcn", "24", "id", "original")[:2] == ("0.4500", "0.5000")
    assert line(stand_in, "tcn", "24", "id", "original") == ("0.4500", "0.2025")
    assert any("not the paper's data" in note for note in stand_in.notes)


def test_formats(paper: Path) -> None:
    results = [result("original", 0.45), result("<b>", 0.3, protocol="one-step")]
    sections = make_table("etth_all_split", results, paper)
    text, markdown, html = (render(sections, style) for style in ("text", "markdown", "html"))
    for page in (text, markdown, html):
        assert page.count("0.4500") == 1
        assert page.count("LEAKS") == 1
    lines = text.splitlines()
    heading = next(line for line in lines if line.startswith("backbone"))
    original = next(line for line in lines if "0.4500" in line)
    assert heading.index("MAE") + 3 == original.index("0.4500") + 6
    assert "| tcn | 24 | id | original | 0.4500 | 0.5000 | 0.900 |" in markdown
    assert "| --- | --- | --- | --- | ---: |" in markdown
    assert "<td>&lt;b&gt;</td>" in html
    assert html.startswith("<!doctype html>")


def test_bad_requests_are_refused(paper: Path, tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no table 'main'; accepted: etth_all_split"):
        make_table("main", [], None)
    with pytest.raises(InputError, match=r"no accuracy\.csv"):
        printed_numbers(tmp_path / "nowhere", "ili_results")
    with pytest.raises(InputError, match="no number of the table weather_all_split"):
        make_table("weather_all_split", [], paper)
    (paper / "accuracy.csv").write_text("table,value\nili_results,1\n")
    with pytest.raises(FormatError, match="backbone"):
        printed_numbers(paper, "ili_results")


def test_the_folder_of_the_papers_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMPB_PAPER", raising=False)
    assert paper_folder(None) is None
    monkeypatch.setenv("OMPB_PAPER", "printed")
    assert paper_folder(None) == Path("printed")
    assert paper_folder(Path("mine")) == Path("mine")
