from ompb.bench.findings import Section
from ompb.bench.render import render

HEADINGS = ("backbone", "horizon", "split", "method", "MAE", "paper")
SECTIONS = [
    Section("First", ("Note.",), HEADINGS, (("tcn", "24", "id", "original", "0.4500", "0.5"),)),
    Section("Second", (), HEADINGS, (("tcn", "24", "id", "<b>", "0.3000", ""),)),
    Section("Third", (), ("name", "value"), (("one", "10"), ("other", "7")), keys=1),
]


def test_text_is_aligned_words_to_the_left_and_numbers_to_the_right() -> None:
    assert render(SECTIONS, "text").splitlines() == [
        "First",
        "Note.",
        "backbone  horizon  split  method       MAE  paper",
        "tcn       24       id     original  0.4500    0.5",
        "",
        "Second",
        "backbone  horizon  split  method     MAE  paper",
        "tcn       24       id     <b>     0.3000",
        "",
        "Third",
        "name   value",
        "one       10",
        "other      7",
    ]


def test_markdown() -> None:
    first, *_, last = render(SECTIONS, "markdown").split("### ")[1:]
    assert first.splitlines()[:6] == [
        "First",
        "",
        "Note.",
        "",
        "| backbone | horizon | split | method | MAE | paper |",
        "| --- | --- | --- | --- | ---: | ---: |",
    ]
    assert "| tcn | 24 | id | original | 0.4500 | 0.5 |" in first
    assert "| --- | ---: |" in last


def test_a_name_with_a_bar_stays_in_its_cell() -> None:
    made = render([Section("", (), ("a|b",), (("x|y",),), keys=1)], "markdown")
    assert made.splitlines()[2:] == ["| a\\|b |", "| --- |", "| x\\|y |"]


def test_html_escapes_what_it_shows() -> None:
    page = render(SECTIONS, "html")
    assert page.startswith("<!doctype html>")
    assert "<td>&lt;b&gt;</td>" in page
    assert "<p>Note.</p>" in page
    assert page.count("<table>") == 3
