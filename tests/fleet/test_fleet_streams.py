"""A fleet is its streams: each series learns and issues as it would alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_fleets import (
    CHANNELS,
    CONTEXT,
    HORIZON,
    IDS,
    PATIENCE,
    SEASON,
    SETTINGS,
    assert_equal,
    calibrator,
    calibrators,
    last_season,
    table,
)

import ompb
from ompb.datasets.synthetic import shifted_stream
from ompb.types import Floats


def late_cells(tick: int) -> Floats:
    """Cells of two series that come late at some ticks."""
    cells = np.full((len(IDS), CHANNELS), np.nan)
    if tick % 5 == 4:
        cells[1:3] = table(holes=0.0)[tick - 2, 1:3]
    return cells


def assert_like_streams(cal: Any, each: list[ompb.Calibrator], tolerance: float, **options: Any) -> None:
    fleet = ompb.Fleet(cal, options.pop("forecaster", last_season), IDS, **options)
    streams = [one.stream(last_season) for one in each]
    for tick, rows in enumerate(table()):
        out = fleet.step(rows, at=tick)
        assert out is not None
        for place, stream in enumerate(streams):
            assert_equal(out, place, stream.step(rows[place]), tolerance)
        late = late_cells(tick)
        if not np.isnan(late).all():
            fleet.observe(tick - 2, late)
            for place in (1, 2):
                streams[place].observe(tick - 2, late[place])


@pytest.mark.parametrize("shared", [True, False])
def test_one_question_for_each_series_gives_the_same_bits(shared: bool) -> None:
    cal: Any = calibrator() if shared else calibrators()
    each = [calibrator()] * len(IDS) if shared else list(calibrators().values())
    assert_like_streams(cal, each, 0.0, batched=False)


def of_several_shapes() -> dict[str, ompb.Calibrator]:
    """Sources of two lengths, one of them without a season and one with an unseen part: other windows, other spans."""
    found = dict(calibrators())
    others: list[tuple[str, int, dict[str, Any]]] = [
        ("b", 200, {}),
        ("d", 200, {"unseen": 60}),
        ("e", 300, {"season": None}),
    ]
    for number, (one, rows, more) in enumerate(others):
        source = shifted_stream("level", 20 + number, rows, 40, CHANNELS, SEASON)[0]
        sizes: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": SEASON, **more, **SETTINGS}
        found[one] = ompb.Calibrator.fit(last_season, source, **sizes)
    return found


def test_calibrators_of_several_shapes_are_followed_in_groups(tmp_path: Path) -> None:
    cals = of_several_shapes()
    assert_like_streams(cals, list(cals.values()), 0.0, batched=False)
    fleet = ompb.Fleet(cals, last_season, IDS)
    assert len(fleet._now.groups) == 4
    assert sorted(place for group in fleet._now.groups for place in group.places) == list(range(len(IDS)))
    for tick, rows in enumerate(table()[:30]):
        fleet.step(rows, at=tick)
    fleet.save(tmp_path / "fleet")
    again = ompb.Fleet.load(tmp_path / "fleet", cals, last_season)
    alone = fleet.take("e")
    mine, theirs = fleet.step(table()[30], at=30), again.step(table()[30], at=30)
    assert mine is not None
    assert theirs is not None
    np.testing.assert_array_equal(mine.mean, theirs.mean)
    assert_equal(mine, 4, alone.step(table()[30, 4]), 1e-12)
    # one calibrator for all makes them one group again
    fleet.replace(last_season, calibrator())
    assert len(fleet._now.groups) == 1
    fleet.replace(last_season, cals)
    assert len(fleet._now.groups) == 4


def test_one_question_for_all_gives_the_same() -> None:
    assert_like_streams(calibrators(), list(calibrators().values()), 1e-12)


def test_the_forecaster_is_asked_once_a_tick() -> None:
    asked: list[tuple[int, ...]] = []

    def counted(windows: Any) -> Floats:
        asked.append(windows.shape)
        return last_season(windows)

    fleet = ompb.Fleet(calibrator(), counted, IDS)
    for rows in table()[:8]:
        fleet.step(rows)
    assert asked == [(len(IDS), 6, CHANNELS)] * 3


def test_any_split_into_shards_gives_the_same_bits() -> None:
    whole = ompb.Fleet(calibrator(), last_season, IDS, batched=False)
    shards = [
        (part, ompb.Fleet(calibrator(), last_season, IDS[part], batched=False)) for part in (slice(2), slice(2, 5))
    ]
    for rows in table():
        out = whole.step(rows)
        for part, shard in shards:
            one = shard.step(rows[part])
            assert out is not None
            assert one is not None
            for name in ("mean", "sd", "gate", "multipliers"):
                np.testing.assert_array_equal(getattr(one, name), getattr(out, name)[part])


def test_base_forecasts_can_be_handed_in() -> None:
    asking, handed = (ompb.Fleet(calibrator(), one, IDS, batched=False) for one in (last_season, None))
    base: Any = None
    for rows in table()[:40]:
        out = asking.step(rows)
        assert out is not None
        base = out.base if out.issued.all() else None
        given = handed.step(rows, base=base)
        assert given is not None
        np.testing.assert_array_equal(given.mean, out.mean)
    with pytest.raises(ompb.errors.ForecasterError, match="no forecaster"):
        handed.step(table()[40])
    with pytest.raises(ompb.errors.ForecasterError, match=r"accepted: \(5, 4, 2\)"):
        handed.step(table()[40], base=base[:2])
    with pytest.raises(
        ompb.errors.ForecasterError, match=r"^series 'a': base= has inf at lead 1, channel 0, for origin 40"
    ):
        handed.step(table()[40], base=np.full_like(base, np.inf))


def test_a_series_without_a_base_forecast_goes_its_own_way() -> None:
    fleet = ompb.Fleet(calibrator(), None, IDS)
    streams = [calibrator().stream() for _ in IDS]
    bases = ompb.Fleet(calibrator(), last_season, IDS, batched=False)
    for tick, rows in enumerate(table()):
        spoken = bases.step(rows)
        assert spoken is not None
        if not spoken.issued.any():
            for stream, row in zip(streams, rows, strict=True):
                stream.step(row, base=None)
            fleet.step(rows, base=None)
            continue
        here = [one for place, one in enumerate(IDS) if not (tick % 10 == 3 and place in (0, 3))]
        out = fleet.step(rows, base={one: spoken.base[IDS.index(one)] for one in here})
        assert out is not None
        for place, stream in enumerate(streams):
            base = spoken.base[place] if IDS[place] in here else None
            assert_equal(out, place, stream.step(rows[place], base=base))


def test_many_late_ticks_are_learned_as_streams_learn_them() -> None:
    fleet = ompb.Fleet(calibrator(), last_season, IDS, batched=False)
    streams = [calibrator().stream(last_season) for _ in IDS]
    held: dict[int, Floats] = {}
    rng = np.random.default_rng(3)
    for tick, rows in enumerate(table(holes=0.0)):
        comes = rng.random(rows.shape) > 0.2
        held[tick] = np.where(comes, np.nan, rows)
        out = fleet.step(np.where(comes, rows, np.nan), at=tick)
        assert out is not None
        for place, stream in enumerate(streams):
            assert_equal(out, place, stream.step(np.where(comes[place], rows[place], np.nan)))
        for old in [old for old in held if old <= tick - PATIENCE]:
            late = held.pop(old)
            fleet.observe(old, {IDS[0]: late[0], IDS[4]: late[4]})
            for place in (0, 4):
                streams[place].observe(old, late[place])


def test_the_frame_has_a_line_for_each_series_channel_and_lead() -> None:
    fleet = ompb.Fleet(calibrator(), last_season, IDS)
    for rows in table()[:30]:
        out = fleet.step(rows)
    assert out is not None
    frame = out.frame()
    assert len(frame) == len(IDS) * CHANNELS * HORIZON
    line = frame.filter((frame["unique_id"] == "c/channel 1") & (frame["lead"] == 3)).row(0, named=True)
    assert out.certificate is not None
    assert line["y_hat"] == out.mean[2, 2, 1]
    assert line["lower_80"] == out.interval(0.8)[0][2, 2, 1]
    assert (line["ds"], line["cutoff"]) == (32, 29)
    assert (line["gate"], line["certificate"]) == (out.gate[2, 1], out.certificate.value[2])
    with pytest.raises(ompb.errors.OptionError, match="backend"):
        out.frame(backend="sheets")  # type: ignore[arg-type]
