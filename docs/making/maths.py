"""Formulas of docstrings as MathML, which every browser shows by itself."""

from __future__ import annotations

import re
from html import escape

from latex2mathml.converter import convert

_BLOCK = re.compile(r"^( *)\.\. math::[ \n]*((?:.*\S.*)(?:\n\1 +\S.*)*)", flags=re.MULTILINE)
_INLINE = re.compile(r":math:`([^`]+)`")


def mathml(tex: str, *, is_block: bool) -> str:
    r"""A formula as one line of MathML.

    >>> mathml(r"x^2", is_block=False).startswith('<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">')
    True
    """
    known = re.sub(r"\s+", " ", tex).replace(r"\arg", r"\operatorname{arg}")
    made = convert(known, display="block" if is_block else "inline")
    if "\\" in made:
        raise ValueError(f"the converter does not know a command in: {tex}")
    return made.replace("<math ", f'<math aria-label="{escape(known)}" ', 1) if is_block else made


def with_maths(text: str) -> str:
    r"""A docstring whose ``.. math::`` blocks and ``:math:`` roles are MathML.

    >>> with_maths("Mean of\n\n.. math:: x\n    + y\n\nover :math:`n` rows.").count("<math ")
    2
    """
    text = _BLOCK.sub(lambda found: f'{found[1]}<div class="formula">{mathml(found[2], is_block=True)}</div>', text)
    return _INLINE.sub(lambda found: mathml(found[1], is_block=False), text)
