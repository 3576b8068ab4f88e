"""Ticks, ids, files and the coming and going of series."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from small_fleets import (
    CHANNELS,
    CONTEXT,
    HORIZON,
    IDS,
    SEASON,
    SETTINGS,
    assert_equal,
    calibrator,
    calibrators,
    last_season,
    table,
)

import ompb
from ompb.core.online import UNTOLD
from ompb.errors import (
    BusyError,
    DtypeError,
    ForecasterError,
    FormatError,
    InputError,
    NotFiniteError,
    OmpbError,
    OptionError,
    ShapeError,
    StaleRowError,
    TimeOrderError,
)
from ompb.live.cohort import Cohort
from ompb.live.lanes import mapped, taken
from ompb.types import Floats


def walked(ticks: int, cal: Any = None, **options: Any) -> ompb.Fleet:
    fleet = ompb.Fleet(cal or calibrator(), last_season, IDS, **options)
    for rows in table()[:ticks]:
        fleet.step(rows)
    return fleet


def same(one: ompb.FleetForecast | None, other: ompb.FleetForecast | None) -> bool:
    assert one is not None
    assert other is not None
    return one.ids == other.ids and all(
        np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True)
        for name in ("mean", "sd", "gate", "multipliers", "origin", "issued")
    )


def test_old_ticks_are_skipped_and_gaps_are_told() -> None:
    fleet = ompb.Fleet(calibrator(), last_season, IDS)
    for tick in range(7, 17):
        assert fleet.step(table()[tick], at=tick) is not None
    before = fleet.step(table()[0], at=12)
    assert before is None
    assert (fleet.ticks, fleet.newest) == (10, 16)
    with pytest.raises(ompb.GapError, match="expected: 17") as told:
        fleet.step(table()[19], at=19)
    assert told.value.expected == 17
    assert pickle.loads(pickle.dumps(told.value)).expected == 17
    never = walked(0)
    for tick in range(7, 18):
        out = never.step(table()[tick])
    assert same(fleet.step(table()[17], at=17), out)


HOURS = np.datetime64("2024-01-01T00", "us") + np.arange(80) * np.timedelta64(1, "h")


def timed_calibrator() -> ompb.Calibrator:
    """Of one series, by hours."""
    source = np.asarray(table()[:80, 0])
    return ompb.Calibrator.fit(
        last_season, source, times=HOURS, context=CONTEXT, horizon=HORIZON, season=SEASON, **SETTINGS
    )


def test_ticks_are_of_one_kind() -> None:
    by_time, counted = (ompb.Fleet(timed_calibrator(), last_season, ["x"]) for _ in range(2))
    for tick in range(3):
        by_time.step(table()[tick, :1], at=HOURS[tick])
        counted.step(table()[tick, :1], at=tick)
    states = by_time._now, counted._now
    calls: list[Callable[[ompb.Fleet, Any], Any]] = [
        lambda fleet, at: fleet.step(table()[3, :1], at=at),
        lambda fleet, at: fleet.observe(at, table()[3, :1]),
    ]
    for call in calls:
        with pytest.raises(DtypeError, match=r"at = 1 is a whole number, .* 2024-01-01T02:00:00; accepted: times\."):
            call(by_time, 1)
        with pytest.raises(DtypeError, match=r"at = 2024-01-01T03:00:00 is a time, .* 2; accepted: whole numbers\."):
            call(counted, HOURS[3])
    assert (by_time._now, counted._now) == states
    with pytest.raises(DtypeError, match=r"is a time, and the calibrators have no dates; accepted: whole numbers"):
        walked(0).step(table()[0], at=HOURS[0])


def test_ticks_are_times_where_the_calibrator_has_them() -> None:
    cal, hours = timed_calibrator(), HOURS
    fleet, stream = ompb.Fleet(cal, last_season, ["x"], batched=False), cal.stream(last_season)
    for tick in range(20):
        out = fleet.step(table()[tick, :1], at=hours[tick])
        forecast = stream.step(table()[tick, 0], at=hours[tick])
    assert out is not None
    assert forecast is not None
    assert_equal(out, 0, forecast)
    np.testing.assert_array_equal(out.times, forecast.times)
    assert fleet.step(table()[3, :1], at=hours[3]) is None
    with pytest.raises(ompb.GapError, match="2024-01-01T20"):
        fleet.step(table()[21, :1], at="2024-01-01T21:00")
    with pytest.raises(TimeOrderError, match="off the grid"):
        fleet.step(table()[21, :1], at="2024-01-01T19:30")
    with pytest.raises(StaleRowError, match="cannot be observed"):
        fleet.observe(hours[20], table()[3, :1])
    fleet.observe(hours[18], [[1.0, 2.0]])
    stream.observe(hours[18], [1.0, 2.0])
    following, single = fleet.step(table()[20, :1], at=hours[20]), stream.step(table()[20, 0])
    assert following is not None
    assert_equal(following, 0, single)
    taken = fleet.take("x")
    fleet.put("y", taken)
    taken.step(table()[21, 0])
    with pytest.raises(TimeOrderError, match="has not come as far as the fleet"):
        fleet.put("z", taken)


def test_a_forecast_shows_itself_in_words() -> None:
    single = ompb.Fleet(calibrator(0, 1), last_season, ["x"])
    out = [single.step(rows[:1]) for rows in table(channels=1)[:CONTEXT]][-1]
    assert repr(out) == "FleetForecast(tick 5, 1 series, 4 leads, 1 channel)"
    stream = calibrator(0, 1).stream(last_season)
    forecast = [stream.step(row) for row in table(channels=1)[:CONTEXT, 0]][-1]
    assert "4 leads, 1 channel, gate" in repr(forecast)
    assert forecast is not None
    assert "Forecast of 4 leads, 1 channel<" in forecast._repr_html_()
    by_time = ompb.Fleet(timed_calibrator(), last_season, ["x"])
    out = by_time.step(table()[0, :1], at=HOURS[7])
    assert repr(out) == "FleetForecast(tick 2024-01-01T07:00:00, 1 series, 4 leads, 2 channels)"


def test_series_come_and_go() -> None:
    fleet = walked(20, batched=False)
    streams = {one: calibrator().stream(last_season) for one in IDS}
    for rows in table()[:20]:
        for one, row in zip(IDS, rows, strict=True):
            streams[one].step(row)
    fleet.add(["f", "g"])
    streams |= {one: calibrator().stream(last_season) for one in ("f", "g")}
    fleet.drop(["b"])
    del streams["b"]
    assert fleet.ids == ("a", "c", "d", "e", "f", "g") == tuple(streams)
    for tick in range(20, 40):
        rows = {one: table()[tick, number % 5] for number, one in enumerate(streams)}
        out = fleet.step(rows, at=tick)
        assert out is not None
        for place, (one, stream) in enumerate(streams.items()):
            assert_equal(out, place, stream.step(rows[one]))
        if tick == 30:
            lone = fleet.take("d")
            lone.step(rows["d"])  # goes its own way
            streams["d"] = fleet.take("d")
            fleet.put("c", fleet.take("f"))
            streams["c"] = fleet.take("c")
    with pytest.raises(StaleRowError, match="before f, g joined"):
        walked_with_two_more().observe(0, {"f": [1.0, 1.0], "g": [2.0, 2.0]})


def walked_with_two_more() -> ompb.Fleet:
    fleet = walked(3)
    fleet.add(["f", "g"])
    fleet.step({})
    return fleet


def test_all_that_began_together_are_one_group() -> None:
    fleet = ompb.Fleet(calibrator(), last_season, IDS[:2])
    fleet.add(IDS[2:])
    for rows in table()[:30]:
        fleet.step(rows)
    for one in IDS[:3]:
        fleet.put(one, fleet.take(one))
    assert [len(group.places) for group in fleet._now.groups] == [5]


@pytest.mark.parametrize("cal", [calibrator(), calibrators()], ids=["shared", "own"])
def test_a_file_continues_a_fleet(tmp_path: Path, cal: Any) -> None:
    fleet = walked(25, cal)
    fleet.observe(23, table(holes=0.0)[23])
    fleet.save(tmp_path / "shard")
    again = ompb.Fleet.load(tmp_path / "shard", cal, last_season)
    assert (again.ids, again.ticks, again.newest) == (IDS, 25, 24)
    assert again.step(table()[24], at=24) is None
    for tick in range(25, 40):
        assert same(fleet.step(table()[tick], at=tick), again.step(table()[tick], at=tick))
    unpickled = pickle.loads(pickle.dumps(fleet))
    assert same(fleet.step(table()[40]), unpickled.step(table()[40]))
    with pytest.raises(FormatError, match="another calibrator"):
        ompb.Fleet.load(tmp_path / "shard", calibrator(1), last_season)


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda fleet: pickle.loads(pickle.dumps(fleet))])
def test_a_copy_goes_its_own_way(copied: Callable[[ompb.Fleet], ompb.Fleet]) -> None:
    fleet, alone = walked(25), walked(25)
    other = copied(fleet)
    for rows in table()[25:35]:
        other.step(rows + 9.0)
    for rows in table()[25:45]:
        assert same(fleet.step(rows), alone.step(rows))


@pytest.mark.parametrize(
    "kept",
    [
        lambda fleet, path: (fleet.save(path), ompb.Fleet.load(path, calibrator(), last_season))[1].take("b"),
        lambda fleet, _: fleet.take("b"),
        lambda fleet, _: copy.copy(fleet).take("b"),
    ],
    ids=["saved", "taken", "copied"],
)
def test_a_fleet_is_kept_whole_while_another_thread_steps_it(
    kept: Callable[[ompb.Fleet, Path], ompb.Stream], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A state is read while the next two are taken, as a thread may do it at any moment."""
    fleet, steps = walked(30), iter(range(30, 34))

    def disturbed(state: Any, series: int, places: Any) -> Any:
        for _, tick in zip(range(2), steps, strict=False):
            fleet.step(table()[tick])
        return taken(state, series, places)

    def copied(state: Any) -> Any:
        return disturbed(state, len(IDS), slice(None))

    monkeypatch.setattr("ompb.fleet.groups.taken", disturbed)
    monkeypatch.setattr("ompb.fleet.file.deepcopy", copied)
    stream = kept(fleet, tmp_path / "fleet")
    monkeypatch.undo()
    assert stream.rows == fleet.ticks == 34
    for rows in table()[34:50]:
        out = fleet.step(rows)
        assert out is not None
        assert_equal(out, 1, stream.step(rows[1]))


