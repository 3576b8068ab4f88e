from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_tables import UNKNOWN, csv, daily, days

from ompb.errors import (
    DtypeError,
    InputError,
    NotFiniteError,
    OptionError,
    TimeOrderError,
    TooShortError,
)
from ompb.tables import Reading, Table, forecasts, read_forecasts, read_table, write_table
from ompb.tables.lines import Where
from ompb.tables.stamps import Stamps, stamps_of


def test_forecasts_lie_at_their_origin_lead_and_channel(tmp_path: Path) -> None:
    text = (
        "unique_id,ds,cutoff,y_hat\n"
        "b,2024-01-02,2024-01-01,1.5\n"
        "a,2024-01-03,2024-01-01,2.5\n"
        "a,2024-01-04,2024-01-03,NA\n"
        "a,2024-01-06,2024-01-04,3.5\n"  # two days after the end of the table
    )
    expected = np.full((4, 2, 2), UNKNOWN)
    expected[0, 0, 1], expected[0, 1, 0], expected[3, 1, 0] = 1.5, 2.5, 3.5
    np.testing.assert_array_equal(read_forecasts(csv(tmp_path, text), daily(4), 2).forecasts, expected)


def test_one_channel_needs_no_unique_id(tmp_path: Path) -> None:
    forecasts = read_forecasts(
        csv(tmp_path, "ds,cutoff,y_hat\n2024-01-02,2024-01-01,7\n"), daily(2, ("a",)), 1
    ).forecasts
    np.testing.assert_array_equal(forecasts, [[[7.0]], [[UNKNOWN]]])


