"""Which texts are dates, of one or of many columns."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from ompb.tables import read_table, stamps

TEXTS = [
    "2024-01-31",
    " 31.01.2024 ",
    "1/2/24",
    "Jan-24",
    "31 January 2024 11:00 PM",
    "2024Q3",
    "2024",
    "5.5",
    "c 12",
    "",
]


def test_a_text_is_a_date_or_not_whatever_stands_beside_it() -> None:
    alone = [stamps.are_dates([text])[0] for text in TEXTS]

    assert alone == [True] * 6 + [False] * 4
    assert stamps.are_dates(TEXTS) == alone
    assert stamps.are_dates(TEXTS[::-1]) == alone[::-1]
    assert stamps.are_dates([]) == []


def test_a_wide_table_costs_no_more_tries_of_formats_than_a_narrow_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries = 0
    tried = stamps._tried

    def counted(texts: pl.Series) -> Iterator[pl.Series]:
        nonlocal tries
        tries += 1
        return tried(texts)

    monkeypatch.setattr(stamps, "_tried", counted)
    cost = []
    for width in (2, 40):
        tries = 0
        path = tmp_path / f"{width}.csv"
        names, cells = ([form.format(place) for place in range(width)] for form in ("channel {}", "{}.5"))
        path.write_text(
            f"day,{','.join(names)}\n" + "".join(f"0{day}.01.2024,{','.join(cells)}\n" for day in (1, 2, 3))
        )
        assert read_table(path).channels == tuple(names)
        cost.append(tries)

    assert cost[0] == cost[1]
