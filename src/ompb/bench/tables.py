"""The paper's tables, made from our cells, with the paper's numbers beside them where these are at hand.

The printed numbers are not part of this package: they are read from the file accuracy.csv (columns table, dataset,
backbone, method, horizon, split, metric, value) in a folder of the user's.
"""

from __future__ import annotations

import csv
import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Literal, TypeAlias

from ompb.bench.findings import Section
from ompb.bench.protocols import HONEST, ONE_STEP, Clock
from ompb.bench.store import Cell, Result
from ompb.errors import FormatError, InputError, OptionError

VARIABLE = "OMPB_PAPER"  # the environment variable that names the folder
FILE = "accuracy.csv"
METRICS = ("mae", "mse")
ORIGINAL, PRESET = "original", "ompb-paper"
TRIVIAL = ("profile", "last", "bias", "copy")
FIRST_METHODS = (ORIGINAL, *TRIVIAL, "ompb", PRESET)  # then the others, by name
IN_PAPER = {PRESET: "ompb"}  # methods the paper has under another name
# Data sets that make each table; the paper's numbers belong to the first.
TABLES = {
    "etth_all_split": ("etth",),
    "ili_results": ("ili",),
    "weather_all_split": ("weather-5k", "weather-stand-in"),
}
NO_PAPER = f"The paper's numbers are not at hand (name their folder by --paper or {VARIABLE}): these are ours alone."

Format: TypeAlias = Literal["text", "markdown", "html"]
Place: TypeAlias = tuple[str, int, str, str]  # backbone, horizon, split, method
Printed: TypeAlias = Mapping[tuple[str, int, str, str, str], str]  # place and metric, as printed


def paper_folder(folder: Path | None) -> Path | None:
    """The folder given, else the one OMPB_PAPER names, else None."""
    named = os.environ.get(VARIABLE)
    return folder or (Path(named) if named else None)


def printed_numbers(folder: Path, table: str) -> Printed:
    """The numbers the paper prints in a table, with all their digits."""
    path = folder / FILE
    try:
        with path.open(encoding="utf-8", newline="") as file:
            printed = {
                (line["backbone"], int(line["horizon"]), line["split"], line["method"], line["metric"]): line["value"]
                for line in csv.DictReader(file)
                if line["table"] == table
            }
    except FileNotFoundError as error:
        raise InputError(f"there is no {FILE} in {folder}; name the folder of the paper's numbers.") from error
    except (KeyError, ValueError) as error:
        raise FormatError(f"{path} is not a table of the paper's numbers ({error}); see ompb.bench.tables.") from error
    if not printed:
        raise InputError(f"{path} has no number of the table {table}; name the folder of the paper's numbers.")
    return printed


def make_table(name: str, results: Iterable[Result], paper: Path | None) -> list[Section]:
    """The sections of a table: those with a result, or one for the honest protocol. What is missing stays blank."""
    if name not in TABLES:
        raise OptionError(f"there is no table {name!r}; accepted: {', '.join(TABLES)}.")
    printed = printed_numbers(paper, name) if paper is not None else None
    ours: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        if result.cell.dataset in TABLES[name]:
            ours.setdefault((result.cell.dataset, result.cell.protocol), []).append(result)
    return [
        _section(name, dataset, protocol, found, printed)
        for (dataset, protocol), found in sorted((ours or {(TABLES[name][0], HONEST): []}).items())
    ]


def _section(name: str, dataset: str, protocol: str, results: Sequence[Result], printed: Printed | None) -> Section:
    is_papers = dataset == TABLES[name][0]
    beside = (printed or {}) if is_papers else {}
    values = _values(results)
    places = _places([result.cell for result in results], beside)
    notes = [_leak(protocol, {horizon for _, horizon, _, _ in places})]
    if printed is None:
        notes.append(NO_PAPER)
    elif is_papers:
        notes.append(f"The paper's numbers are of the {ONE_STEP} protocol; ratio is ours to the paper's.")
    else:
        notes.append(f"{dataset} is not the paper's data, so no number of the paper stands beside ours.")
    if any(len(found) > 1 for found in values.values()):
        notes.append("Means over seeds, with their standard deviation behind ±.")
    per_metric = ("{}", "paper", "ratio") if beside else ("{}",)
    headings = [heading.format(metric.upper()) for metric in METRICS for heading in per_metric]
    return Section(
        title=f"{name}: {dataset}, protocol {protocol}",
        notes=tuple(note for note in notes if note),
        headings=("backbone", "horizon", "split", "method", *headings),
        lines=tuple(_line(place, values, beside) for place in places),
    )


def _values(results: Iterable[Result]) -> dict[tuple[Place, str], list[float]]:
    """Our numbers, one per seed, by place and metric."""
    values: dict[tuple[Place, str], list[float]] = {}
    for result in results:
        for metric in METRICS:
            values.setdefault((_place(result.cell), metric), []).append(result.metrics[metric])
    return values


def _place(cell: Cell) -> Place:
    return cell.backbone, cell.horizon, cell.split, cell.method


def _places(cells: Sequence[Cell], beside: Printed) -> list[Place]:
    """The lines of a section: where we or the paper have a number, with the trivial methods everywhere."""
    have = {_place(cell) for cell in cells}
    labels: dict[str, set[str]] = {}
    for label, _, _, _ in have:
        labels.setdefault(paper_backbone(label), set()).add(label)
    preset = {theirs: ours for ours, theirs in IN_PAPER.items()}
    for backbone, horizon, split, method, _ in beside:
        have |= {(label, horizon, split, preset.get(method, method)) for label in labels.get(backbone, {backbone})}
    have |= {(*where[:3], method) for where in have for method in (ORIGINAL, *TRIVIAL)}
    return sorted(have, key=lambda place: (*place[:3], _rank(place[3]), place[3]))


def paper_backbone(backbone: str) -> str:
    """The paper's name of a backbone: it knows one Autoformer and GPT-2's own weights only."""
    return backbone.partition("[")[0].removesuffix("-canonical")


def _rank(method: str) -> int:
    return FIRST_METHODS.index(method) if method in FIRST_METHODS else len(FIRST_METHODS)


def _line(place: Place, values: Mapping[tuple[Place, str], list[float]], beside: Printed) -> tuple[str, ...]:
    backbone, horizon, split, method = place
    numbers: list[str] = []
    for metric in METRICS:
        ours = values.get((place, metric), [])
        numbers.append(_shown(ours))
        if beside:
            theirs = beside.get((paper_backbone(backbone), horizon, split, IN_PAPER.get(method, method), metric), "")
            both = bool(ours and theirs)
            numbers += [theirs, f"{statistics.fmean(ours) / float(theirs):.3f}" if both else ""]
    return (backbone, str(horizon), split, method, *numbers)


def _shown(values: Sequence[float]) -> str:
    if not values:
        return ""
    spread = f" ± {statistics.stdev(values):.4f}" if len(values) > 1 else ""
    return f"{statistics.fmean(values):.4f}{spread}"


def _leak(protocol: str, horizons: Iterable[int]) -> str:
    """What a protocol that leaks at one of these horizons shows too early; nothing if none does."""
    clocks = [clock for clock in (Clock(protocol, horizon) for horizon in horizons) if clock.leaks]
    if not clocks:
        return ""
    return f"LEAKS: this protocol shows a method H-{clocks[0].delay} of the H rows it is scored on."


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
    rows = (f"| {' | '.join(row)} |" for row in (section.headings, rule, *section.lines))
    notes = [line for note in section.notes for line in (note, "")]
    return "\n".join((f"### {section.title}", "", *notes, *rows))


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