@pytest.mark.parametrize("first", [0, 3], ids=["with the others", "by itself"])
def test_a_stream_that_was_put_into_a_fleet_goes_its_own_way(first: int) -> None:
    fleets = walked(25), walked(25)
    for fleet in fleets:
        stream = calibrator().stream(last_season)
        for rows in table()[first:25]:
            stream.step(rows[1])
        fleet.put("b", stream)
    for rows in table()[25:35]:
        stream.step(rows[1] + 9.0)  # that of the second fleet
    for rows in table()[25:45]:
        assert same(*(fleet.step(rows) for fleet in fleets))


def test_a_fleet_begins_where_the_histories_of_its_streams_end(tmp_path: Path) -> None:
    """Before its first tick; all forecast from it, but for those that know nothing yet."""
    rows, hours = table(holes=0.0), np.datetime64("2024-01-01T00", "us") + np.arange(90) * np.timedelta64(1, "h")
    arguments: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": SEASON, **SETTINGS}
    cal = ompb.Calibrator.fit(last_season, rows[:40, 0], times=hours[:40], **arguments)
    streams = [cal.stream(last_season, history=rows[30:40, place], times=hours[30:40]) for place in range(3)]
    streams.append(cal.stream(last_season))
    fleet = ompb.Fleet(cal, last_season, IDS[:4], batched=False)
    for one, stream in zip("abc", streams, strict=False):
        fleet.put(one, stream)
    assert (fleet.ticks, fleet.newest) == (0, hours[39])
    fleet.save(tmp_path / "fleet")
    again = ompb.Fleet.load(tmp_path / "fleet", cal, last_season, batched=False)
    assert (again.ticks, again.newest) == (0, hours[39])
    older = cal.stream(last_season, history=rows[30:39, 0], times=hours[30:39])
    for refused in (older, cal.stream(last_season)):
        with pytest.raises(
            TimeOrderError, match="has not come as far as the fleet, whose newest tick is 2024-01-02T15"
        ):
            fleet.put("d", refused)
    with pytest.raises(ompb.GapError):
        fleet.step(rows[41, :4], at=hours[41])
    assert fleet.step(rows[39, :4], at=hours[39]) is None
    for tick in range(40, 60):
        outs = [one.step(rows[tick, :4], at=hours[tick]) for one in (fleet, again)]
        for place, stream in enumerate(streams):
            forecast = stream.step(rows[tick, place], at=hours[tick])
            for out in outs:
                assert out is not None
                assert_equal(out, place, forecast)
        assert outs[0] is not None
        assert outs[0].issued.tolist() == [True, True, True, tick >= 39 + CONTEXT]


