"""Cross-validation tables and backtests as recorded forecasts, anchored by time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ompb
from ompb.datasets.synthetic import shifted_stream
from ompb.errors import ForecasterError, InputError, OptionError, ShapeError, TimeOrderError, TooShortError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

CONTEXT, HORIZON, ROWS, EVERY = 24, 4, 300, 3
SOURCE, STREAM = shifted_stream("level", seed=0, source_rows=ROWS, target_rows=80, channels=2, season=12)
TIMES = np.datetime64("2024-01-01T00", "us") + np.arange(ROWS + 80) * np.timedelta64(1, "h")
VALUES = np.concatenate([SOURCE, STREAM])
CUTOFFS = np.arange(CONTEXT - 1, ROWS + 80 - HORIZON, EVERY)
NAMES = ("b", "a")  # channel 0 is b


def forecast_of(cutoff: Any) -> Any:
    """The last season again, (H, C)."""
    return VALUES[cutoff - 11 : cutoff - 11 + HORIZON]


def table() -> Any:
    """As StatsForecast.cross_validation gives it: sorted by series, then by cutoff."""
    lines = [
        {
            "unique_id": name,
            "ds": TIMES[cutoff + lead],
            "cutoff": TIMES[cutoff],
            "y": VALUES[cutoff + lead, channel],
            "Naive": forecast_of(cutoff)[lead - 1, channel],
            "Naive-lo-80": forecast_of(cutoff)[lead - 1, channel] - 1,
            "Naive-hi-80": forecast_of(cutoff)[lead - 1, channel] + 1,
            "Naive-lo-95.0": forecast_of(cutoff)[lead - 1, channel] - 2,
            "Naive-hi-95.0": forecast_of(cutoff)[lead - 1, channel] + 2,
            "Other": 0.0,
        }
        for name, channel in (("a", 1), ("b", 0))
        for cutoff in CUTOFFS
        for lead in range(1, HORIZON + 1)
    ]
    return pd.DataFrame(lines)


EXPECTED = np.stack([forecast_of(cutoff) for cutoff in CUTOFFS])


@pytest.mark.parametrize("form", ["pandas", "indexed", "polars", "shuffled"])
def test_a_cross_validation_table_is_read_by_time(form: str) -> None:
    forms = {
        "pandas": table(),
        "indexed": table().set_index("unique_id"),
        "polars": pl.from_pandas(table()),
        "shuffled": table().sample(frac=1.0, random_state=0),
    }
    recorded = ompb.Recorded.from_frame(forms[form], "Naive", names=NAMES)
    np.testing.assert_array_equal(recorded.forecasts, EXPECTED)
    np.testing.assert_array_equal(recorded.times, TIMES[CUTOFFS])


def test_the_ends_of_intervals_are_quantiles() -> None:
    recorded = ompb.Recorded.from_frame(table(), "Naive", names=NAMES, levels=(80, 95))
    assert recorded.quantiles == (0.025, 0.1, 0.5, 0.9, 0.975)
    np.testing.assert_array_equal(recorded.forecasts, EXPECTED[..., None] + np.array([-2.0, -1.0, 0.0, 1.0, 2.0]))
    median = table().rename(columns={"Naive": "Naive-median"})
    assert ompb.Recorded.from_frame(median, "Naive-median", names=NAMES, levels=[80]).quantiles == (0.1, 0.5, 0.9)


def test_fewer_leads_can_be_kept() -> None:
    recorded = ompb.Recorded.from_frame(table(), "Naive", names=NAMES, horizon=2)
    np.testing.assert_array_equal(recorded.forecasts, EXPECTED[:, :2])


def test_a_cutoff_that_is_not_complete_is_silence() -> None:
    holes = table()
    holes.loc[5, "Naive"] = np.nan  # lead 2 of the second cutoff
    recorded = ompb.Recorded.from_frame(holes.drop(index=8), "Naive", names=NAMES)  # and lead 1 of the third
    spoken = recorded.speaks_at(CUTOFFS, TIMES[CUTOFFS])
    assert spoken.tolist() == [place not in (1, 2) for place in range(len(CUTOFFS))]


def test_it_serves_source_and_stream_and_no_other_times() -> None:
    recorded = ompb.Recorded.from_frame(table(), "Naive", names=NAMES)
    sizes: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": 12}
    ompb.check(recorded, SOURCE, times=TIMES[:ROWS], **sizes)
    cal = ompb.Calibrator.fit(recorded, SOURCE, times=TIMES[:ROWS], **sizes)
    run = ompb.backtest(cal, recorded, STREAM, times=TIMES[ROWS:])
    known = [cutoff for cutoff in CUTOFFS if cutoff >= ROWS + CONTEXT - 1]
    np.testing.assert_array_equal(run.origins + ROWS, known)
    np.testing.assert_array_equal(run.base, [forecast_of(cutoff) for cutoff in known])
    later = TIMES[ROWS:] + np.timedelta64(365, "D")
    with pytest.raises(TooShortError, match="speaks at none"):
        ompb.backtest(cal, recorded, STREAM, times=later)
    with pytest.raises(ForecasterError, match="asked for without times"):
        ompb.Calibrator.fit(recorded, SOURCE, **sizes)


def test_our_own_run_comes_back() -> None:
    forecaster = ompb.Ridge.fit(SOURCE, CONTEXT, HORIZON)
    cal = ompb.Calibrator.fit(forecaster, SOURCE, context=CONTEXT, horizon=HORIZON, season=12, times=TIMES[:ROWS])
    run = ompb.backtest(cal, forecaster, STREAM, times=TIMES[ROWS:])
    recorded = ompb.Recorded.from_frame(run.frame("polars"), "base", names=run.names)
    np.testing.assert_array_equal(recorded.forecasts, run.base)
    np.testing.assert_array_equal(recorded.times, TIMES[ROWS:][run.origins])


class Series:
    """What darts calls a TimeSeries, as far as it is used."""

    is_stochastic = False

    def __init__(self, cutoff: Any) -> None:
        self.cutoff = cutoff

    def to_dataframe(self) -> Any:
        index = pd.DatetimeIndex(TIMES[self.cutoff + 1 : self.cutoff + 1 + HORIZON])
        return pd.DataFrame(forecast_of(self.cutoff), index=index, columns=list(NAMES))


@pytest.mark.parametrize("darts", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
def test_a_list_of_backtests_is_read_by_time(darts: bool, backwards: bool) -> None:
    cutoffs = CUTOFFS[::-1] if backwards else CUTOFFS
    given = [Series(cutoff) if darts else Series(cutoff).to_dataframe() for cutoff in cutoffs]
    recorded = ompb.Recorded.from_frame(given)
    np.testing.assert_array_equal(recorded.forecasts, EXPECTED)
    np.testing.assert_array_equal(recorded.times, TIMES[CUTOFFS])
    turned = ompb.Recorded.from_frame(given, names=("a", "b"), horizon=3)
    np.testing.assert_array_equal(turned.forecasts, EXPECTED[:, :3, ::-1])


def test_months_are_steps_of_months() -> None:
    months = pd.date_range("2024-01-31", periods=12, freq="ME")
    given = [pd.DataFrame({"x": [1.0, 2.0]}, index=months[first : first + 2]) for first in (1, 2, 8)]
    recorded = ompb.Recorded.from_frame(given)
    np.testing.assert_array_equal(recorded.times, months[[0, 1, 7]].to_numpy().astype("datetime64[us]"))


def drop(*names: str) -> Any:
    return table().drop(columns=list(names))


@pytest.mark.parametrize(
    ("given", "options", "error", "words"),
    [
        (table(), {"column": "Naive"}, OptionError, r"2 series \(a, b\); pass names="),
        (table(), {"names": NAMES}, OptionError, "choose one of: Naive, Other"),
        (table(), {"column": "Naiv", "names": NAMES}, OptionError, "'Naiv' is not in the table"),
        (table(), {"column": "Naive", "names": ("a", "c")}, OptionError, "the series of the table, a, b"),
        (table(), {"column": "Naive", "names": NAMES, "levels": [90]}, OptionError, r"no Naive-lo-90\); there: \[80"),
        (drop("cutoff"), {"column": "Naive"}, ShapeError, "needed: unique_id, ds, cutoff"),
        (pd.concat([table(), table()[:1]]), {"column": "Naive", "names": NAMES}, ShapeError, "two rows for lead 1 of"),
        (table().assign(cutoff=table()["ds"]), {"column": "Naive", "names": NAMES}, TimeOrderError, "must lie after"),
        (table().assign(cutoff=7), {"column": "Naive", "names": NAMES}, TimeOrderError, "not of one kind"),
        (table()[table()["ds"] != TIMES[CONTEXT]][:3], {"column": "Naive"}, ShapeError, "no cutoff of the table has"),
        (np.zeros((3, 3)), {}, InputError, "the table is a ndarray"),
        ([], {}, OptionError, "pass one or more"),
        ([Series(30)], {"column": "Naive"}, OptionError, "without column="),
        ([pd.DataFrame({"x": [1.0]})], {}, TimeOrderError, "forecast 0 has no times"),
    ],
)
def test_what_is_wrong_is_told(given: Any, options: Any, error: Any, words: str) -> None:
    with pytest.raises(error, match=words):
        ompb.Recorded.from_frame(given, **options)


def test_forecasts_of_other_channels_or_of_samples_are_refused() -> None:
    other = Series(50).to_dataframe().rename(columns={"a": "c"})
    with pytest.raises(ShapeError, match="forecast 1 has the channels b, c, the first b, a"):
        ompb.Recorded.from_frame([Series(40), other])
    samples = Series(40)
    samples.is_stochastic = True
    with pytest.raises(ShapeError, match="holds samples"):
        ompb.Recorded.from_frame([samples])
