"""The house: public names, a light import, documents whose code runs and whose pictures are true."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from functools import reduce
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import draw_hops
import ompb

REPOSITORY = Path(__file__).parents[1]
DOCUMENTS = [*sorted(REPOSITORY.glob("*.md")), *sorted((REPOSITORY / "docs").rglob("*.md"))]
BLOCK = re.compile(r"(?:<!-- needs: ([^>]+) -->\n)?```python\n(.*?)```", flags=re.DOTALL)
WALKS = {walk.name: walk for walk in draw_hops.walks(draw_hops.PAGE.read_text(encoding="utf-8"))}


def test_public_names_are_exactly_all_and_sorted() -> None:
    assert ompb.__all__ == sorted(ompb.__all__)
    modules = {name for name in vars(ompb) if isinstance(vars(ompb)[name], type(ompb))}
    public = {name for name in vars(ompb) if not name.startswith("_")} - modules
    needs_extras = {"report", "study"}
    assert public | set(ompb._LAZY) == set(ompb.__all__) | needs_extras
    assert all(getattr(ompb, name).__name__ == name for name in ompb.__all__)


def fresh_python(code: str, folder: Path | None = None) -> str:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, cwd=folder)
    assert not done.returncode, done.stderr
    return done.stdout.strip()


def test_import_is_light() -> None:
    heavy = ("torch", "pandas", "polars", "matplotlib", "scipy", "rich", "typer", "narwhals")
    assert fresh_python(f"import sys, ompb; print([m for m in {heavy!r} if m in sys.modules])") == "[]"


def test_import_loads_little_beside_numpy() -> None:
    """Modules are counted, since seconds depend on what else the machine is doing; today there are 129."""
    assert (
        int(fresh_python("import sys, numpy; before = len(sys.modules); import ompb; print(len(sys.modules) - before)"))
        < 150
    )


def blocks() -> list[Any]:
    """Every block of Python in the documents; one that needs a library of the adapters runs where those are tested."""
    return [
        pytest.param(code, id=f"{document.stem}-{place}{'-needs' * bool(needs)}")
        for document in DOCUMENTS
        for place, (needs, code) in enumerate(BLOCK.findall(document.read_text()), 1)
        if not needs or find_spec(needs)
    ]


@pytest.mark.parametrize("code", blocks())
def test_code_blocks_run(code: str, tmp_path: Path) -> None:
    """Each in a Python of its own, as a reader would run it."""
    assert len(fresh_python(code, tmp_path).splitlines()) == code.count("print(")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_between_documents_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
        assert (document.parent / target).exists(), target


def test_readme_opens_with_the_two_commands() -> None:
    text = (REPOSITORY / "README.md").read_text()
    assert text.index("make demo") < text.index("make test") < text.index("## ")


def code_of(hop: draw_hops.Hop) -> CodeType:
    """The function that a hop names, found as a reader would find it."""
    function: Any = reduce(getattr, hop.function.split("."), import_module(hop.module))
    code: CodeType = getattr(function, "__func__", function).__code__
    assert code.co_filename == import_module(hop.module).__file__
    return code


def calls(action: Callable[[], object]) -> list[CodeType]:
    """All that is called while something is done, in order."""
    seen: list[CodeType] = []

    def watch(frame: FrameType, event: str, argument: object) -> None:
        del argument
        if event == "call":
            seen.append(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        action()
    finally:
        sys.setprofile(before)
    return seen


def fit_and_step() -> dict[str, list[CodeType]]:
    """What one fit and one step call, once the first forecasts are out."""
    values = np.random.default_rng(0).normal(size=(300, 2)).cumsum(axis=0)
    times = np.datetime64("2024-01-01T00", "us") + np.arange(300) * np.timedelta64(1, "h")
    made: list[ompb.Calibrator] = []

    def last_value(windows: Any) -> Any:
        return np.repeat(windows[:, -1:], 4, axis=1)

    def fit() -> None:
        made.append(ompb.Calibrator.fit(last_value, values, context=24, horizon=4, season=6, times=times))

    fitting = calls(fit)
    stream = made[0].stream(last_value)
    for row, time in zip(values[:40], times, strict=False):
        stream.step(row, at=time)
    return {"fit": fitting, "step": calls(lambda: stream.step(values[40], at=times[40]))}


def test_the_hops_are_what_the_code_does_in_that_order() -> None:
    for name, called in fit_and_step().items():
        hops = WALKS[name].hops
        assert [hop.number for hop in hops] == list(range(1, len(hops) + 1))
        rest = iter(called)  # looking for a hop uses up the calls before it
        missed = [hop for hop in hops if code_of(hop) not in rest]
        assert not missed, f"{name} does not come to {missed[0]}"


@pytest.mark.parametrize("name", ["step", "fit"])
def test_pictures_show_the_hops_and_need_nothing_from_elsewhere(name: str) -> None:
    picture = (REPOSITORY / "docs" / f"{name}.svg").read_text(encoding="utf-8")
    assert picture == draw_hops.draw(WALKS[name]), "draw it again: python benchmarks/draw_hops.py"
    texts = [element.text for element in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    for hop in WALKS[name].hops:
        place = texts.index(hop.words)
        assert texts[place - 1 : place + 2] == [str(hop.number), hop.words, hop.function]
    assert not re.search(r"href|url\(|@import|<image|<script", picture)