def test_a_file_says_who_reads_it(tmp_path: Path) -> None:
    cal, kinds = calibrator(), ("Calibrator", "Stream", "Fleet")
    one: Any
    for kind, one in zip(kinds, (cal, cal.stream(last_season), walked(25)), strict=True):
        one.save(tmp_path / kind)
    for kind, other in permutations(kinds, 2):
        more = () if kind == "Calibrator" else (cal, last_season)
        words = rf"{other} holds a {other.lower()}, not a {kind.lower()}; load it with ompb\.{other}\.load\(\)\.$"
        with pytest.raises(FormatError, match=words):
            getattr(ompb, kind).load(tmp_path / other, *more)


def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    cal = calibrator()
    for one in (cal, cal.stream(last_season), walked(3)):
        with pytest.raises(OmpbError, match=r"there is no folder .*; make it first"):
            one.save(tmp_path / "nowhere" / "file")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ids", [IDS[:1], IDS], ids=["one series", "many"])
def test_a_calibrator_that_all_share_may_come_by_id(tmp_path: Path, ids: tuple[str, ...]) -> None:
    by_id = dict.fromkeys(ids, calibrator())
    before: Any
    for number, before in enumerate((calibrator(), by_id)):
        ompb.Fleet(before, last_season, ids).save(tmp_path / f"{number}")
        for after in (calibrator(), by_id, {one: copy.deepcopy(calibrator()) for one in ids}):
            assert ompb.Fleet.load(tmp_path / f"{number}", after, last_season).ids == ids
        with pytest.raises(FormatError, match="another calibrator"):
            ompb.Fleet.load(tmp_path / f"{number}", {**by_id, ids[0]: calibrator(1)}, last_season)


