"""Bad input: a typed error, and nothing changed."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray

import ompb
from ompb import archive, errors
from ompb.datasets.synthetic import shifted_stream
from ompb.seam.query import Forecaster, Query, as_forecaster

CONTEXT, HORIZON = 12, 4
Floats = NDArray[np.float64]
SOURCE, TARGET = shifted_stream("none", 0, 200, 80, 2, 6)


def profile(windows: Floats) -> Floats:
    return windows[:, -HORIZON:]


def fit(forecaster: Any = profile, source: Any = SOURCE, **options: Any) -> ompb.Calibrator:
    settings: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": 6} | options
    return ompb.Calibrator.fit(forecaster, source, **settings)


def broken(value: Any) -> Callable[[Floats], Any]:
    return lambda windows: np.full((len(windows), HORIZON, 2), value)


INFINITE = np.where(np.arange(200)[:, None] == 7, np.inf, SOURCE)

BAD_FITS: list[tuple[str, type[Exception], dict[str, Any]]] = [
    ("one dimension", errors.ShapeError, {"source": SOURCE[:, 0]}),
    ("three dimensions", errors.ShapeError, {"source": SOURCE[None]}),
    ("ragged", errors.ShapeError, {"source": [[1.0, 2.0], [3.0]]}),
    ("empty", errors.ShapeError, {"source": np.zeros((0, 2))}),
    ("words", errors.DtypeError, {"source": [["a", "b"]] * 50}),
    ("booleans", errors.DtypeError, {"source": SOURCE > 0}),
    ("complex numbers", errors.DtypeError, {"source": SOURCE + 1j}),
    ("infinite", errors.NotFiniteError, {"source": INFINITE}),
    ("too large for a square", errors.NotFiniteError, {"source": np.where(np.isinf(INFINITE), 1e160, INFINITE)}),
    ("too short", errors.TooShortError, {"source": SOURCE[:20]}),
    ("unseen leaves nothing to learn", errors.TooShortError, {"unseen": 195}),
    ("unseen too small", errors.TooShortError, {"unseen": 3}),
    ("unseen out of range", errors.OptionError, {"unseen": 1.5}),
    ("not a table", errors.InputError, {"source": object()}),
    ("frame without numbers", errors.DtypeError, {"source": pl.DataFrame({"a": ["x"] * 50})}),
    ("context", errors.OptionError, {"context": 0}),
    ("horizon", errors.OptionError, {"horizon": 2.5}),
    ("season", errors.OptionError, {"season": 1}),
    ("unknown option", errors.OptionError, {"gates": "shared"}),
    ("unknown gate", errors.OptionError, {"gate": "sideways"}),
    ("open gate onto nothing", errors.OptionError, {"gate": "open", "backbone_prior": 1.0}),
    ("an option of the wrong type", errors.OptionError, {"anchor": "much"}),
    ("unknown kind", errors.OptionError, {"kind": "gaussian"}),
    ("discount", errors.OptionError, {"discounts": (1.5,)}),
    ("no memory", errors.OptionError, {"discounts": (0.999, 0.1)}),
    ("discounts in words", errors.OptionError, {"discounts": "0.9"}),
    ("infinite evidence", errors.OptionError, {"evidence": np.inf}),
    ("no number", errors.OptionError, {"caution": None}),
    ("no discount", errors.OptionError, {"discounts": ()}),
    ("one draw", errors.OptionError, {"draws": 1}),
    ("delta", errors.OptionError, {"delta": 0.0}),
    ("stride", errors.OptionError, {"stride": 0}),
    ("ring", errors.OptionError, {"ring": 0}),
    ("anchor", errors.OptionError, {"anchor": -1.0}),
    ("profile", errors.OptionError, {"profile": "yes"}),
    ("forecaster of the wrong horizon", errors.ForecasterError, {"forecaster": lambda w: w[:, :3]}),
    ("forecaster without horizon axis", errors.ForecasterError, {"forecaster": lambda w: w[:, 0]}),
    ("forecaster returns NaN", errors.ForecasterError, {"forecaster": broken(np.nan)}),
    ("forecaster masks", errors.ForecasterError, {"forecaster": lambda w: np.ma.masked_greater(profile(w), 0)}),
    ("forecaster returns infinity", errors.ForecasterError, {"forecaster": broken(np.inf)}),
    ("forecaster returns words", errors.ForecasterError, {"forecaster": lambda w: [["a"]] * len(w)}),
    ("forecaster is a number", errors.ForecasterError, {"forecaster": 3}),
    ("forecaster does not take windows", errors.ForecasterError, {"forecaster": lambda: 1}),
]


@pytest.mark.parametrize(("kind", "arguments"), [b[1:] for b in BAD_FITS], ids=[b[0] for b in BAD_FITS])
def test_bad_fit(kind: type[Exception], arguments: dict[str, Any]) -> None:
    with pytest.raises(kind) as caught:
        fit(**arguments)
    assert isinstance(caught.value, errors.OmpbError)
    assert len(str(caught.value)) > 30  # says what was wrong, what is accepted, what to do


BAD_ROWS: list[tuple[str, type[Exception], Any]] = [
    ("too long", errors.ShapeError, np.zeros(3)),
    ("a number", errors.ShapeError, 1.0),
    ("a table", errors.ShapeError, np.zeros((1, 2))),
    ("empty", errors.ShapeError, []),
    ("words", errors.DtypeError, ["a", "b"]),
    ("none", errors.DtypeError, [None, 1.0]),
    ("infinite", errors.NotFiniteError, [np.inf, 0.0]),
]


@pytest.mark.parametrize(("kind", "row"), [b[1:] for b in BAD_ROWS], ids=[b[0] for b in BAD_ROWS])
def test_bad_row_leaves_the_stream_as_it_was(tmp_path: Path, kind: type[Exception], row: Any) -> None:
    stream = running()
    before = snapshot(stream, tmp_path)
    with pytest.raises(kind):
        stream.step(row)
    with pytest.raises(kind):
        stream.observe(stream.rows - 1, row)
    assert snapshot(stream, tmp_path) == before


@pytest.mark.parametrize("at", [-1, 30, 10_000, 2.0, True, "3"])
def test_rows_that_cannot_be_observed(tmp_path: Path, at: Any) -> None:
    stream = running()
    before = snapshot(stream, tmp_path)
    with pytest.raises(errors.StaleRowError):
        stream.observe(at, np.zeros(2))
    assert snapshot(stream, tmp_path) == before


def test_a_row_too_old_to_be_of_use(tmp_path: Path) -> None:
    stream = running(70)
    before = snapshot(stream, tmp_path)
    with pytest.raises(errors.StaleRowError, match="37 to 69"):
        stream.observe(36, np.zeros(2))
    assert snapshot(stream, tmp_path) == before
    stream.observe(37, np.zeros(2))


def test_a_forecaster_that_breaks_mid_stream_leaves_the_stream_as_it_was(tmp_path: Path) -> None:
    for fault in (broken(np.nan), broken(1e160), lambda w: w, lambda _: 1 / 0):
        stream = running()
        stream._forecaster = as_forecaster(fault)
        before = snapshot(stream, tmp_path)
        with pytest.raises(errors.ForecasterError):
            stream.step(TARGET[30])
        assert snapshot(stream, tmp_path) == before
        stream._forecaster = as_forecaster(profile)
        assert stream.step(TARGET[30]) is not None


def test_backtest_needs_a_window() -> None:
    with pytest.raises(errors.TooShortError):
        ompb.backtest(fit(), profile, TARGET[: CONTEXT - 1])


def test_backtest_wants_the_channels_of_the_source() -> None:
    frame = pd.DataFrame(TARGET, columns=["a", "b"])
    cal = fit(source=pd.DataFrame(SOURCE, columns=["a", "b"]))
    with pytest.raises(errors.ShapeError, match="without b and with c"):
        ompb.backtest(cal, profile, frame.rename(columns={"b": "c"}))
    with pytest.raises(errors.ShapeError, match=r"1 channel; accepted: 2 \(a, b\)"):
        ompb.backtest(cal, profile, TARGET[:, :1])
    named, by_place = ompb.backtest(cal, profile, frame), ompb.backtest(cal, profile, TARGET)
    np.testing.assert_array_equal(named.mean, by_place.mean)
    np.testing.assert_array_equal(ompb.backtest(cal, profile, frame[["b", "a"]]).mean, by_place.mean)
    np.testing.assert_array_equal(ompb.backtest(fit(), profile, frame).mean, by_place.mean)


def test_runs_refuse_levels_and_frames_that_do_not_exist() -> None:
    run = ompb.backtest(fit(), profile, TARGET[:20])
    for level in (0.0, 1.0, np.nan):
        with pytest.raises(errors.OptionError, match="inside"):
            run.interval(level)
    with pytest.raises(errors.OptionError, match="pandas, polars, pyarrow"):
        run.frame("excel")  # type: ignore[arg-type]


def test_masked_cells_are_missing() -> None:
    holes = SOURCE.copy()
    holes[20:24, 0] = np.nan
    masked = np.ma.masked_invalid(holes)
    masked.data[20:24, 0] = -9999
    assert fit(source=masked).source.base_variance.tobytes() == fit(source=holes).source.base_variance.tobytes()
    by_mask, by_nan = running(), running()
    by_mask.step(np.ma.masked_array([1.0, 2.0], mask=[True, False]))
    by_nan.step([np.nan, 2.0])
    following = [stream.step(TARGET[31]) for stream in (by_mask, by_nan)]
    assert following[0] is not None
    assert following[1] is not None
    np.testing.assert_array_equal(following[0].mean, following[1].mean)


@pytest.mark.parametrize("constant", [0.1, -7.7, 0.0, 1e12])
def test_a_constant_channel_may_begin_to_move(constant: float) -> None:
    """The deviation of 0.1 over many rows is not zero but a rounding error."""
    still = np.column_stack([SOURCE[:, 0], np.full(len(SOURCE), constant)])
    cal = fit(source=still)
    assert cal.scale[1] == 1.0
    stream = cal.stream(profile)
    for row in TARGET[:, 0]:
        forecast = stream.step([row, constant + 0.1])
    assert forecast is not None
    assert np.isfinite(forecast.interval(0.8)).all()
    assert forecast.certificate is not None
    assert forecast.certificate.source_risk < 1


def test_numpys_numbers_do_for_pythons(tmp_path: Path) -> None:
    plain = fit(anchor=100.0, unseen=60)
    cal = fit(context=np.int64(CONTEXT), horizon=np.int32(HORIZON), anchor=np.float32(100.0), unseen=np.int64(60))
    for number, one in enumerate((cal, plain)):
        one.save(tmp_path / str(number))
    assert (tmp_path / "0").read_bytes() == (tmp_path / "1").read_bytes()


def test_diagnose_says_what_it_lacks() -> None:
    with pytest.raises(errors.InputError, match="no certificates"):
        ompb.diagnose(ompb.backtest(fit(certificate=False), profile, TARGET))
    with pytest.raises(errors.InputError, match="complete"):
        ompb.diagnose(ompb.backtest(fit(), profile, TARGET[:CONTEXT]))


def test_tail_risk_needs_a_size() -> None:
    forecast = running().step(TARGET[30])
    assert forecast is not None
    assert forecast.certificate is not None
    with pytest.raises(errors.OptionError):
        forecast.certificate.tail_risk(0.0)


def test_frames_are_tables() -> None:
    columns = {"ds": np.arange(len(SOURCE)), "a": SOURCE[:, 0], "b": SOURCE[:, 1]}
    from_array = fit()
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        cal = fit(source=frame)
        assert cal.names == ("a", "b")
        assert cal.source.base_variance.tobytes() == from_array.source.base_variance.tobytes()


def test_forecasters_are_told_apart_by_their_class() -> None:
    class Model:
        def forecast(self, query: Query) -> Floats:
            return profile(query.windows)

    class Derived(Model, Forecaster):
        pass

    assert fit(Derived()).source.base_variance.tobytes() == fit().source.base_variance.tobytes()
    with pytest.raises(errors.ForecasterError, match=r"pass its method, model\.forecast"):
        fit(Model())


def test_files_that_are_not_ours(tmp_path: Path) -> None:
    cal = fit()
    path = tmp_path / "cal.ompb"
    with pytest.raises(errors.FormatError, match="no file"):
        ompb.Calibrator.load(path)
    path.write_bytes(b"not one of ours")
    with pytest.raises(errors.FormatError, match="not a readable"):
        ompb.Calibrator.load(path)
    cal.save(path)
    with pytest.raises(errors.FormatError, match="holds a calibrator"):
        ompb.Stream.load(path, cal, profile)
    running().save(tmp_path / "s.ompb")
    for other in (fit(discounts=(0.9, 0.99)), fit(evidence=11.0)):  # of other shapes, and of the same
        with pytest.raises(errors.FormatError, match="another calibrator"):
            ompb.Stream.load(tmp_path / "s.ompb", other, profile)
    damaged, whole = tmp_path / "damaged.ompb", path.read_bytes()
    middle = len(whole) // 2
    for content in (whole[:-200], whole[:middle] + bytes(255 - b for b in whole[middle:][:9]) + whole[middle + 9 :]):
        damaged.write_bytes(content)
        with pytest.raises(errors.FormatError):
            ompb.Calibrator.load(damaged)
    with pytest.raises(errors.FormatError):
        ompb.Calibrator.load(tmp_path)


def test_a_newer_version_is_refused_and_left_untouched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = tmp_path / "newer.ompb"
    with monkeypatch.context() as patched:
        patched.setattr(archive, "VERSION", archive.VERSION + 1)
        fit().save(newer)
    before = newer.read_bytes()
    with pytest.raises(errors.VersionError, match="Upgrade"):
        ompb.Calibrator.load(newer)
    assert newer.read_bytes() == before


def test_a_failed_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cal.ompb"
    cal = fit()
    cal.save(path)
    before = path.read_bytes()

    def full_disk(*_: Any, **__: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(OSError, match="no space"):
        cal.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["cal.ompb"]


def running(rows: int = 30) -> ompb.Stream:
    stream = fit().stream(profile)
    for row in TARGET[:rows]:
        stream.step(row)
    return stream


def snapshot(stream: ompb.Stream, folder: Path) -> bytes:
    stream.save(folder / "snapshot.ompb")
    return (folder / "snapshot.ompb").read_bytes()
