"""Blocks of a log, and snapshots by tick."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ompb.errors import DtypeError, InputError, NotFiniteError, ShapeError, TimeOrderError
from ompb.ray.log import Block, Reader
from ompb.ray.snapshots import Snapshots


def reader(*entries: Any, size: int = 3) -> Reader:
    def log(after: int | None) -> Iterator[Any]:
        return (entry for entry in entries if entry is None or after is None or entry[0] > after)

    return Reader(log, ("a", "b"), ("load",), size)


def row(tick: int) -> tuple[int, Any]:
    return tick, np.array([[tick], [-tick]], dtype=float)


def ticks(blocks: Iterator[Block | None]) -> list[list[float] | None]:
    return [None if block is None else block.rows[:, 0, 0].tolist() for block in blocks]


def test_blocks_are_full_unless_the_log_waits_or_ends() -> None:
    entries = reader(*map(row, range(5)), None, None, row(5))
    assert ticks(entries.blocks(None)) == [[0, 1, 2], [3, 4], None, None, [5]]
    assert ticks(entries.blocks(3)) == [[4], None, None, [5]]
    assert ticks(entries.blocks(5)) == [None, None]


def test_a_block_knows_its_ticks_and_gives_parts() -> None:
    (block,) = reader(row(7), row(8)).blocks(None)
    assert block is not None
    assert (block.ticks, block.last) == ((7, 8), 8)
    assert block.of(slice(1, 2)).rows.tolist() == [[[-7]], [[-8]]]


def test_what_was_used_before_must_come_again() -> None:
    entries = reader(*map(row, range(5)))
    assert ticks(entries.blocks(0, upto=2)) == [[1, 2]]
    assert ticks(entries.blocks(0, upto=4)) == [[1, 2, 3], [4]]
    with pytest.raises(InputError, match="the log ends at tick 4, and what came up to tick 6"):
        list(entries.blocks(0, upto=6))


def test_rows_by_id_leave_the_others_missing() -> None:
    (block,) = reader((0, {"b": [2.0]})).blocks(None)
    assert block is not None
    np.testing.assert_array_equal(block.rows, [[[np.nan], [2.0]]])


@pytest.mark.parametrize(
    ("entries", "error", "words"),
    [
        ([row(1), row(1)], TimeOrderError, "tick 1 came behind tick 1"),
        ([row(1), row(0)], TimeOrderError, "tick 0 came behind tick 1"),
        ([(0, {"c": [1.0]})], InputError, "tick 0: rows names the series 'c', which is not here"),
        ([(0, np.zeros((3, 1)))], ShapeError, r"tick 0: rows have shape \(3, 1\); accepted: \(2, 1\)"),
        ([(0, [["1"], ["2"]])], DtypeError, "tick 0: rows has dtype"),
        ([(1, np.zeros((2, 1)), {0: {"b": [np.inf]}})], NotFiniteError, "tick 0: series 'b': row is infinite"),
        ([(0, {"a": [1.0, 2.0]})], ShapeError, r"tick 0: series 'a': row has shape \(2,\)"),
    ],
)
def test_a_log_that_breaks_its_promise_is_refused(entries: list[Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        list(reader(*entries).blocks(None))


def test_late_rows_go_with_the_tick_they_came_before() -> None:
    (block,) = reader(row(0), (1, np.zeros((2, 1)), {0: {"b": [9.0]}})).blocks(None)
    assert block is not None
    (_, ((at, cells),)) = block.of(slice(1, 2)).late
    assert (at, cells.tolist()) == (0, [[9.0]])


def test_ticks_may_be_times() -> None:
    hours = np.datetime64("1969-12-31T22", "us") + np.arange(4) * np.timedelta64(1, "h")
    entries = reader(*((hour, np.zeros((2, 1))) for hour in hours))
    assert [block.ticks for block in entries.blocks(hours[0]) if block is not None] == [tuple(hours[1:])]


def test_the_newest_snapshot_is_not_ahead_of_what_is_known(tmp_path: Path) -> None:
    snapshots, others = Snapshots(tmp_path, 1), Snapshots(tmp_path, 2)
    for tick in (5, 10, 1000000, 15):
        snapshots.path(tick).touch()
        others.path(tick).touch()
    assert snapshots.newest(None) is None
    assert snapshots.newest(4) is None
    assert snapshots.newest(14) == snapshots.path(10)
    assert snapshots.newest(2000000) == snapshots.path(1000000)
    for safe in (None, 4, 9):
        snapshots.forget(safe)
        assert snapshots.path(5).exists()
    snapshots.forget(15)
    assert set(tmp_path.glob("shard-00001@*")) == {snapshots.path(15), snapshots.path(1000000)}
    assert len(list(tmp_path.glob("shard-00002@*"))) == 4


def test_snapshots_of_times_before_1970_are_in_order(tmp_path: Path) -> None:
    snapshots = Snapshots(tmp_path, 0)
    hours = np.datetime64("1969-12-31T22", "us") + np.arange(4) * np.timedelta64(1, "h")
    for hour in hours:
        snapshots.path(hour).touch()
    assert snapshots.newest(hours[1] + np.timedelta64(1, "m")) == snapshots.path(hours[1])
    assert snapshots.newest(hours[0] - np.timedelta64(1, "m")) is None