def test_a_file_is_loaded_with_the_calibrators_of_more_series(tmp_path: Path) -> None:
    """Series that have left, or belong to another fleet, have calibrators in the same mapping."""
    fleet = walked(25, calibrators())
    fleet.drop(["a", "d"])
    fleet.save(tmp_path / "fleet")
    again = ompb.Fleet.load(tmp_path / "fleet", calibrators(), last_season)
    assert same(fleet.step(table()[25, [1, 2, 4]]), again.step(table()[25, [1, 2, 4]]))
    with pytest.raises(FormatError, match="another calibrator"):
        ompb.Fleet.load(tmp_path / "fleet", calibrators() | {"b": calibrator(0)}, last_season)
    with pytest.raises(OptionError, match="calibrators lack c"):
        ompb.Fleet.load(tmp_path / "fleet", {"b": calibrator(1), "e": calibrator(4)}, last_season)


def test_what_is_no_calibrator_stream_or_id_is_told(tmp_path: Path) -> None:
    fleet, no = walked(8), "the calibrator is a int; accepted: what ompb.Calibrator.fit"
    fleet.save(tmp_path / "fleet")
    kept = fleet._now
    cases: list[tuple[type[Exception], str, Callable[[], Any]]] = [
        (OptionError, no, lambda: ompb.Fleet(3, last_season, IDS)),  # type: ignore[arg-type]
        (OptionError, no, lambda: ompb.Fleet(dict.fromkeys(IDS, 3), last_season, IDS)),  # type: ignore[arg-type]
        (OptionError, no, lambda: ompb.Fleet.load(tmp_path / "fleet", 3, last_season)),  # type: ignore[arg-type]
        (OptionError, no, lambda: fleet.add(["x"], 3)),  # type: ignore[arg-type]
        (OptionError, no, lambda: fleet.replace(last_season, 3)),  # type: ignore[arg-type]
        (OptionError, no, lambda: ompb.Stream(3)),  # type: ignore[arg-type]
        (OptionError, no, lambda: ompb.backtest(3, last_season, table()[:, 0])),  # type: ignore[call-overload]
        (OptionError, "calibrators lack a", lambda: ompb.Fleet.load(tmp_path / "fleet", {}, last_season)),
        (OptionError, r"ids = \[3\] do not name series", lambda: fleet.add(3)),  # type: ignore[arg-type]
        (OptionError, r"ids = \[None\] do not name series", lambda: fleet.drop(None)),  # type: ignore[arg-type]
        (OptionError, r"ids = \[7\] do not name series", lambda: fleet.put(7, fleet.take("a"))),  # type: ignore[arg-type]
        (InputError, r"take names the series \['a'\], which is not here", lambda: fleet.take(["a"])),  # type: ignore[arg-type]
        (InputError, "put in for 'a' is a Calibrator", lambda: fleet.put("a", calibrator())),  # type: ignore[arg-type]
    ]
    for error, words, call in cases:
        with pytest.raises(error, match=words):
            call()
    assert fleet._now is kept


