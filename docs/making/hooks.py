"""What the site's builder does beyond its settings: pages that are made, and links that lead out of ``docs``."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import notebooks
import reference

REPOSITORY = Path(__file__).parents[2]
EXAMPLES = REPOSITORY / "examples"
_LINK = re.compile(r"(?<=\]\()(?:\.\./)+[^)#]*")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Complete the menu: pages that it does not name, then the reference, whose pages are made."""
    menu = list(config.nav or [])
    named = set(_paths(menu))
    found = (path.relative_to(config.docs_dir).as_posix() for path in sorted(Path(config.docs_dir).rglob("*.md")))
    more = [page for page in found if page not in named]
    pages = [{title: f"reference/{name}.md"} for name, title, _ in reference.pages()]
    config.nav = [*menu, *([{"More": more}] if more else []), {"Reference": pages}]
    return config


def _paths(menu: Any) -> Iterator[str]:
    """The pages of a menu, which is a path, or a list or mapping of menus."""
    if isinstance(menu, str):
        yield menu
    else:
        for part in menu.values() if isinstance(menu, dict) else menu:
            yield from _paths(part)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the reference and the notebooks."""
    for name, _, text in reference.pages():
        files.append(File.generated(config, f"reference/{name}.md", content=text))
    for path in sorted(EXAMPLES.glob("*.ipynb")):
        text, pictures = notebooks.markdown(notebooks.read(path), path.stem)
        files.append(File.generated(config, f"{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links that leave ``docs`` lead to the page that is made of their file, or else to the repository."""
    del files
    folder = (Path(config.docs_dir) / page.file.src_uri).parent
    return _LINK.sub(lambda found: _inward(found[0], folder, config), markdown)


def _inward(link: str, folder: Path, config: MkDocsConfig) -> str:
    target, docs = (folder / link).resolve(), Path(config.docs_dir)
    if target.is_relative_to(EXAMPLES) and target.suffix == ".ipynb":
        target = docs / f"{target.stem}.md"
    if target.is_relative_to(docs):
        return Path(os.path.relpath(target, folder)).as_posix()
    return f"{config.extra['repository']}/blob/main/{target.relative_to(REPOSITORY).as_posix()}"
