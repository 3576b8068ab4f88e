"""Notebooks show what the present code shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import notebooks

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.ipynb"))
NUMBER = re.compile(r"\d+(?:\.\d+)?")


def outputs(notebook: notebooks.Notebook) -> list[list[dict[str, Any]]]:
    return [cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"]


def texts(output: dict[str, Any]) -> dict[str, str]:
    """Every form of an output but pictures."""
    forms = output.get("data", {"text": output.get("text")})
    return {form: "".join(lines) for form, lines in forms.items() if not form.startswith("image/")}


def assert_alike(kept: str, found: str) -> None:
    """The same words, and numbers as near as another machine's arithmetic may come."""
    assert NUMBER.sub("#", kept) == NUMBER.sub("#", found)
    numbers = ([float(number) for number in NUMBER.findall(text)] for text in (kept, found))
    assert next(numbers) == pytest.approx(next(numbers), rel=0.02, abs=0.02)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_a_notebook_shows_what_its_cells_show_now(path: Path) -> None:
    kept = notebooks.read(path)
    again = notebooks.run(kept)
    assert sum(map(len, outputs(kept))) > 0
    for before, after in zip(outputs(kept), outputs(again), strict=True):
        for one, other in zip(before, after, strict=True):
            assert one.get("data", {}).keys() == other.get("data", {}).keys()
            assert texts(one).keys() == texts(other).keys()
            for form, text in texts(one).items():
                assert_alike(text, texts(other)[form])


def test_a_cell_shows_what_it_prints_and_its_last_value() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["x = 2\n", "print('said')\n", "x + 1"]},
        {"cell_type": "code", "source": ["y = x"]},
    ]
    done = notebooks.run({"cells": cells})
    first, second = outputs(done)
    assert [texts(output) for output in first] == [{"text": "said\n"}, {"text/plain": "3"}]
    assert second == []
    text, pictures = notebooks.markdown(done, "x")
    assert text.startswith("# Title\n\n```python\nx = 2\n")
    assert "```text\nsaid\n```\n\n```text\n3\n```" in text
    assert pictures == {}


def test_pictures_become_files() -> None:
    source = "class P:\n    def _repr_png_(self): return b'png'\nP()"
    text, pictures = notebooks.markdown(notebooks.run({"cells": [{"cell_type": "code", "source": [source]}]}), "stem")
    assert pictures == {"stem-1.png": b"png"}
    assert "](stem-1.png)" in text


def test_a_number_that_is_off_is_noticed() -> None:
    assert_alike("mae 0.500", "mae 0.505")
    with pytest.raises(AssertionError):
        assert_alike("mae 0.500", "mae 0.600")
    with pytest.raises(AssertionError):
        assert_alike("mae 0.500", "mse 0.500")
