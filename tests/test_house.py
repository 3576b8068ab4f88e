"""The house: public names, a light import, documents whose code runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import ompb

REPOSITORY = Path(__file__).parents[1]
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").glob("*.md"))]


def test_public_names_are_exactly_all_and_sorted() -> None:
    assert ompb.__all__ == sorted(ompb.__all__)
    modules = {name for name in vars(ompb) if isinstance(vars(ompb)[name], type(ompb))}
    public = {name for name in vars(ompb) if not name.startswith("_")} - modules
    assert public == set(ompb.__all__)


def fresh_python(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_import_is_light() -> None:
    heavy = ("torch", "pandas", "polars", "matplotlib", "scipy", "rich", "typer", "narwhals")
    assert fresh_python(f"import sys, ompb; print([m for m in {heavy!r} if m in sys.modules])") == "[]"


def test_import_is_fast() -> None:
    """Under 0.3 s, NumPy included, the best of a few tries (machines are noisy)."""
    code = "import time; start = time.perf_counter(); import ompb; print(time.perf_counter() - start)"
    assert min(float(fresh_python(code)) for _ in range(5)) < 0.3


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_code_blocks_run(document: Path) -> None:
    """Each in a Python of its own, as a reader would run it."""
    for block in re.findall(r"```python\n(.*?)```", document.read_text(), flags=re.DOTALL):
        assert len(fresh_python(block).splitlines()) == block.count("print(")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_readme_opens_with_the_two_commands() -> None:
    text = (REPOSITORY / "README.md").read_text()
    assert text.index("make demo") < text.index("make test") < text.index("## ")
