"""A worker in this process."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ompb
from ompb.errors import OptionError
from ompb.ray.log import Block
from ompb.ray.part import Part, summary
from ompb.ray.snapshots import Snapshots
from ompb.ray.worker import Shard, Worker
from ompb.types import Floats


def test_a_worker_on_torch_says_the_same_and_goes_on_from_its_snapshot(tmp_path: Path) -> None:
    said: list[list[Part]] = []
    for options in ({}, {"device": "cpu"}):
        shards = [Shard(("a", "b"), calibrator(), last_value, Snapshots(tmp_path, len(said)), options)]
        worker = Worker(shards, 10, summary)
        assert worker.restore(None) is None
        worker.follow(block(0, 25), None, None)
        again = Worker(shards, 10, summary)
        assert again.restore(24) == 19
        (parts,) = again.follow(block(15, 40), 24, None)
        said.append(parts)
    assert [len(parts) for parts in said] == [15, 15]  # ticks 25 to 39
    for ours, theirs in zip(*said, strict=True):
        assert ours.ids == theirs.ids
        for one, other in zip(ours[1:], theirs[1:], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)
    whole = ompb.Fleet(calibrator(), last_value, ("a", "b"))
    forecasts = [whole.step(rows) for rows in block(0, 40).rows]
    assert forecasts[-1] is not None
    np.testing.assert_array_equal(said[0][-1].mean, forecasts[-1].mean)


def last_value(windows: Floats) -> Floats:
    return np.repeat(windows[:, -1:], 3, axis=1)


def calibrator() -> ompb.Calibrator:
    return ompb.Calibrator.fit(last_value, wave(300)[:, :1], context=12, horizon=3, season=12)


def wave(ticks: int) -> Floats:
    """(T, 2)."""
    clean = np.sin(2 * np.pi * np.arange(ticks) / 12)[:, None] + np.array([0.0, 1.0])
    return np.asarray(clean + np.random.default_rng(0).normal(0, 0.1, clean.shape))


def block(first: int, end: int) -> Block:
    return Block(tuple(range(first, end)), wave(300)[first:end, :, None], ((),) * (end - first))


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"ids": ()}, "do not name series"),
        ({"ids": ("a", "a")}, "do not name series"),
        ({"size": 0}, "size = 0"),
        ({"every": 0}, "every = 0"),
        ({"workers": 0}, "workers = 0"),
        ({"calibrators": {"b": None}}, "calibrators lacks 'a'"),
    ],
)
def test_options_are_checked_before_anything_starts(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(OptionError, match=words):
        ompb.ray.shards(**{"calibrators": calibrator(), "forecaster": last_value, "ids": ("a", "b"), **wrong})


def test_shards_are_cut_in_order_and_keep_their_calibrators(tmp_path: Path) -> None:
    cals = {one: calibrator() for one in "edcba"}
    made = ompb.ray.shards(cals, last_value, list(cals), size=2, folder=tmp_path).shards
    assert [shard.ids for shard in made] == [("e", "d"), ("c", "b"), ("a",)]
    assert [tuple(shard.calibrators) for shard in made] == [shard.ids for shard in made]
