"""The page of all results as text: complete without its script, and in need of nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from page_folder import FINDING, cells, committed_page, write_results

from ompb.bench.findings import Finding, Section
from ompb.paper.catalogue import ANALYSES
from ompb.paper.main import TABLES
from ompb.paper.page.html import MISSING, results_page
from ompb.paper.page.material import Material
from ompb.paper.page.words import inline, table

VOID = {"meta", "br", "input", "link", "img"}


class Balance(HTMLParser):
    """Checks that what is opened is closed, in order, and collects identifiers and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.names += [name for name in [found.get("id")] if name]
        self.links += [link for link in (found.get("href"), found.get("src"), found.get("xlink:href")) if link]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def parsed(page: str) -> Balance:
    parser = Balance()
    parser.feed(page)
    parser.close()
    assert parser.open == []
    return parser


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = write_results(tmp_path_factory.mktemp("results"), cells(), [FINDING])
    return results_page(Material.read(folder))


def test_the_page_stands_alone(page: str) -> None:
    found = parsed(page)
    assert len(found.names) == len(set(found.names))
    assert all(link.startswith("#") and link[1:] in found.names for link in found.links)
    contents = re.findall(r'<li><a href="#(.*?)">', page.partition("</nav>")[0])
    assert contents == sorted(contents, key=found.names.index)  # in the order of the page
    assert not re.search(r"@import|url\((?!#)|<link|<img|https?://(?!www\.w3\.org)", page)


def test_the_protocol_comes_first_and_everything_is_there(page: str) -> None:
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings[:3] == ["What a method is shown", "In short", "Losses and aims"]
    for words in ("A made-up analysis", "Every mark", "etth_all_split: etth, protocol honest", "a leak: the paper"):
        assert words in page
    assert page.count("<svg") == 1 + 3  # the clock, and the three panels
    assert "A wave &amp; what lies around it." in page


def test_without_findings_it_says_so(tmp_path: Path) -> None:
    text = results_page(Material.read(write_results(tmp_path, cells())))
    absent = text[text.index(inline(MISSING)) :].partition("</p>")[0]
    assert all((inline(one.title) in absent) is (one.name not in TABLES) for one in ANALYSES)
    assert "etth_all_split: etth, protocol one-step" in text  # made from the cells
    parsed(text)
    findings = [Finding(one.name, f"About {one.name}", "Nothing.") for one in reversed(ANALYSES)]
    whole = results_page(Material.read(write_results(tmp_path, cells(), findings)))
    assert inline(MISSING) not in whole
    places = [whole.rindex(f"About {one.name}") for one in ANALYSES]
    assert places == sorted(places)


def test_the_committed_results_make_a_page_below_five_megabytes() -> None:
    parsed(committed_page())
    assert len(committed_page().encode()) < 5e6


def test_ratios_are_coloured_and_doubts_marked() -> None:
    lines = (("ompb", "0.5", "1 [a]", "0.500"), ("<b>", "0.5", "1 [b]", "1.050"), ("elf", "", "", ""))
    made = table(Section("T", ('[a] Said "twice".',), ("method", "ours", "paper", "ratio"), lines, keys=1))
    parsed(made)
    assert '<tr class="ours"><td>ompb</td>' in made
    assert '<abbr class="doubt" title="Said &quot;twice&quot;." tabindex="0">[a]</abbr>' in made
    assert '<td class="better much">0.500</td>' in made
    assert '<tr><td>&lt;b&gt;</td><td>0.5</td><td>1 [b]</td><td class="worse">1.050</td></tr>' in made
    assert "<td></td><td></td><td></td>" in made
