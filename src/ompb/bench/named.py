"""Names with options in brackets, as the methods of cells bear them: one string says all that makes a method.

>>> Named.of('ompb[gate="open", draws=5]')
Named(name='ompb', options={'gate': 'open', 'draws': 5})
>>> str(Named("ompb", {"draws": 5, "gate": "open"}))
'ompb[draws=5,gate="open"]'
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ompb.errors import OptionError

_SHAPE = re.compile(r"(?P<name>[^\[\]]+)(\[(?P<options>.*)\])?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Named:
    """A name and its options, whose values are Python literals."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, text: str) -> Named:
        """Read it back. Raises `OptionError` where the brackets hold anything but literals by name."""
        found = _SHAPE.fullmatch(text)
        try:
            if found is None:
                raise ValueError("brackets do not match")
            call = ast.parse(f"_({found['options'] or ''})", mode="eval").body
            if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
                raise ValueError("every option needs its name")
        except (SyntaxError, ValueError) as error:
            said = error.msg if isinstance(error, SyntaxError) else error
            raise OptionError(
                f'the name {text!r} cannot be read ({said}); write it as name[option=1,other="word"].'
            ) from error
        try:
            return cls(found["name"], _values(call))
        except ValueError as error:
            raise OptionError(f"the name {text!r} cannot be read: {_remedy(found['name'], call)}.") from error

    def __str__(self) -> str:
        if not self.options:
            return self.name
        return f"{self.name}[{','.join(f'{name}={_literal(self.options[name])}' for name in sorted(self.options))}]"


def _values(call: ast.Call) -> dict[str, Any]:
    """Those of the options. Raises ``ValueError`` for one that is no literal."""
    return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}


class _Quoting(ast.NodeTransformer):
    """Words that were left bare, as texts."""

    def visit_Name(self, node: ast.Name) -> ast.Constant:
        return ast.Constant(node.id)


def _remedy(name: str, call: ast.Call) -> str:
    """What to write in place of options that are no literals."""
    try:
        meant = Named(name, _values(_Quoting().visit(call)))
    except ValueError:
        return "an option's value is a number, a word in quotes, True, False, None, or a list or tuple of such"
    return f"words need quotes, so write {meant}, on a command line in quotes as a whole"


def _literal(value: Any) -> str:
    """A value as `Named.of` reads it."""
    return json.dumps(value) if isinstance(value, str) else repr(value)
