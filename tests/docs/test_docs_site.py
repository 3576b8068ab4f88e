"""The site of documents: built without a warning, with nothing from elsewhere, and without a dead end.

One test, so that the site is built once.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path
from urllib.parse import unquote, urldefrag

import reference

REPOSITORY = Path(__file__).parents[2]
SHOWN = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href", "object": "data"}
NO_RESOURCES = ("canonical", "next", "prev")  # links of the head that nobody loads


class Seen(HTMLParser):
    """What a page loads, where it leads, and the places that can be led to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag in SHOWN and found.get("rel") not in NO_RESOURCES and SHOWN[tag] in found:
            self.loads.append(found[SHOWN[tag]])
        if tag == "a" and "href" in found:
            self.leads.append(found["href"])
        self.places.update(found[name] for name in ("id", "name") if name in found)


def is_elsewhere(address: str) -> bool:
    return bool(re.match(r"(?:\w+:)?//", address))


def test_what_a_page_loads_and_where_it_leads_is_seen() -> None:
    page = Seen('<link rel="stylesheet" href="//a.b/c.css"><img src="d.png"><p id="e"><a href="f.html#g">')
    assert ([is_elsewhere(address) for address in page.loads], page.leads, page.places) == (
        [True, False],
        ["f.html#g"],
        {"e"},
    )


def test_modules_are_found_by_name_or_by_package() -> None:
    assert reference.modules_of(["ompb.errors", "ompb.nothing", "ompb.nothing.*"]) == ["ompb.errors"]
    assert "ompb.metrics.point" in reference.modules_of(["ompb.metrics.*"])


def test_the_site(tmp_path: Path) -> None:
    build(tmp_path)
    pages = {path: Seen(path.read_text(encoding="utf-8")) for path in sorted(tmp_path.rglob("*.html"))}
    assert len(pages) > 20
    assert list(foreign_resources(tmp_path, pages)) == []
    assert list(dead_links(tmp_path, pages)) == []
    assert list(names_without_a_place(tmp_path, pages)) == []
    assert list(raw_markup(pages)) == []
    fields = (tmp_path / "reference" / "ompb.html").read_text(encoding="utf-8")
    assert "How far the correction is trusted: (C,)" in fields  # the comment beside a field


def build(folder: Path) -> None:
    paths = [str(REPOSITORY / "docs" / "making"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def foreign_resources(folder: Path, pages: dict[Path, Seen]) -> Iterator[str]:
    """What a reader's browser would fetch from elsewhere."""
    for path, page in pages.items():
        yield from (f"{path.name}: {address}" for address in page.loads if is_elsewhere(address))
        text = path.read_text(encoding="utf-8")
        # the theme's script asks GitHub for stars, or a network for diagrams, only where it finds these
        yield from (
            f"{path.name}: {word}" for word in ('data-md-component="source"', 'class="mermaid"') if word in text
        )
    for path in folder.rglob("*.css"):
        text = path.read_text(encoding="utf-8")
        yield from (
            f"{path.name}: {found}" for found in re.findall(r"(?:url\(|@import )[\"']?(?:https?:)?//[^)]*", text)
        )


def dead_links(folder: Path, pages: dict[Path, Seen]) -> Iterator[str]:
    for path, page in pages.items():
        for lead in page.leads:
            address, anchor = urldefrag(lead)
            if is_elsewhere(lead) or address.startswith("mailto:") or path.name == "404.html":
                continue
            target = (path.parent / unquote(address)).resolve() if address else path
            target = target / "index.html" if target.is_dir() else target
            places = pages[target].places if target in pages else set()
            if not target.exists() or (anchor and unquote(anchor) not in places):
                yield f"{path.relative_to(folder)}: {lead}"


def names_without_a_place(folder: Path, pages: dict[Path, Seen]) -> Iterator[str]:
    """Public names that the reference does not tell of."""
    told = set().union(*(page.places for path, page in pages.items() if path.parent == folder / "reference"))
    yield from (name for name in reference.public_names() if reference.path_of(name) not in told)
    for module in reference.modules_of(module for _, modules in reference.PAGES.values() for module in modules):
        yield from (path for path in public_paths(module) if path not in told)


def public_paths(module: str) -> list[str]:
    """What a module offers: by its ``__all__``, or else the classes and functions that it defines."""
    found = import_module(module)
    own = [name for name, value in vars(found).items() if isclass(value) or isfunction(value)]
    defined = [name for name in own if getattr(found, name).__module__ == module and not name.startswith("_")]
    return [f"{module}.{name}" for name in getattr(found, "__all__", defined)]


def raw_markup(pages: dict[Path, Seen]) -> Iterator[str]:
    """Formulas, examples and sections that were not understood."""
    for path in pages:
        text = re.sub(r"<(pre|code)\b.*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        yield from (
            f"{path.name}: {found}"
            for found in re.findall(r"\.\. math::|:math:`|&gt;&gt;&gt; |(?:Attributes|Args|Raises): *\n? *\w+", text)
        )
