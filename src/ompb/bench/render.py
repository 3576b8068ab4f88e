"""Tables as text, Markdown or a page of HTML."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import Literal, TypeAlias

from ompb.bench.findings import Section

Format: TypeAlias = Literal["text", "markdown", "html"]


def render(sections: Iterable[Section], style: Format) -> str:
    """The sections as plain text, Markdown or a page of HTML."""
    drawn = {"text": _text, "markdown": _markdown, "html": _html}[style]
    body = "\n\n".join(drawn(section) for section in sections)
    return _PAGE.format(body=body) if style == "html" else body


def _text(section: Section) -> str:
    rows = [section.headings, *section.lines]
    widths = [max(len(row[column]) for row in rows) for column in range(len(section.headings))]
    aligned = (
        "  ".join(
            cell.ljust(width) if place < section.keys else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )
    return "\n".join((section.title, *section.notes, *aligned))


def _markdown(section: Section) -> str:
    rule = ["---"] * section.keys + ["---:"] * (len(section.headings) - section.keys)
    rows = (f"| {' | '.join(map(_in_cell, row))} |" for row in (section.headings, rule, *section.lines))
    notes = [line for note in section.notes for line in (note, "")]
    return "\n".join((f"### {section.title}", "", *notes, *rows))


def _in_cell(text: str) -> str:
    return text.replace("|", r"\|")


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>ompb benchmark</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; padding: 0 1rem; }}
table {{ border-collapse: collapse; font-variant-numeric: tabular-nums; }}
th, td {{ padding: .2rem .6rem; text-align: right; border-bottom: 1px solid #ccc; }}
th:nth-child(-n+4), td:nth-child(-n+4) {{ text-align: left; }}
</style>
</head>
<body>
{body}
</body>
</html>"""


def _html(section: Section) -> str:
    notes = "\n".join(f"<p>{escape(note)}</p>" for note in section.notes)
    rows = "\n".join(_html_row("td", line) for line in section.lines)
    table = f"<table>\n{_html_row('th', section.headings)}\n{rows}\n</table>"
    return f"<h2>{escape(section.title)}</h2>\n{notes}\n{table}"


def _html_row(tag: str, cells: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