def test_forecasts_recorded_by_row_belong_to_one_series() -> None:
    """They would be those of every series."""
    record = ompb.Recorded(np.zeros((40, HORIZON, CHANNELS)))
    alone = ompb.Fleet(calibrator(), record, ["a"])
    kept = alone._now
    calls: list[Callable[[], Any]] = [
        lambda: ompb.Fleet(calibrator(), record, IDS),
        lambda: alone.add(["b"]),
        lambda: alone.put("b", calibrator().stream(record)),
        lambda: walked(8).replace(record, calibrator()),
    ]
    for call in calls:
        with pytest.raises(ForecasterError, match="belong to one series; hand them in with each tick"):
            call()
    assert alone._now is kept
    for rows in table()[:CONTEXT, :1]:
        out = alone.step(rows)
    assert out is not None
    assert out.issued.all()


def test_groups_are_kept_in_a_file(tmp_path: Path) -> None:
    fleet = walked_with_two_more()
    fleet.save(tmp_path / "shard")
    again = ompb.Fleet.load(tmp_path / "shard", calibrator(), last_season)
    for tick in range(4, 20):
        rows = dict(zip(fleet.ids, table()[tick, [0, 1, 2, 3, 4, 0, 1]], strict=True))
        assert same(fleet.step(rows), again.step(rows))


