"""The options by which every command that reads a table is told about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeAlias

import typer

from ompb.floor.checks import refuse
from ompb.tables import Reading
from ompb.tables.steps import EXAMPLES

Columns: TypeAlias = list[str] | None

Time = Annotated[str | None, typer.Option(metavar="COLUMN", help="The time column, if it is not found by itself.")]
Id = Annotated[
    Columns,
    typer.Option("--id", metavar="COLUMN", help="Of a long table: the column that names the series; may be repeated."),
]
Value = Annotated[str | None, typer.Option(metavar="COLUMN", help="Of a long table: the column of values.")]
Target = Annotated[
    Columns, typer.Option("--target", metavar="NAME", help="Take this column or series only; may be repeated.")
]
Exclude = Annotated[
    Columns, typer.Option("--exclude", metavar="NAME", help="Leave this column or series out; may be repeated.")
]
Future = Annotated[
    Columns,
    typer.Option("--future", metavar="COLUMN", help="A column known ahead of time, no target; may be repeated."),
]
Missing = Annotated[
    Columns, typer.Option("--missing", metavar="VALUE", help="A cell that means no value, as -999; may be repeated.")
]
Timezone = Annotated[
    str | None,
    typer.Option(metavar="ZONE", help="The clock of the times, as Europe/Berlin; results are told by it as well."),
]
Freq = Annotated[
    str | None,
    typer.Option(metavar="STEP", help=f"The step of the times: {EXAMPLES}. Times go to the nearest step."),
]
Together = Annotated[
    bool,
    typer.Option("--together", help="Of a long table: take its series as channels of one system, not each by itself."),
]
OfSecond = Annotated[
    Columns,
    typer.Option(
        "--b",
        metavar="NAME=VALUE",
        help="Of the second table alone, in place of the option NAME: --b timezone=UTC; may be repeated.",
    ),
]
Sep = Annotated[str | None, typer.Option(metavar="SIGN", help="Between cells of a text file: , ; | or tab.")]
Decimal = Annotated[str | None, typer.Option(metavar="SIGN", help="Before decimals: . or ,")]


def reading_of(
    time: str | None = None,
    id: Sequence[str] | None = None,
    value: str | None = None,
    target: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    future: Sequence[str] | None = None,
    missing: Sequence[str] | None = None,
    timezone: str | None = None,
    freq: str | None = None,
    sep: str | None = None,
    decimal: str | None = None,
) -> Reading:
    """What was typed."""
    many = {"id": id, "target": target, "exclude": exclude, "future": future, "missing": missing}
    several = {name: tuple(given or ()) for name, given in many.items()}
    return Reading(time=time, value=value, timezone=timezone, freq=freq, sep=sep, decimal=decimal, **several)


def of_second(first: Reading, said: Sequence[str], names: Sequence[str]) -> Reading:
    """How to read a second table: as the first, but for what is ``said`` of it as NAME=VALUE, of these names.

    >>> of_second(Reading(time="day", timezone="UTC"), ["time=date", "timezone="], ("time", "timezone")).time
    'date'
    """
    given: dict[str, tuple[str, ...]] = {}
    for text in said:
        name, sign, value = text.partition("=")
        if not sign or name not in names:
            raise refuse("--b", text, f"NAME=VALUE, where NAME is one of {', '.join(names)}")
        given[name] = (*given.get(name, ()), *((value,) if value else ()))
    changes: dict[str, Any] = dict(given)
    for name, values in given.items():
        if isinstance(getattr(first, name), tuple):
            continue
        if len(values) > 1:
            raise refuse("--b", f"{name}={values[1]}", f"one {name} for the second table")
        changes[name] = values[0] if values else None
    return replace(first, **changes)
