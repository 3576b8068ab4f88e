"""The same fleet in another array library, and in float32; what a series weighs in memory and in a file."""

from __future__ import annotations

import dataclasses
import gc
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from small_fleets import (
    CHANNELS,
    CONTEXT,
    HORIZON,
    IDS,
    SEASON,
    assert_equal,
    calibrator,
    calibrators,
    last_season,
    table,
)

import ompb
from ompb.core.intervals import REACH, ConformalState
from ompb.datasets.synthetic import shifted_stream
from ompb.live.lanes import mapped
from ompb.types import Floats


def arrays_of(fleet: ompb.Fleet) -> list[Any]:
    """Every array of a fleet's state."""
    found: list[Any] = []

    def enter(array: Any) -> Any:
        found.append(array)
        return array

    for group in fleet._now.groups:
        mapped(enter, group.state, every=True)
    return found


@pytest.mark.parametrize("own", [False, True], ids=["shared", "own"])
def test_torch_is_numpy(own: bool) -> None:
    torch = pytest.importorskip("torch")
    cal: Any = calibrators() if own else calibrator()
    fleet = ompb.Fleet(cal, last_season, IDS, device="cpu")
    streams = [(calibrators()[one] if own else cal).stream(last_season) for one in IDS]
    for tick, rows in enumerate(table()):
        out = fleet.step(torch.asarray(np.array(rows)) if tick % 2 else rows, at=tick)
        assert out is not None
        for place, stream in enumerate(streams):
            assert_equal(out, place, stream.step(rows[place]), 1e-9)
        if tick % 6 == 5:
            late = {one: table(holes=0.0)[tick - 2, place] for place, one in enumerate(IDS) if place != 3}
            fleet.observe(tick - 2, late)
            for one, row in late.items():
                streams[IDS.index(one)].observe(tick - 2, row)
    assert out is not None
    assert all(isinstance(array, torch.Tensor) for array in arrays_of(fleet) if array.shape != (1,))
    assert len(out.frame()) == len(IDS) * CHANNELS * HORIZON
    alone = fleet.take("c")
    assert alone.realised_risk().upper == pytest.approx(streams[2].realised_risk().upper, rel=1e-9)


def test_base_forecasts_may_be_arrays_of_torch() -> None:
    torch = pytest.importorskip("torch")
    asked, handed = ompb.Fleet(calibrator(), last_season, IDS), ompb.Fleet(calibrator(), None, IDS, device="cpu")
    for rows in table()[:30]:
        out = asked.step(rows)
        assert out is not None
        given = handed.step(torch.asarray(np.array(rows)), base=torch.asarray(out.base) if out.issued.any() else None)
        assert given is not None
        np.testing.assert_allclose(given.mean.numpy(), out.mean, rtol=1e-9)


def test_base_forecasts_in_torch_are_checked_where_nobody_has_to_wait() -> None:
    torch = pytest.importorskip("torch")
    fleets = [ompb.Fleet(calibrator(), None, IDS, device=device) for device in (None, "cpu")]
    for tick, rows in enumerate(table(holes=0.0)[:30]):
        base = np.repeat(rows[:, None], HORIZON, axis=1)
        if tick % 7 == 5:
            base[2] = np.nan  # it has none
        one, other = fleets[0].step(rows, base=base), fleets[1].step(rows, base=torch.asarray(base))
        assert one is not None
        assert other is not None
        np.testing.assert_array_equal(one.issued, other.issued)
        np.testing.assert_allclose(other.mean.numpy(), one.mean, rtol=1e-9)
    for wrong, words in ((np.nan, "base= has nan at lead 1"), (1e160, r"base= has 1e\+160 at lead 1")):
        base[1, 0] = wrong
        with pytest.raises(ompb.errors.ForecasterError, match=words):
            fleets[1].step(rows, base=torch.asarray(base))
    with pytest.raises(ompb.errors.ForecasterError, match=r"base= has shape \(4, 4, 2\)"):
        fleets[1].step(rows, base=torch.asarray(base[1:]))


def test_a_step_waits_for_no_number_and_names_every_device() -> None:
    """A meta tensor has no numbers and mixes with no other device: whoever asks for one, or forgets it, is found."""
    torch = pytest.importorskip("torch")
    fleet = ompb.Fleet(calibrator(), None, IDS, device="meta", dtype="float32")
    rows, base = (torch.empty((len(IDS), *more, CHANNELS), device="meta") for more in ((), (HORIZON,)))
    for tick in range(150):  # every certificate window is read again, and the source's word is put back
        out = fleet.step(rows, at=tick, base=base)
    assert out is not None
    assert out.certificate is not None
    lower, _ = out.interval(0.8)
    assert {array.device.type for array in (out.mean, lower, out.certificate.value, out.hidden)} == {"meta"}