def test_what_cannot_be_used_is_told() -> None:
    fleet = walked(8)
    kept = fleet._now
    cases: list[tuple[type[Exception], str, Any]] = [
        (ShapeError, r"rows have shape \(2, 2\); accepted: \(5, 2\)", np.zeros((2, 2))),
        (InputError, "names the series 'x', which is not here; accepted: a, b, c", {"x": [1.0, 2.0]}),
        (NotFiniteError, "series 'b': row is infinite at channel 1", [[1, 1], [1, np.inf], [1, 1], [1, 1], [1, 1]]),
        (DtypeError, "real numbers", [["a", "b"]] * 5),
    ]
    for error, words, rows in cases:
        with pytest.raises(error, match=words):
            fleet.step(rows)
    with pytest.raises(StaleRowError, match="ticks old"):
        walked(40).observe(1, np.ones((5, 2)))
    for ids, words in (((), "distinct texts"), (("a", "a"), "distinct texts"), ((1,), "distinct texts")):
        with pytest.raises(OptionError, match=words):
            ompb.Fleet(calibrator(), last_season, ids)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="here already"):
        fleet.add(["a"])
    with pytest.raises(OptionError, match="calibrators lack b"):
        ompb.Fleet({"a": calibrator()}, last_season, ["a", "b"])
    with pytest.raises(OptionError, match="calibrators of their own"):
        ompb.Fleet({"a": calibrator()}, last_season, ["a"]).add(["b"])
    with pytest.raises(OptionError, match="dtype = 'float16'"):
        ompb.Fleet(calibrator(), last_season, IDS, dtype="float16")
    with pytest.raises(InputError, match="all series"):
        fleet.drop(IDS)
    assert fleet._now is kept


def test_rows_by_id_and_base_forecasts_that_cannot_be_used_name_their_series() -> None:
    fleet = walked(8)
    kept, rows = fleet._now, table()[8]
    one, flat = np.zeros((HORIZON, CHANNELS)), np.zeros((len(IDS), HORIZON, CHANNELS))
    holed = flat.copy()
    holed[3, 1, 0] = np.nan
    cases: list[tuple[type[Exception], str, dict[str, Any]]] = [
        (ShapeError, r"series 'b': row has shape \(1,\)", {"rows": {"a": rows[0], "b": [1.0]}}),
        (NotFiniteError, "series 'b': row is infinite at channel 0", {"rows": {"b": [np.inf, 1.0]}}),
        (ShapeError, "rows is ragged", {"rows": [[1.0], [1.0, 2.0], [1.0], [1.0], [1.0]]}),
        (ForecasterError, "series 'd': base= has nan at lead 2, channel 0", {"base": holed}),
        (ForecasterError, "series 'c': base= has values of dtype complex128", {"base": {"c": one + 1j}}),
        (ForecasterError, r"series 'c': base= has shape \(2, 2\)", {"base": {"c": one[:2]}}),
        (ForecasterError, r"base= has shape \(2, 4, 2\); accepted: \(5, 4, 2\)", {"base": flat[:2]}),
        (OptionError, "future lacks 'b', 'c', 'd', 'e'", {"future": {"a": one}}),
        (NotFiniteError, "series 'c': future is nan", {"future": dict.fromkeys("abde", one) | {"c": one + np.nan}}),
        (ShapeError, "other columns", {"future": dict.fromkeys("abde", one) | {"c": one[:, :1]}}),
    ]
    for error, words, given in cases:
        with pytest.raises(error, match=words):
            fleet.step(**({"rows": rows} | given))
    assert fleet._now is kept


