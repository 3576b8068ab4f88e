"""The parts that pages are made of: headings, paragraphs, tables and figures as HTML."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from html import escape
from importlib.metadata import version

from matplotlib.figure import Figure

from ompb.reports.inline import inline_svg
from ompb.reports.style import STYLE
from ompb.reports.summary import COLUMNS, three_decimals
from ompb.settings import Settings
from ompb.studies import OMPB, PhaseScores
from ompb.types import Certificate


def page(title: str, below: str, sections: Mapping[str, str]) -> str:
    """One self-contained page: a title, a line below it, and sections by their headings."""
    title = escape(title)
    body = "".join(f"<section>\n<h2>{heading}</h2>\n{text}\n</section>\n" for heading, text in sections.items())
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{STYLE}</style>
</head>
<body>
<h1>{title}</h1>
<p class="soft">{escape(below)}</p>
{body}
<footer>Made by ompb {escape(version("ompb"))} on {date.today().isoformat()}.</footer>
</body>
</html>
"""


def paragraph(text: str) -> str:
    """Plain text as a paragraph."""
    return f"<p>{escape(text)}</p>"


def listing(items: Iterable[str]) -> str:
    """Plain texts as a list."""
    return f"<ul>{''.join(f'<li>{escape(item)}</li>' for item in items)}</ul>"


def table(
    head: Iterable[str], lines: Iterable[Sequence[str]], *, words: bool = False, strong: str | None = None
) -> str:
    """A table of plain texts, of numbers or of ``words``; the line that begins with ``strong`` stands out."""
    top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    rows = [f"<tr>{top}</tr>"]
    for line in lines:
        cells = "".join(f"<td>{escape(cell)}</td>" for cell in line)
        rows.append(f'<tr class="ours">{cells}</tr>' if line[0] == strong else f"<tr>{cells}</tr>")
    kind, body = ' class="words"' if words else "", "\n".join(rows)
    return f'<div class="scroll"><table{kind}>\n{body}\n</table></div>'


def score_table(lines: Iterable[PhaseScores]) -> str:
    """Scores of several forecasters, ours in bold."""
    cells = [(line.name, *(three_decimals(getattr(line, name)) for name in COLUMNS)) for line in lines]
    return table(("", *COLUMNS.values()), cells, strong=OMPB)


def framed(figure: Figure, caption: str, number: int) -> str:
    """The figure of that number on the page, with what it shows."""
    drawn, told = inline_svg(figure, f"figure{number}"), escape(caption)
    return f'<figure><div class="scroll">\n{drawn}\n</div><figcaption>{told}</figcaption>\n</figure>'


def conditions(certificate: Certificate) -> str:
    """What a certificate assumes, and what it leaves out."""
    return (
        f"<h3>It holds only if</h3>{listing(a for a in certificate.assumptions if a != certificate.omitted)}"
        f"<h3>It leaves out</h3>{paragraph(certificate.omitted)}"
    )


def settings_table(facts: Mapping[str, str], settings: Settings) -> str:
    """Facts by name, and the options: those that were changed, and all of them where a reader asks for it."""
    options = {name: str(value) for name, value in dataclasses.asdict(settings).items()}
    shown = _plain_table({**facts, "changed options": settings.changed() or "none"})
    return f"{shown}<details><summary>All options</summary>{_plain_table(options)}</details>"


def _plain_table(lines: Mapping[str, str]) -> str:
    body = "\n".join(f"<tr><td>{escape(name)}</td><td>{escape(value)}</td></tr>" for name, value in lines.items())
    return f'<table class="plain">\n{body}\n</table>'
