"""Run a notebook's cells in one namespace, keep what they show, and tell it as Markdown.

A notebook is its JSON. ``python docs/making/notebooks.py examples/first-look.ipynb`` runs one and writes it again.
"""

from __future__ import annotations

import ast
import base64
import io
import json
import sys
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]


def run(notebook: Notebook) -> Notebook:
    """The same notebook with the outputs that its cells have now."""
    names: dict[str, Any] = {"__name__": "__main__"}
    cells, count = [], 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell = {**cell, "execution_count": count, "outputs": _outputs("".join(cell["source"]), names, count)}
        cells.append(cell)
    return {**notebook, "cells": cells}


def _outputs(source: str, names: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """What a cell prints, and the value of its last expression."""
    tree, printed, value = ast.parse(source), io.StringIO(), None
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with redirect_stdout(printed):
        exec(compile(tree, f"cell {count}", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), names)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        data = _forms(value)
        outputs.append({"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"})
    return outputs


def _forms(value: Any) -> dict[str, Any]:
    """The forms in which a notebook may show a value."""
    forms: dict[str, Any] = {"text/plain": _lines(repr(value))}
    if hasattr(value, "_repr_png_"):
        return {"image/png": base64.b64encode(value._repr_png_()).decode(), **forms}
    html = value._repr_html_() if hasattr(value, "_repr_html_") else None
    return {"text/html": _lines(html), **forms} if html else forms


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def markdown(notebook: Notebook, stem: str) -> tuple[str, dict[str, bytes]]:
    """The notebook as Markdown, and its pictures by file name."""
    pieces: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        pieces.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        pieces.extend(_shown(output, stem, pictures) for output in cell.get("outputs", ()))
    return "\n\n".join(pieces) + "\n", pictures


def _shown(output: dict[str, Any], stem: str, pictures: dict[str, bytes]) -> str:
    data = output.get("data", {})
    if "image/png" in data:
        name = f"{stem}-{len(pictures) + 1}.png"
        pictures[name] = base64.b64decode(data["image/png"])
        return f"![What the cell above draws]({name})"
    if "text/html" in data:
        return f'<div class="shown">{"".join(data["text/html"])}</div>'
    return f"```text\n{''.join(output.get('text') or data['text/plain']).rstrip()}\n```"


def read(path: Path) -> Notebook:
    """The JSON of a notebook."""
    found: Notebook = json.loads(path.read_text(encoding="utf-8"))
    return found


def main(paths: list[str]) -> None:
    """Run notebooks and write them again."""
    for path in map(Path, paths):
        path.write_text(json.dumps(run(read(path)), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