@given(st.data())
def test_forecasts_come_back_as_written_in_any_order(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    table = daily(6)
    cells = [(t, h, c) for t in range(6) for h in range(3) for c in range(2)]
    chosen = data.draw(st.lists(st.sampled_from(cells), unique=True, min_size=1))
    stamps = days(*range(1, 10))
    expected = np.full((6, 3, 2), UNKNOWN)
    for number, cell in enumerate(chosen):
        expected[cell] = number
    columns = {
        "unique_id": np.array([table.channels[c] for _, _, c in chosen]),
        "ds": stamps[[t + h + 1 for t, h, _ in chosen]],
        "cutoff": stamps[[t for t, _, _ in chosen]],
        "y_hat": np.arange(len(chosen), dtype=np.float64),
    }
    path = tmp_path_factory.mktemp("forecasts") / data.draw(st.sampled_from(["f.csv", "f.parquet"]))
    write_table(path, columns)
    np.testing.assert_array_equal(read_forecasts(path, table, 3).forecasts, expected)


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        ("z,2024-01-02,2024-01-01,1", InputError, "unique_id 'z'; the table has the channels a, b"),
        (
            "a,2024-01-02,2023-12-31,1",
            TimeOrderError,
            "cutoff = 2023-12-31T00:00:00 is not on the table's steps",
        ),
        ("a,2024-01-06,2024-01-05,1", TimeOrderError, "cutoff = 2024-01-05T00:00:00"),
        ("a,2024-01-02T12:00,2024-01-01,1", TimeOrderError, "ds = 2024-01-02T12:00:00"),
        ("a,2024-01-02,2024-01-02,1", TimeOrderError, "has lead 0; leads begin with 1"),
        (
            "a,2024-01-02,2024-01-01,1\na,2024-01-02,2024-01-01,2",
            TimeOrderError,
            "in line 3 of the file repeats one of the same series with another value; keep one of them",
        ),
        ("a,2,1,1", DtypeError, "'cutoff' holds integers and the table's times are dates"),
        ("a,2024-01-02,2024-01-01,inf", NotFiniteError, "'y_hat' is infinite"),
    ],
)
def test_bad_forecasts_are_refused(tmp_path: Path, rows: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_forecasts(csv(tmp_path, f"unique_id,ds,cutoff,y_hat\n{rows}\n"), daily(4), 2)


def test_copied_lines_are_left_out_and_noted_as_those_of_tables_are(tmp_path: Path) -> None:
    lines = ["0,a,2024-01-02,2024-01-01,1", "1,b,2024-01-02,2024-01-01,NA", "2,a,2024-01-03,2024-01-02,4"]
    copies = ["3,b,2024-01-02,2024-01-01,NA", "4,a,2024-01-02,2024-01-01,1", "5,a,2024-01-02,2024-01-01,1"]
    found, once = (
        read_forecasts(csv(tmp_path, "\n".join([",unique_id,ds,cutoff,y_hat", *text])), daily(4), 2)
        for text in ([*lines, *copies], lines)
    )
    np.testing.assert_array_equal(found.forecasts, once.forecasts)
    assert found.notes == (*once.notes, "table.csv: 3 lines left out: copies of another one.")


def test_both_hours_of_autumn_are_no_copies(tmp_path: Path) -> None:
    rows = "\n".join(f"2024-10-27T{hour},1" for hour in ("01:00", "02:00", "02:00", "03:00"))
    table = read_table(csv(tmp_path, f"date,a\n{rows}\n"), Reading(timezone="Europe/Berlin"))
    lines = "\n".join(f"2024-10-27T{hour},2024-10-27T01:00,7" for hour in ("02:00", "02:00", "03:00"))
    found = read_forecasts(csv(tmp_path, f"ds,cutoff,y_hat\n{lines}\n", "mine.csv"), table, 3)
    assert (found.forecasts[0, :, 0].tolist(), found.notes) == ([7, 7, 7], ())


def test_forecasts_need_their_columns_a_horizon_and_a_step(tmp_path: Path) -> None:
    path = csv(tmp_path, "ds,cutoff,y_hat\n2024-01-02,2024-01-01,1\n")
    with pytest.raises(InputError, match="no column 'unique_id'"):
        read_forecasts(path, daily(4), 2)
    with pytest.raises(
        InputError, match=r"'table.csv' has no column 'ds', only time, a; .* needs unique_id .* and y_hat"
    ):
        read_forecasts(csv(tmp_path, "time,a\n2024-01-02,1\n"), daily(4), 2)
    path = csv(tmp_path, "ds,cutoff,y_hat\n2024-01-02,2024-01-01,1\n")
    with pytest.raises(OptionError, match="horizon = 0"):
        read_forecasts(path, daily(4, ("a",)), 0)
    with pytest.raises(TooShortError, match="1 rows; two are needed"):
        read_forecasts(path, daily(1, ("a",)), 1)
    with pytest.raises(InputError, match="no column 'y_hat', and no other column"):
        read_forecasts(csv(tmp_path, "ds,cutoff\n2024-01-02,2024-01-01\n"), daily(4, ("a",)), 2)


def test_the_tables_of_cross_validation_are_taken_as_they_are(tmp_path: Path) -> None:
    text = (
        ",unique_id,ds,cutoff,y,AutoETS,AutoETS-lo-80,AutoETS-hi-80\n"
        "0,a,2024-01-02,2024-01-01,9,1.5,1,2\n"
        "1,b,2024-01-03,2024-01-01,9,2.5,2,3\n"
    )
    expected = np.full((4, 2, 2), UNKNOWN)
    expected[0, 0, 0], expected[0, 1, 1] = 1.5, 2.5
    np.testing.assert_array_equal(read_forecasts(csv(tmp_path, text), daily(4), 2).forecasts, expected)
    named = read_forecasts(csv(tmp_path, text), daily(4), 2, column="AutoETS-lo-80")
    np.testing.assert_array_equal(named.forecasts, expected - 0.5)


def test_of_two_models_one_must_be_named(tmp_path: Path) -> None:
    path = csv(tmp_path, "ds,cutoff,Naive,ETS\n2024-01-02,2024-01-01,1,2\n")
    with pytest.raises(InputError, match="Naive, ETS may hold the forecasts; name the column with --model"):
        read_forecasts(path, daily(4, ("a",)), 2)
    assert read_forecasts(path, daily(4, ("a",)), 2, column="ETS").forecasts[0, 0, 0] == 2
    with pytest.raises(InputError, match="no column 'Theta'"):
        read_forecasts(path, daily(4, ("a",)), 2, column="Theta")


def test_longer_forecasts_lose_what_the_horizon_does_not_reach(tmp_path: Path) -> None:
    stamps = days(*range(1, 13))
    lines = [f"{stamps[t + h]},{stamps[t]},{10 * t + h}" for t in range(6) for h in range(1, 6)]
    path = csv(tmp_path, "\n".join(["ds,cutoff,y_hat", *lines]))
    found = read_forecasts(path, daily(6, ("a",)), 2)
    np.testing.assert_array_equal(found.forecasts[..., 0], [[10 * t + 1, 10 * t + 2] for t in range(6)])
    assert found.notes == ("table.csv: leads beyond the horizon of 2 are left out (18 lines).",)


def test_forecasts_made_once_a_day_of_an_hourly_table(tmp_path: Path) -> None:
    hours = np.datetime64("2024-01-01", "us") + np.arange(72) * np.timedelta64(1, "h")
    table = Table(np.zeros((72, 1)), hours, ("a",), "ds")
    lines = [f"{hours[t + h]},{hours[t]},{h}" for t in (23, 47) for h in range(1, 25)]
    found = read_forecasts(csv(tmp_path, "\n".join(["ds,cutoff,y_hat", *lines])), table, 24).forecasts[..., 0]
    assert np.flatnonzero(~np.isnan(found).any(axis=1)).tolist() == [23, 47]
    np.testing.assert_array_equal(found[23], np.arange(1, 25))


def test_forecasts_of_series_that_are_not_followed_are_noted(tmp_path: Path) -> None:
    path = csv(tmp_path, "unique_id,ds,cutoff,y_hat\na,2024-01-02,2024-01-01,1\nz,2024-01-02,2024-01-01,9\n")
    found = read_forecasts(path, daily(4), 2)
    assert np.nansum(found.forecasts) == 1
    assert found.notes == ("Forecasts of z are not used: the table has no such channel.",)


def test_forecasts_are_found_by_the_clock_of_the_table(tmp_path: Path) -> None:
    rows = "\n".join(f"2024-10-26T{hour:02d}:00:00+02:00,{hour}" for hour in range(6))
    table = read_table(csv(tmp_path, f"date,a\n{rows}\n"), Reading(timezone="Europe/Berlin"))
    for cutoff, ds in (("2024-10-26T02:00", "2024-10-26T03:00"), ("2024-10-26T00:00Z", "2024-10-26T03:00+02:00")):
        path = csv(tmp_path, f"ds,cutoff,y_hat\n{ds},{cutoff},7\n", "mine.csv")
        assert read_forecasts(path, table, 2).forecasts[2, 0, 0] == 7


def test_forecasts_with_an_offset_beside_a_table_without_one_are_told(tmp_path: Path) -> None:
    lines = "ds,cutoff,y_hat\n2024-01-02T00:00{0},2024-01-01T00:00{0},7\n"
    read = read_forecasts(csv(tmp_path, lines.format("Z")), daily(2, ("a",)), 1)
    assert read.forecasts[0, 0, 0] == 7
    assert "have offsets of UTC and those of the table have none" in read.notes[0]
    assert read_forecasts(csv(tmp_path, lines.format("")), daily(2, ("a",)), 1).notes == ()


def test_times_are_read_once_however_many_series_there_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(column: pl.Series, where: Where) -> Stamps:
        read.append(column.name)
        return stamps_of(column, where)

    monkeypatch.setattr(forecasts, "stamps_of", counted)
    text = "".join(f"{name},2024-01-0{2 + lead},2024-01-01,{lead}.5\n" for lead in (0, 1) for name in "cab")
    path = csv(tmp_path, f"unique_id,ds,cutoff,y_hat\n{text}")
    together = read_forecasts(path, daily(4, ("a", "b", "c")), 2).forecasts
    read.clear()
    lines = forecasts.ForecastLines.read(path).by_series()
    for channel, name in enumerate("abc"):
        alone = lines[name].of(daily(4, (name,)), 2).forecasts
        np.testing.assert_array_equal(alone, together[..., channel : channel + 1])
    assert read == ["cutoff", "ds"]
