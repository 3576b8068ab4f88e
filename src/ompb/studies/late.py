"""Channels that begin too late to be learned from."""

from __future__ import annotations

import math

import numpy as np

from ompb.errors import TooShortError
from ompb.floor.names import in_words, opened
from ompb.tables import Table
from ompb.tables.table import left_out_empty


def without_late(table: Table, trained: int, source_rows: int, span: int) -> tuple[Table, tuple[str, ...]]:
    """The channels with ``span`` known rows in succession among the first ``trained``, and a sentence on the others.

    A channel may begin later than the rest; one that begins too late for anything to be learned from it is left out.
    The sentence says where the source has to end for it to be in. Raises `TooShortError` if no channel is left.
    """
    ends = {
        name: _first_end(np.isnan(column), span) for name, column in zip(table.channels, table.values.T, strict=True)
    }
    early = [name for name, end in ends.items() if end is not None and end <= trained]
    if len(early) == len(ends):
        return table, ()
    sentences = [
        _sentence(table, name, end, trained, source_rows, span) for name, end in ends.items() if name not in early
    ]
    if not early:
        raise TooShortError(f"No channel can be learned from. {sentences[0]}")
    return table.select(early), tuple(sentences)


def _first_end(missing: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], span: int) -> int | None:
    """The row after the first ``span`` rows in succession none of which is missing; None if there are no such rows."""
    before = np.concatenate([[0], np.cumsum(missing)])
    starts = np.flatnonzero(before[span:] == before[:-span])
    return int(starts[0]) + span if starts.size else None


def _sentence(table: Table, name: str, end: int | None, trained: int, source_rows: int, span: int) -> str:
    known = np.flatnonzero(~np.isnan(table.values[:, table.channels.index(name)]))
    if not known.size:
        return left_out_empty(name)
    head = (
        f"{opened(in_words(name))} begins at {table.shown(known[0])} and has no {span} rows in succession (context + "
        f"horizon) before {table.shown(trained)}, where training ends: it is left out."
    )
    needed = None if end is None else math.ceil(end * source_rows / trained)
    if needed is None or needed >= len(table.values):
        return f"{head} It has too few rows without a gap for these sizes; shorten the context or the horizon."
    return f"{head} To have it in, let the source end at {table.shown(needed)} or later (--source-end)."
