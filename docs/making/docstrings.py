"""Docstrings and comments of the source as Markdown for the reference: a griffe extension."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import griffe

from maths import with_maths

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n\1\S.*)*", flags=re.MULTILINE)


class Readable(griffe.Extension):
    """Formulas become MathML, examples become code, and fields with their comments become one table of their class."""

    def on_package(self, *, pkg: griffe.Module, **kwargs: Any) -> None:
        """Called once, when all of the source has been read."""
        del kwargs
        for thing in list(everything(pkg)):
            if isinstance(thing, griffe.Module):
                _leave_out_constants(thing)
            words = "" if thing.docstring is None else with_examples(with_maths(thing.docstring.value))
            if isinstance(thing, griffe.Class) and "dataclass" in thing.labels:
                words += _table_of_fields(thing)
            if words:
                thing.docstring = griffe.Docstring(words, parent=thing, lineno=thing.lineno, parser="google")


def everything(thing: griffe.Object) -> Iterator[griffe.Object]:
    """A module or class and all that is defined in it."""
    yield thing
    for member in thing.members.values():
        if isinstance(member, griffe.Object):
            yield from everything(member)


def with_examples(text: str) -> str:
    r"""A docstring whose doctests stand in fences.

    >>> with_examples("One.\n\n>>> 1\n1\n").splitlines()[2]
    '```pycon'
    """
    return _EXAMPLE.sub(lambda found: f"{found[1]}```pycon\n{found[0]}\n{found[1]}```", text)


def _leave_out_constants(module: griffe.Module) -> None:
    """Constants and names of types are for readers of the source."""
    for name in [name for name, member in module.members.items() if isinstance(member, griffe.Attribute)]:
        del module.members[name]


def _table_of_fields(of: griffe.Class) -> str:
    """The public fields as a section of the docstring; they are told nowhere else."""
    fields = [field for field in of.members.values() if isinstance(field, griffe.Attribute) and field.annotation]
    fields = [field for field in fields if "property" not in field.labels and not field.name.startswith("_")]
    for field in fields:
        del of.members[field.name]
    lines = [f"    {field.name} ({field.annotation}): {_told(field)}" for field in fields]
    return "\n\nAttributes:\n" + "\n".join(lines) if lines else ""


def _told(field: Any) -> str:
    words = comments(field.filepath).get(field.endlineno or field.lineno, "")
    default = str(field.value or "")
    shown = f" Default: `{default}`." if default and not default.startswith("field(") and len(default) < 60 else ""
    return f"{words}{shown}".strip() or "\u00a0"


@cache
def comments(file: Path) -> dict[int, str]:
    """The comments of a file that stand behind code, by line, as sentences."""
    found = {}
    source = file.read_text(encoding="utf-8")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and token.line[: token.start[1]].strip():
            words = token.string.lstrip("# ").strip()
            if not words.startswith(("noqa", "type:")):
                found[token.start[0]] = words[0].upper() + words[1:] + "." * (not words.endswith("."))
    return found
