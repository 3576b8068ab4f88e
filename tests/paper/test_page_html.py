"""The page of all results as text: complete without its script, and in need of nothing from elsewhere."""

from __future__ import annotations

import itertools
import re
import tomllib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from page_folder import FINDING, cells, committed_page, write_results

from ompb.baselines import retrain
from ompb.bench.backbones import UNSEEN_SHARE
from ompb.bench.contract import SCORED_LEVELS
from ompb.bench.findings import Curve, Figure, Finding, Panel, Section
from ompb.paper.catalogue import ANALYSES
from ompb.paper.main import TABLES
from ompb.paper.page.foreword import METHOD, PAPER, WHERE
from ompb.paper.page.glossary import WORDS
from ompb.paper.page.html import MISSING, results_page
from ompb.paper.page.material import Material
from ompb.paper.page.outline import of_figure
from ompb.paper.page.sheet import table
from ompb.paper.page.words import REPOSITORY, inline
from ompb.settings import Settings

ROOT = Path(__file__).parents[2]
VOID = {"meta", "br", "input", "link", "img"}


class Balance(HTMLParser):
    """Checks that what is opened is closed, in order, and collects identifiers and links."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: list[str] = []
        self.links: list[str] = []
        self.levels: list[int] = []  # of headings

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.names += [name for name in [found.get("id")] if name]
        self.links += [link for link in (found.get("href"), found.get("src"), found.get("xlink:href")) if link]
        self.levels += [int(tag[1])] if re.fullmatch("h[1-6]", tag) else []
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
    inside = [link[1:] for link in found.links if link.startswith("#")]
    assert set(inside) <= set(found.names)
    assert all(link.startswith(f"{REPOSITORY}") for link in found.links if not link.startswith("#"))
    contents = re.findall(r'<li><a href="#(.*?)">', page.partition("</nav>")[0])
    assert contents == sorted(contents, key=found.names.index)  # in the order of the page
    assert set(re.findall(r'aria-labelledby="(.*?)"', page)) <= set(contents)  # every table
    alone = re.sub(rf'<a href="{REPOSITORY}[^"]*">', "", page)  # followed only if a reader asks for it
    assert not re.search(r"@import|url\((?!#)|<link|<img|\ssrc=|https?://(?!www\.w3\.org)", alone)


def test_the_protocol_comes_first_and_everything_is_there(page: str) -> None:
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings[:4] == ["What a method is shown", "What the words mean", "In short", "Losses and aims"]
    for words in ("A made-up analysis", "Every mark", "etth_all_split: etth, protocol honest", "a leak: the paper"):
        assert words in page
    assert page.count("<svg") == 1 + 1 + 2 + 3  # the clock, ratios on a data set, errors on two splits, three panels
    assert "A wave &amp; what lies around it." in page


def test_headings_and_landmarks_lead_through_the_page(page: str) -> None:
    levels = parsed(page).levels
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels))
    assert set(levels) == {1, 2, 3, 4}
    assert re.search(r'<h3 class="finding">A made-up analysis</h3>(?s:.)*<h4 id="made-up-doubtful-numbers">', page)
    assert page.index('<a class="skip" href="#results">') < page.index("<nav ") < page.index('<main id="results">')
    assert page.count('<a href="#contents">') == len(re.findall("<section ", page))
    assert not re.search(r"<th[^>]*></th>|tabindex", page.partition("<script>")[0])


def test_the_page_names_its_paper_and_its_home_as_the_repository_does(page: str) -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Homepage"] == REPOSITORY
    assert f"title: {PAPER}\n" in citation
    assert f"({WHERE})" in citation
    assert f"{METHOD} (OMPB)" in citation
    head = page.partition("<nav ")[0]
    assert all(words in head for words in (PAPER, WHERE, METHOD, f'href="{REPOSITORY}"'))


def test_words_of_the_tables_are_explained_with_the_numbers_of_the_code(page: str) -> None:
    words = {word: meaning for group in WORDS.values() for word, meaning in group.items()}
    named = {part for word in words for part in word.replace(",", "").split()}
    assert {"cell", "place", "ood_far", "gpt2-partial", "+tuned", "@unseen", "Gamma", "tau_y", "Winkler"} <= named
    assert all(f"<dt>{inline(word)}</dt>" in page for word in words)
    assert f"every {retrain.EVERY} rows" in words["retrain, retrain-warm"]
    assert f"{UNSEEN_SHARE:.0%}" in words["@5, @val, @unseen"]
    assert f"{Settings().warning_rows:,.0f} rows" in words["warnings"]
    assert f"{1 - Settings().delta:.0%}".replace("%", " %") in words["Gamma"]
    assert len(SCORED_LEVELS) == 10
    assert "ten levels" in words["ECE"]


def test_links_of_the_notes_lead_to_files_that_are_there() -> None:
    page = committed_page()
    paths = re.findall(rf'href="{REPOSITORY}/(?:blob|tree)/main/([^"]+)"', page)
    assert len(paths) > 3
    assert all((ROOT / path).exists() for path in paths)


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
    made = table(Section("T", ('[a] Said "twice".',), ("method", "ours", "paper", "ratio"), lines, keys=1), "t")
    parsed(made)
    assert '<tr class="ours"><td>ompb</td>' in made
    assert '<abbr title="Said &quot;twice&quot;.">[a]</abbr>' in made
    assert '<td class="better much">0.500</td>' in made
    marked = '<td>1 <span class="mark">[b]</span></td>'
    assert f'<tr><td>&lt;b&gt;</td><td>0.5</td>{marked}<td class="worse">1.050</td></tr>' in made
    assert "<td></td><td></td><td></td>" in made


def test_means_have_the_room_of_the_longest_spread_and_mark_behind_them() -> None:
    lines = (("a", "0.5077 ± 0.0105", "met"), ("b", "10.2", "missed"), ("c", "diverged", ""), ("d", "0.4 [aa]", ""))
    made = table(Section("T", (), ("method", "MAE", "verdict"), lines, keys=1), "t", level=4)
    parsed(made)
    assert 'style="--spread:8ch;--mark-width:4ch"' in made
    assert '<td>0.5077 <span class="spread">± 0.0105</span> <span class="mark"></span></td>' in made
    assert '<td>10.2 <span class="spread"></span> <span class="mark"></span></td>' in made
    assert '<td>0.4 <span class="spread"></span> <span class="mark">[aa]</span></td>' in made
    assert "<td>diverged</td>" in made
    assert '<th scope="col" class="words">verdict</th>' in made
    assert '<td class="words">met</td>' in made
    assert made.startswith('<h4 id="t">T</h4>')


def test_the_key_that_tells_lines_apart_stays_and_only_long_tables_scroll_down() -> None:
    def made(count: int) -> str:
        lines = tuple(("etth", f"m{n}", str(n % 3), "1.0") for n in range(count))
        return table(Section("T", (), ("data", "method", "H", "MAE"), lines, keys=3), "t")

    assert 'data-keys="3" data-name="2"' in made(12)
    assert 'class="box"' in made(12)
    assert 'class="box long"' in made(13)


def test_four_panels_stand_in_pairs_and_so_do_those_that_share_titles() -> None:
    def stands(*titles: str) -> bool:
        panels = tuple(Panel(title, "x", "y", (Curve("a", (0.0, 1.0), (1.0, 2.0)),)) for title in titles)
        return '"panels pairs"' in of_figure(Figure("f", "", "", panels))

    assert stands(*"abcd")
    assert stands(*"aabbcc")
    assert not stands(*"abc")
    assert not stands(*"aa")
    assert not stands(*"abccba")
