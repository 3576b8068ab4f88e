"""The page in a real browser: figures are drawn, tables sort, filter and scroll, both themes, a phone, paper."""

from __future__ import annotations

import base64
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_folder import FINDING, cells, committed_page, write_results

from chromium import DRAWN, Page, chromium, chromium_path
from ompb.paper.page.html import results_page
from ompb.paper.page.material import Material

DOUBTFUL, MIXED, LONG = (
    f"document.querySelector('table[aria-labelledby=made-up-{name}]')"
    for name in ("doubtful-numbers", "numbers-and-words", "more-than-a-page")
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = write_results(tmp_path_factory.mktemp("results"), cells(), [FINDING])
    page = folder / "index.html"
    page.write_text(results_page(Material.read(folder)), encoding="utf-8")
    return page.as_uri()


@pytest.fixture(scope="module")
def browser() -> Iterator[Page]:
    program = chromium_path()
    if program is None:
        pytest.skip("Chromium is not installed (Debian: apt-get install chromium)")
    with chromium(program) as page:
        yield page


def column(browser: Page, table: str, place: int, shown: str = "!row.hidden") -> list[str]:
    found: list[str] = browser.value(
        f"Array.from({table}.tBodies[0].rows).filter((row) => {shown}).map((row) => row.cells[{place}].textContent)"
    )
    return [" ".join(words.split()) for words in found]


def first_column(browser: Page, shown: str = "!row.hidden") -> list[str]:
    return column(browser, DOUBTFUL, 0, shown)


def sort(browser: Page, table: str, place: int) -> list[str]:
    browser.value(f"{table}.tHead.rows[0].cells[{place}].querySelector('button').click()")
    return column(browser, table, place)


def type_in(browser: Page, table: str, words: str) -> list[tuple[str, ...]]:
    """The keys of the lines that are left."""
    box = f"{table}.closest('.edge').previousElementSibling.querySelector('input')"
    browser.value(f"{box}.value = {words!r}; {box}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    return list(zip(column(browser, table, 0), column(browser, table, 1), strict=True))


def colour(browser: Page, at: str) -> str:
    found: str = browser.value(f"getComputedStyle(document.querySelector({at!r})).color")
    return found


def luminance(colour: str) -> float:
    """Of a colour as browsers compute it, rgb(r, g, b), from 0 to 1."""
    channels = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_nothing_goes_wrong_and_every_figure_has_content(browser: Page, address: str) -> None:
    browser.errors.clear()
    browser.open(address)
    drawn: list[list[Any]] = browser.value(
        "Array.from(document.querySelectorAll('figure svg'), (svg) => { const box = svg.getBoundingClientRect();"
        " const marks = Array.from(svg.querySelectorAll('path, rect'), (mark) => mark.getBoundingClientRect());"
        " return [box.width, box.height, marks.filter((mark) => mark.width + mark.height > 4).length]})"
    )
    assert len(drawn) == 7
    for width, height, marks in drawn:
        assert width > 200
        assert height > 80
        assert marks > 5
    assert browser.errors == []


def test_an_error_would_be_seen(browser: Page, address: str) -> None:
    browser.errors.clear()
    browser.open(address)
    browser.value("console.error('a word')")
    assert browser.value("1 + 1") == 2
    assert len(browser.errors) == 1
    browser.errors.clear()


def test_a_heading_sorts_by_number_and_back_also_from_the_keyboard(browser: Page, address: str) -> None:
    browser.open(address)
    as_written = [f"m{n}" for n in range(12)]
    assert first_column(browser) == as_written
    heading = f"{DOUBTFUL}.tHead.rows[0].cells[3]"
    browser.value(f"{heading}.querySelector('button').click()")
    assert browser.value(f"{heading}.getAttribute('aria-sort')") == "ascending"
    assert first_column(browser) == as_written  # 0.000 to 2.200: by number, not by letter
    browser.value(f"{heading}.querySelector('button').focus()")
    browser.press("Enter")
    assert browser.value(f"{heading}.getAttribute('aria-sort')") == "descending"
    assert first_column(browser) == as_written[::-1]
    browser.value(f"{DOUBTFUL}.tHead.rows[0].cells[0].querySelector('button').click()")
    assert first_column(browser) == as_written  # m2 before m10
    assert browser.value(f"{heading}.getAttribute('aria-sort')") is None


def test_numbers_sort_by_value_what_diverged_above_them_and_words_after(browser: Page, address: str) -> None:
    browser.open(address)
    epochs = ["5", "20", "20", "96", "100", "100", "never", "val"]
    assert sort(browser, MIXED, 1) == [*epochs, ""]
    assert sort(browser, MIXED, 1) == [*epochs[::-1], ""]  # blank ones last, whatever the order
    errors = ["-0.5000", "1e-7", "0.4961 ± 0.0105", "0.9600", "3.0 [a]", "12.5000 ± 0.3000", "7.9e+24", "diverged"]
    assert sort(browser, MIXED, 2) == [*errors, ""]
    shares = ["0 of 3", "2 of 96", "9 of 100", "1 of 2", "3 of 4", "5 of 6", "7 of 8", "10 of 10"]
    assert sort(browser, MIXED, 3) == [*shares, ""]


def test_the_filter_knows_keys_only_whole_numbers_and_beginnings_of_words(browser: Page, address: str) -> None:
    browser.open(address)
    assert type_in(browser, MIXED, "96") == [("id+tuned", "96")]  # not 0.4961, 0.9600 or 2 of 96
    assert {keys[0] for keys in type_in(browser, MIXED, "id")} == {"id", "id+tuned"}  # not solid
    assert type_in(browser, MIXED, "TUNED") == type_in(browser, MIXED, "+tuned") == [("id+tuned", "96")]
    assert type_in(browser, MIXED, "id 100") == [("id", "100")]
    assert type_in(browser, MIXED, "diverged") == []
    tools = f"{MIXED}.closest('.edge').previousElementSibling"
    assert browser.value(f"{tools}.querySelector('input').placeholder") == "Filter: solid 100"
    type_in(browser, MIXED, "")
    select = f"{tools}.querySelectorAll('select')[1]"
    options = browser.value(f"Array.from({select}.options, (one) => [one.text, one.value])")
    assert options[0] == ["epochs: all", "*"]
    assert ["(none)", ""] in options
    browser.value(f"{select}.value = ''; {select}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    assert column(browser, MIXED, 0) == ["id"]


def test_a_worse_ratio_of_ours_has_the_colour_of_worse(browser: Page, address: str) -> None:
    browser.open(address)
    worse, better = colour(browser, "header .worse"), colour(browser, "header .better")
    assert worse != better
    for row in ("tr.ours", "tr:not(.ours)"):
        assert colour(browser, f"{row} td.worse") == worse
    assert colour(browser, "tr:not(.ours) td.better") == better
    assert colour(browser, "tr.ours td:not([class])") == colour(browser, "body")
    grounds = [browser.value(f"getComputedStyle(document.querySelector('{at}')).backgroundColor")
               for at in ("tr.ours", "tbody tr:not(.ours)")]  # fmt: skip
    assert grounds[0] != grounds[1]


def test_the_filter_hides_lines_without_the_words(browser: Page, address: str) -> None:
    browser.open(address)
    tools = f"{DOUBTFUL}.closest('.edge').previousElementSibling"
    browser.value(f"{tools}.querySelector('input').focus()")
    browser.ask("Input.insertText", text="M1")
    assert first_column(browser) == ["m1", "m10", "m11"]
    assert browser.value(f"{tools}.querySelector('output').textContent") == "3 of 12 lines"
    select = f"{tools}.querySelector('select')"
    browser.value(f"{select}.value = 'm10'; {select}.dispatchEvent(new Event('input', {{bubbles: true}}))")
    assert first_column(browser) == ["m10"]
    assert len(first_column(browser, "true")) == 12


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_both_themes_can_be_read_and_the_button_changes_them(browser: Page, address: str, dark: bool) -> None:
    browser.open(address, dark=dark)

    def page_and_words() -> list[str]:
        parts = (
            ("body", "backgroundColor"),
            ("body", "color"),
            ("td.better", "color"),
            ("td.worse", "color"),
            ("figcaption", "color"),
            (".panels svg text", "fill"),
            ("th button", "color"),
        )
        return [browser.value(f"getComputedStyle(document.querySelector('{at}')).{what}") for at, what in parts]

    before, *words = page_and_words()
    assert (luminance(before) < 0.1) is dark
    assert all(contrast(before, word) > 4.5 for word in words)
    browser.value("document.querySelector('button.theme').click()")
    after, *words = page_and_words()
    assert (luminance(after) < 0.1) is not dark
    assert all(contrast(after, word) > 4.5 for word in words)


def test_on_a_phone_only_boxes_scroll_sideways(browser: Page, address: str) -> None:
    browser.open(address, width=390, height=844)
    assert browser.value("document.documentElement.scrollWidth") <= 390
    size = browser.value(
        "Math.min(...Array.from(document.querySelectorAll('.panels svg text'), (text) =>"
        " parseFloat(getComputedStyle(text).fontSize) * text.ownerSVGElement.getScreenCTM().a))"
    )
    assert size >= 9  # pixels


def test_on_a_phone_the_name_of_a_line_stays_and_a_shadow_says_that_there_is_more(browser: Page, address: str) -> None:
    browser.open(address, width=390, height=844)
    table = "document.querySelector('table[aria-labelledby=in-short-etth-tcn-mean-absolute-error]')"
    box = f"{table}.closest('.box')"
    classes = f"{box}.parentElement.className"
    assert browser.value(f"{classes}") == "edge right"
    assert browser.value(f"[{box}.tabIndex, {box}.getAttribute('role')].join()") == "0,group"
    left = f"{table}.tBodies[0].rows[1].cells[0].getBoundingClientRect().left - {box}.getBoundingClientRect().left"
    before = browser.value(left)
    browser.value(f"(async () => {{ {box}.scrollLeft = 9999; await {DRAWN} }})()")
    assert browser.value(left) == before
    assert browser.value(f"{table}.tBodies[0].rows[1].cells[1].getBoundingClientRect().left") < 0
    assert browser.value(classes) == "edge"


def test_only_boxes_that_scroll_are_stops_of_the_keyboard(browser: Page, address: str) -> None:
    browser.open(address)
    stops = (
        "Array.from(document.querySelectorAll('.box'), (box) => [box.tabIndex, box.scrollHeight - box.clientHeight])"
    )
    found = browser.value(stops)
    assert {stop for stop, more in found if more > 1} == {0}
    assert {stop for stop, more in found if more <= 1} == {-1}
    assert browser.value(f"{LONG}.closest('.box').getAttribute('aria-labelledby')") == "made-up-more-than-a-page"


def test_means_stand_below_each_other(browser: Page, address: str) -> None:
    browser.open(address)
    cells = f"Array.from({MIXED}.tBodies[0].rows, (row) => row.cells[2]).filter((cell) => cell.children.length)"
    ends = browser.value(
        f"{cells}.map((cell) =>"
        " { const range = document.createRange(); range.selectNode(cell.firstChild); range.setEnd(cell.firstChild,"
        " cell.firstChild.textContent.trimEnd().length); return Math.round(range.getBoundingClientRect().right) })"
    )
    assert len(ends) == 7
    assert len(set(ends)) == 1


@pytest.fixture
def on_paper(browser: Page, address: str) -> Iterator[Page]:
    """Dark has been chosen, and the page is about to be printed."""
    browser.open(address, dark=True)
    browser.value("document.documentElement.dataset.theme = 'dark'")
    browser.ask("Emulation.setEmulatedMedia", media="print")
    yield browser
    browser.ask("Emulation.setEmulatedMedia", media="")


def test_it_can_be_printed_whole_in_light_colours(on_paper: Page) -> None:
    assert on_paper.value("getComputedStyle(document.querySelector('.tools')).display") == "none"
    assert on_paper.value(f"getComputedStyle({LONG}.closest('.box')).maxHeight") == "none"
    assert on_paper.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    inks = [colour(on_paper, at) for at in ("body", "header .worse", "header .better", "th")]
    stroke = (
        "Array.from(document.querySelectorAll('.panels path')).find((one) => one.style.stroke.includes('--series-0'))"
    )
    inks.append(on_paper.value(f"getComputedStyle({stroke}).stroke"))
    assert all(contrast("rgb(255, 255, 255)", ink) > 4.5 for ink in inks)


def test_every_page_of_a_table_has_its_head(on_paper: Page, tmp_path: Path) -> None:
    assert on_paper.value(f"getComputedStyle({LONG}.querySelector('th button')).display") == "contents"
    if shutil.which("pdftotext") is None:
        pytest.skip("pdftotext is not installed (Debian: apt-get install poppler-utils)")
    printed = on_paper.ask("Page.printToPDF", preferCSSPageSize=True)["data"]
    (tmp_path / "page.pdf").write_bytes(base64.b64decode(printed))
    text = subprocess.run(
        ["pdftotext", "-layout", tmp_path / "page.pdf", "-"], capture_output=True, text=True, check=True
    ).stdout
    pages = [page for page in text.split("\f") if re.search(r"thing\d", page)]
    assert len(pages) > 1
    assert all("quaint" in page for page in pages)


def test_the_committed_page_loads_without_a_word(browser: Page, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text(committed_page(), encoding="utf-8")
    browser.errors.clear()
    browser.open(page.as_uri(), width=390, height=844)
    assert browser.value("document.querySelectorAll('tbody tr').length") > 500
    assert browser.value("document.documentElement.scrollWidth") <= 390
    assert browser.errors == []