@pytest.mark.parametrize("device", [None, "cpu"])
def test_all_of_a_float32_state_is_float32(device: str | None, tmp_path: Path) -> None:
    if device is not None:
        pytest.importorskip("torch")
    fleet = ompb.Fleet(calibrator(), last_season, IDS, device=device, dtype="float32")
    exact = ompb.Fleet(calibrator(), last_season, IDS)
    for rows in table():
        out, other = fleet.step(rows), exact.step(rows)
    assert out is not None
    assert other is not None
    kinds = {str(array.dtype).removeprefix("torch.") for array in arrays_of(fleet)}
    assert kinds == {"float32", "int64", "bool"}
    np.testing.assert_allclose(fleet._library.host(out.mean), other.mean, rtol=1e-4)
    fleet.save(tmp_path / "narrow")
    again = ompb.Fleet.load(tmp_path / "narrow", calibrator(), last_season, device=device, dtype="float32")
    one, two = (each.step(table()[3]) for each in (fleet, again))
    assert one is not None
    assert two is not None
    np.testing.assert_array_equal(fleet._library.host(one.mean), fleet._library.host(two.mean))


@pytest.mark.parametrize("device", [None, "cpu"])
@pytest.mark.parametrize("off", [0.0, 9.0], ids=["narrowest", "widest"])
def test_a_float32_fleet_whose_intervals_are_as_wide_as_they_get_is_saved(
    device: str | None, off: float, tmp_path: Path
) -> None:
    """Float32 rounds the limit of a half-width away from zero: what it stops at is a limit, too."""
    if device is not None:
        pytest.importorskip("torch")
    source = shifted_stream("level", 10, 300, 40, CHANNELS, SEASON)[0]
    cal = ompb.Calibrator.fit(last_season, source, context=CONTEXT, horizon=HORIZON, season=SEASON, conformal_rate=50.0)
    fleet = ompb.Fleet(cal, last_season, IDS, device=device, dtype="float32")
    for tick in range(40):
        fleet.step(np.full((len(IDS), CHANNELS), off * (-1) ** (tick // 3)))
    fleet.save(tmp_path / "narrow")
    intervals = fleet._now.groups[0].state.online.intervals
    assert isinstance(intervals, ConformalState)
    assert float(abs(intervals.log_factor).max()) > REACH
    for dtype in ("float32", "float64"):
        again = ompb.Fleet.load(tmp_path / "narrow", cal, last_season, device=device, dtype=dtype)
        again.save(tmp_path / "again")


@pytest.mark.parametrize("device", [None, "cpu"])
def test_a_float32_fleet_of_a_short_source_is_saved(device: str | None, tmp_path: Path) -> None:
    """There is no record of a calm stream then, so the line of a warning is out of reach, and still a number."""
    if device is not None:
        pytest.importorskip("torch")
    source = shifted_stream("level", 10, 90, 40, CHANNELS, SEASON)[0]
    cal = ompb.Calibrator.fit(last_season, source, context=CONTEXT, horizon=HORIZON, season=SEASON)
    fleet = ompb.Fleet(cal, last_season, IDS, device=device, dtype="float32")
    for rows in table()[:30]:
        fleet.step(rows)
    fleet.save(tmp_path / "narrow")
    again = ompb.Fleet.load(tmp_path / "narrow", cal, last_season, device=device, dtype="float32")
    one, two = (each.step(table()[30]) for each in (fleet, again))
    assert one is not None
    assert two is not None
    assert not one.warning.in_force.any()
    np.testing.assert_array_equal(fleet._library.host(one.mean), fleet._library.host(two.mean))


def test_float32_is_refused_where_it_has_too_few_digits(tmp_path: Path) -> None:
    """Numbers of float32 near a million and ten million lie 1/16 and 1 apart; the deviations here are about 1."""
    source = shifted_stream("level", 10, 300, 40, CHANNELS, SEASON)[0]
    near, far = (
        ompb.Calibrator.fit(last_season, source + level, context=CONTEXT, horizon=HORIZON, season=SEASON)
        for level in (1e6, 1e7)
    )
    words = (
        r"dtype = 'float32' tells values near 1e\+07 apart in steps of 1, and the source of '.' has standard deviation"
    )
    fleet = ompb.Fleet(near, last_season, ["a"], dtype="float32")
    exact = ompb.Fleet(far, last_season, ["a"])
    exact.save(tmp_path / "far")
    for call in (
        lambda: ompb.Fleet(far, last_season, ["a"], dtype="float32"),
        lambda: ompb.Fleet({"a": near, "b": far}, last_season, ["a", "b"], dtype="float32"),
        lambda: ompb.Fleet.load(tmp_path / "far", far, last_season, dtype="float32"),
        lambda: fleet.add(["b"], far),
        lambda: fleet.replace(last_season, far),
        lambda: fleet.put("b", far.stream(last_season)),
    ):
        with pytest.raises(ompb.errors.OptionError, match=words):
            call()
    assert fleet.ids == ("a",)


def test_float32_is_refused_where_it_ends_too_soon() -> None:
    """At 3.4e38: a mean beyond it would be infinite, and so would every forecast."""
    source = shifted_stream("level", 10, 300, 40, CHANNELS, SEASON)[0]
    for factor, fits in ((1e30, True), (1e34, False), (1e60, False)):
        rows = factor * source
        cal = ompb.Calibrator.fit(last_season, rows, context=CONTEXT, horizon=HORIZON, season=SEASON)
        if fits:
            fleet = ompb.Fleet(cal, last_season, ["a"], dtype="float32")
            for row in rows[: CONTEXT + 4]:
                out = fleet.step(row[None])
            assert out is not None
            assert np.isfinite(out.mean).all()
        else:
            with pytest.raises(ompb.errors.OptionError, match=r"dtype = 'float32' ends at 3.40282e\+38, and values"):
                ompb.Fleet(cal, last_season, ["a"], dtype="float32")


def test_a_device_that_is_not_here_is_told() -> None:
    pytest.importorskip("torch")
    with pytest.raises(ompb.errors.OptionError, match=r"device = 'nowhere' is not here"):
        ompb.Fleet(calibrator(), last_season, IDS, device="nowhere")


def test_float32_costs_next_to_nothing_on_etth(data_dir: Path) -> None:
    first, second = (pl.read_csv(data_dir / f"ETTh{site}.csv").drop("date").to_numpy()[:3000] for site in (1, 2))
    second = second[:900]
    forecaster = ompb.Ridge.fit(first, 48, 24)
    cal = ompb.Calibrator.fit(forecaster, first, context=48, horizon=24, season=24, spans=(1, 2))
    errors = []
    for dtype in ("float64", "float32"):
        fleet, means = ompb.Fleet(cal, forecaster, ["x"], dtype=dtype), []
        for row in second:
            out = fleet.step(row[None])
            assert out is not None
            means.append(out.mean[0])
        ahead = np.stack([second[t + 1 : t + 25] for t in range(47, len(second) - 24)])
        errors.append(np.abs(np.stack(means[47:-24]) - ahead).mean(axis=(0, 1)) / cal.scale)
    assert errors[1].mean() <= 1.001 * errors[0].mean()


@pytest.mark.parametrize(("dtype", "most"), [("float64", 99.0), ("float32", 50.0)])
def test_what_a_series_weighs(tmp_path: Path, dtype: str, most: float) -> None:
    """Kilobytes a series, in memory and in a file, of one channel with a certificate and default settings."""
    source: Floats = shifted_stream("level", 1, 2000, 40, 1, 24)[0]
    forecaster = ompb.SeasonalProfile(horizon=24, season=24)
    cal = ompb.Calibrator.fit(forecaster, source, context=48, horizon=24, season=24, spans=(1,))
    assert dataclasses.replace(cal.settings, spans=(1, 2, 4)) == ompb.Settings()
    ids = [str(number) for number in range(20)]
    fleet = ompb.Fleet(cal, forecaster, ids, dtype=dtype)
    for tick in range(60):
        fleet.step(source[tick : tick + 20])
    weight = sum(array.nbytes for array in arrays_of(fleet)) / len(ids) / 1024
    assert weight <= most
    fleet.save(tmp_path / "shard")
    assert (tmp_path / "shard").stat().st_size / len(ids) / 1024 <= weight + 1


def test_what_late_rows_leave_behind_does_not_grow(tmp_path: Path) -> None:
    """Rules for every number of series that can be late together would weigh far more than what was learned."""
    ids = [str(number) for number in range(60)]
    fleet = ompb.Fleet(calibrator(), last_season, ids)
    for rows in table()[:20, :1]:
        fleet.step(np.repeat(rows, len(ids), axis=0))

    def late(most: int) -> None:
        for number in range(1, most):
            fleet.observe(19, dict.fromkeys(ids[:number], table()[19, 0]))

    late(4)
    fleet.save(tmp_path / "fleet")
    weight = (tmp_path / "fleet").stat().st_size
    tracemalloc.start()
    late(len(ids))
    gc.collect()
    assert tracemalloc.get_traced_memory()[0] < 2 * weight
    tracemalloc.stop()
    assert len(pickle.dumps(fleet)) < 1.5 * weight