@pytest.mark.parametrize("batched", [True, False])
def test_an_answer_that_cannot_be_names_the_series(batched: bool) -> None:
    """Also where some series are not asked about."""
    rows = table(holes=0.0)[8]

    def forecaster(windows: Floats) -> Floats:
        said = last_season(windows)
        said[windows[:, -1, 0] == rows[2, 0]] = np.nan
        return said

    fleet = ompb.Fleet(calibrator(), forecaster, IDS[1:], batched=batched)
    for earlier in table(holes=0.0)[:8]:
        fleet.step(earlier[1:])
    fleet.add(["a"])
    kept = fleet._now
    with pytest.raises(ForecasterError, match="series 'c': the forecaster returned nan at lead 1"):
        fleet.step(dict(zip(IDS, rows, strict=True)))
    assert fleet._now is kept


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_a_frame_is_matched_by_id_and_by_name(library: str) -> None:
    """Whatever the order of its lines and columns; by place, it would be taken for other series."""
    frames = pytest.importorskip(library)
    make = frames.table if library == "pyarrow" else frames.DataFrame
    fleet, twin = walked(8), walked(8)
    lines: dict[str, Any] = {
        "channel 1": table()[8, ::-1, 1],
        "unique_id": list(IDS[::-1]),
        "channel 0": table()[8, ::-1, 0],
    }
    assert same(fleet.step(make(lines)), twin.step(table()[8]))
    some = {name: column[:2] for name, column in lines.items()}
    assert same(fleet.step(make(some)), twin.step(dict(zip("ed", table()[8, [4, 3]], strict=True))))
    fleet.observe(9, make(some))
    twin.observe(9, dict(zip("ed", table()[8, [4, 3]], strict=True)))
    assert same(fleet.step(table()[10]), twin.step(table()[10]))
    for change, words in (
        ({"unique_id": list("edcbb")}, "more than one line of b"),
        ({"unique_id": list("edcbx")}, "names the series 'x', which is not here"),
        ({"more": np.zeros(5)}, "It comes with more"),
    ):
        with pytest.raises(InputError, match=words):
            fleet.step(make(lines | change))
    del lines["unique_id"]
    with pytest.raises(InputError, match="does not name the series of its lines; add a column unique_id"):
        fleet.step(make(lines))


def test_a_pandas_frame_may_have_its_ids_in_the_index() -> None:
    frame = pd.DataFrame(table()[8], index=list(IDS), columns=["channel 0", "channel 1"])
    for shown in (
        frame,
        frame.rename_axis("unique_id"),
        frame.rename_axis("meter"),
        frame.reset_index(names="unique_id"),
    ):
        assert same(walked(8).step(shown.iloc[::-1, ::-1]), walked(8).step(table()[8]))
    for index in (range(5), pd.date_range("2024", periods=5)):
        with pytest.raises(InputError, match="does not name the series"):
            walked(8).step(frame.set_axis(index, axis=0))


def test_masked_and_differentiable_numbers_are_read_for_what_they_are() -> None:
    """A masked base forecast is none, whatever lies under the mask."""
    base = np.ma.masked_array(np.zeros((len(IDS), HORIZON, CHANNELS)), mask=False)
    base[1] = np.ma.masked
    out = walked(8).step(table()[8], base=base)
    assert out is not None
    assert out.issued.tolist() == [True, False, True, True, True]
    by_id = walked(8).step(table()[8], base={one: base[place] for place, one in enumerate(IDS)})
    assert same(out, by_id)
    torch = pytest.importorskip("torch")
    rows, ahead = torch.tensor(table()[8], requires_grad=True), torch.zeros(HORIZON, 1, requires_grad=True)
    assert same(walked(8).step(rows, future=ahead), walked(8).step(table()[8]))
    with pytest.raises(DtypeError, match="rows is a Tensor that is no array of numbers"):
        walked(8).step(rows.to(torch.bfloat16))
    fleet = walked(8, device="cpu")
    with pytest.raises(DtypeError, match=r"rows have dtype torch.int64; accepted in a tensor: floats"):
        fleet.step(rows.detach().nan_to_num().to(torch.int64))


def test_covariates_may_come_by_id() -> None:
    class Asked(ompb.Forecaster):
        def forecast(self, query: ompb.Query) -> Floats:
            asked.append(query.future)
            return last_season(query.windows)

    asked: list[Any] = []
    fleet, ahead = ompb.Fleet(calibrator(), Asked(), IDS), np.random.default_rng(0).normal(size=(5, HORIZON, 3))
    for rows in table()[:CONTEXT]:
        fleet.step(rows, future=dict(zip(IDS, ahead, strict=True)))
    np.testing.assert_array_equal(asked[0], ahead)


def test_calibrators_that_were_fitted_otherwise_are_refused() -> None:
    source = np.asarray(table()[:80, 0])
    arguments: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": SEASON, **SETTINGS}
    like = ompb.Calibrator.fit(last_season, source, **arguments)
    for change, words in (
        ({"patience": 5}, "settings"),
        ({"context": 8}, r"context \(8 and 6\)"),
    ):
        other = ompb.Calibrator.fit(last_season, source, **(arguments | change))
        with pytest.raises(OptionError, match=f"'b' and 'a' differ in {words}"):
            ompb.Fleet({"a": like, "b": other}, last_season, ["a", "b"])


