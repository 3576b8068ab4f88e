"""What is kept for cells that have not come, beside a dictionary of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ompb.core.holes import Holes
from ompb.live.lanes import joined, taken

LANES, SIZE, PATIENCE = 5, 3, 6


def page(row: int, lane: int) -> list[float]:
    return [row + 0.5, lane + 1.0, row * 10.0 + lane]


def pages(row: int) -> np.ndarray[Any, Any]:
    return np.asarray([page(row, lane) for lane in range(LANES)])


def check(holes: Holes, newest: int, missing: set[tuple[int, int]]) -> None:
    for row in range(max(0, newest - PATIENCE), newest + 1):
        found, kept = holes.of(row)
        for lane in range(LANES):
            assert bool(found[lane]) == ((row, lane) in missing)
            np.testing.assert_array_equal(kept[lane], page(row, lane) if (row, lane) in missing else 0.0)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("share", [0.05, 0.5, 1.0])
@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_every_hole_is_found_until_it_is_filled_or_too_old(library: str, share: float, seed: int) -> None:
    xp: Any = np if library == "numpy" else pytest.importorskip("torch")
    rng = np.random.default_rng(seed)
    holes = Holes.none(xp.asarray(np.zeros((LANES, 2))), SIZE, PATIENCE)
    missing: set[tuple[int, int]] = set()
    for row in range(60):
        before, was = holes, set(missing)
        known = rng.random(LANES) >= share * (20 < row < 40 or row % 7 == 0)
        parts = (xp.asarray(pages(row)[:, :2].reshape((LANES, 2, 1))), xp.asarray(pages(row)[:, 2:]))
        holes = holes.after(row, PATIENCE, xp.asarray(known), *parts)
        check(before, row - 1, was)  # an earlier state stays good
        missing |= {(row, int(lane)) for lane in np.flatnonzero(~known)}
        for older, lane in [hole for hole in missing if row - hole[0] <= PATIENCE and rng.random() < 0.1]:
            holes = holes.without(older, xp.asarray(np.arange(LANES) == lane))
            missing.remove((older, lane))
        check(holes, row, missing)


def test_there_are_few_places_while_there_are_few_holes() -> None:
    whole, one = np.ones(LANES, dtype=bool), np.arange(LANES) != 3
    holes = Holes.none(np.zeros((LANES, 2)), SIZE, PATIENCE).after(0, PATIENCE, whole, pages(0))
    assert holes.places == 0
    holes = holes.after(1, PATIENCE, one, pages(1))
    assert holes.places == 1
    for row in range(2, 20):
        holes = holes.after(row, PATIENCE, one, pages(row))
    assert holes.places == PATIENCE + 2
    for row in range(20, 20 + 2 * (PATIENCE + 2)):
        holes = holes.after(row, PATIENCE, whole, pages(row))
    assert holes.places == 0


def test_lanes_with_more_and_fewer_holes_stand_side_by_side() -> None:
    whole, some = np.ones(LANES, dtype=bool), np.arange(LANES) > 2
    calm = Holes.none(np.zeros((LANES, 2)), SIZE, PATIENCE).after(0, PATIENCE, whole, pages(0))
    busy = calm.after(1, PATIENCE, some, pages(1)).after(2, PATIENCE, some, pages(2))
    both = joined([calm, busy])
    assert both.places == busy.places > calm.places == 0
    check(taken(both, 2, [1]), 2, {(row, lane) for row in (1, 2) for lane in range(3)})
    check(taken(both, 2, [0]), 2, set())


def test_rows_without_their_pages_are_refused() -> None:
    with pytest.raises(ValueError, match="2 rows have 1 pages"):
        Holes(np.zeros((1, 2), dtype=np.int64), np.zeros((1, 1, 4)))
