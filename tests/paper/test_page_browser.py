"""The page in a real browser: nothing goes wrong, figures are drawn, tables sort and filter, both themes, a phone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from page_folder import FINDING, cells, committed_page, write_results

from chromium import Page, chromium, chromium_path
from ompb.paper.page.html import results_page
from ompb.paper.page.material import Material

DOUBTFUL = "Array.from(document.querySelectorAll('table')).find((t) => t.caption || t.textContent.includes('m11'))"


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


def first_column(browser: Page, shown: str = "!row.hidden") -> list[str]:
    found: list[str] = browser.value(
        f"Array.from({DOUBTFUL}.tBodies[0].rows).filter((row) => {shown}).map((row) => row.cells[0].textContent)"
    )
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
    assert len(drawn) == 4
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
    assert first_column(browser) == sorted(as_written)
    assert browser.value(f"{heading}.getAttribute('aria-sort')") is None


def test_the_filter_hides_lines_without_the_words(browser: Page, address: str) -> None:
    browser.open(address)
    tools = f"{DOUBTFUL}.closest('.box').previousElementSibling"
    browser.value(f"{tools}.querySelector('input').focus()")
    browser.ask("Input.insertText", text="M1 0.5")
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


def test_it_can_be_printed_whole(browser: Page, address: str) -> None:
    browser.open(address, dark=True)
    browser.ask("Emulation.setEmulatedMedia", media="print")
    try:
        assert browser.value("getComputedStyle(document.querySelector('.tools')).display") == "none"
        assert browser.value("getComputedStyle(document.querySelector('.box')).maxHeight") == "none"
        assert luminance(browser.value("getComputedStyle(document.body).backgroundColor")) > 0.9
    finally:
        browser.ask("Emulation.setEmulatedMedia", media="")


def test_the_committed_page_loads_without_a_word(browser: Page, tmp_path: Path) -> None:
    page = tmp_path / "index.html"
    page.write_text(committed_page(), encoding="utf-8")
    browser.errors.clear()
    browser.open(page.as_uri(), width=390, height=844)
    assert browser.value("document.querySelectorAll('tbody tr').length") > 500
    assert browser.value("document.documentElement.scrollWidth") <= 390
    assert browser.errors == []