def test_a_forecaster_that_fails_leaves_the_fleet_as_it_was() -> None:
    works = True

    def moody(windows: Any) -> Any:
        if not works:
            raise RuntimeError("no")
        return last_season(windows)

    fleet, never = (ompb.Fleet(calibrator(), moody, IDS) for _ in range(2))
    for tick, rows in enumerate(table()[:40]):
        if tick >= CONTEXT:
            works = False
            with pytest.raises(ompb.errors.ForecasterError, match="failed"):
                fleet.step(rows * 2)
            works = True
        out = fleet.step(rows)
        assert same(out, never.step(rows))


@pytest.mark.parametrize("batched", [True, False])
def test_a_forecaster_that_writes_into_its_windows_does_no_harm(batched: bool) -> None:
    """Not even into those of earlier ticks, of which its answers were a part."""
    kept: list[Any] = []

    def newest(windows: Any) -> Any:
        return windows[:, -HORIZON:]

    def spoiling(windows: Any) -> Any:
        for old in kept:
            old[:] = np.nan
        windows[:, :-HORIZON] = np.nan
        kept.append(windows)
        return newest(windows)

    spoilt, never = (ompb.Fleet(calibrator(), one, IDS, batched=batched) for one in (spoiling, newest))
    for rows in table()[:30]:
        assert same(spoilt.step(rows), never.step(rows))


@pytest.mark.parametrize(
    "call",
    [
        lambda fleet: fleet.step(np.zeros((5, CHANNELS))),
        lambda fleet: fleet.observe(0, np.zeros((5, CHANNELS))),
        lambda fleet: fleet.add(["f"]),
        lambda fleet: fleet.drop(["a"]),
        lambda fleet: fleet.put("a", fleet.take("a")),
    ],
    ids=["step", "observe", "add", "drop", "put"],
)
def test_a_fleet_at_work_is_busy(call: Callable[[ompb.Fleet], Any]) -> None:
    """What it is told meanwhile would be lost when the tick is taken."""
    fleets: list[ompb.Fleet] = []

    def meddling(windows: Any) -> Any:
        call(fleets[0])
        return last_season(windows)

    fleets.append(ompb.Fleet(calibrator(), meddling, IDS))
    for rows in table()[: CONTEXT - 1]:
        fleets[0].step(rows)
    with pytest.raises(BusyError, match="this fleet is at work"):
        fleets[0].step(table()[CONTEXT])
    assert (fleets[0].ids, fleets[0].ticks) == (IDS, CONTEXT - 1)


def test_late_labels_neither_read_nor_change_what_they_leave_where_it_is() -> None:
    group, values = walked(25)._now.groups[0], table(holes=0.0)[23]
    left = [name for name, part in group.state.online._asdict().items() if isinstance(part, UNTOLD)]
    assert left == ["guard", "certificate", "expected", "warnings"]
    nothing: dict[str, Any] = dict.fromkeys(left)

    def same_array(one: Floats, other: Floats) -> Floats:
        np.testing.assert_array_equal(one, other)
        return one

    late = group.cohort._observed(group.state, 23, values).online
    bare = group.cohort._observed(group.state._replace(online=group.state.online._replace(**nothing)), 23, values)
    assert all(getattr(late, name) is getattr(group.state.online, name) for name in left)
    mapped(same_array, late._replace(**nothing), bare.online, every=True)


def test_rules_of_parts_are_kept_for_no_more_series_than_there_are() -> None:
    cohort = Cohort((calibrator(),), 6)
    parts = [cohort.part(range(series)) for series in (1, 2, 3)]
    assert [cohort.part(range(3, 3 + part.series)) for part in parts] == parts
    cohort.part(range(5))
    assert cohort.part([0]) is not parts[0]
    assert cohort.part(range(6)) is cohort
