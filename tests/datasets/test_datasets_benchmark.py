from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl
import pytest

from ompb.datasets import etth, ili, weather
from ompb.datasets.benchmark import NAMES, BenchmarkData, from_table, load, public_set, window_count
from ompb.datasets.public import VARIABLE, data_folder
from ompb.errors import FormatError, InputError, OptionError, TimeOrderError, TooShortError
from ompb.metrics.shift import ks
from ompb.tables import Table
from ompb.types import Floats

Real: TypeAlias = Callable[[str], list[Table]]


@pytest.fixture
def real(data_dir: Path) -> Real:
    """The tables of a public data set as they stand."""

    def tables(name: str) -> list[Table]:
        missing = public_set(name).missing(data_dir)
        if missing:
            pytest.skip(f"{name}: {', '.join(missing)} not in {data_dir}")
        return list(public_set(name).tables(data_dir).values())

    return tables


@pytest.fixture
def real_data(real: Real) -> Callable[[str], BenchmarkData]:
    return lambda name: public_set(name).build(*real(name))


def hours(count: int, start: str = "2014-01-01") -> list[str]:
    stamps = np.datetime64(start, "h") + np.arange(count)
    return [str(stamp.astype("datetime64[s]")).replace("T", " ") for stamp in stamps]


def write_hourly(path: Path, time: str, channels: tuple[str, ...], values: Floats) -> None:
    pl.DataFrame({time: hours(len(values)), **dict(zip(channels, values.T, strict=True))}).fill_nan(None).write_csv(
        path
    )


def random_rows(rows: int, channels: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).standard_normal((rows, channels)).round(4)


def write_etth(folder: Path, rows: int = 1000) -> tuple[Floats, Floats]:
    values = random_rows(rows, 7, 1), random_rows(rows, 7, 2)
    for number, table in enumerate(values, start=1):
        write_hourly(folder / f"ETTh{number}.csv", "date", etth.CHANNELS, table)
    return values


# Real data


def test_etth_has_the_windows_of_the_paper(real_data: Callable[[str], BenchmarkData]) -> None:
    data = real_data("etth")
    assert (data.name, len(data.channels), data.context, data.season) == ("etth", 7, 96, 24)
    assert data.source.shape == (13_936, 7)
    assert {h: data.counts(h)["source"] for h in (24, 96)} == {24: 13_817, 96: 13_745}
    tested = {24: 3365, 48: 3341, 96: 3293, 192: 3197, 336: 3053, 720: 2669}
    assert data.horizons == tuple(tested)
    for horizon, count in tested.items():
        for split in ("id", "ood"):
            assert window_count(len(data.stream(split, horizon)), 96, horizon) == count


def test_etth_is_judged_on_the_first_rows_of_the_other_transformer(
    real: Real, real_data: Callable[[str], BenchmarkData]
) -> None:
    first, second = (table.values for table in real("etth"))
    data = real_data("etth")
    np.testing.assert_array_equal(data.source, first[:13_936])
    np.testing.assert_array_equal(data.stream("id", 96), first[13_936:])
    np.testing.assert_array_equal(data.stream("ood", 96), second[:3484])
    np.testing.assert_array_equal(data.streams["ood"], second)


def test_ili_parts(real_data: Callable[[str], BenchmarkData]) -> None:
    data = real_data("ili")
    assert (data.name, len(data.channels), data.context, data.season) == ("ili", 11, 24, 52)
    assert [len(rows) for rows in (data.source, data.streams["id"])] == [500, 126]
    assert [tuple(data.counts(h).values()) for h in data.horizons] == [(453, 79, 79), (429, 55, 55), (405, 31, 31)]


def test_ili_missing_ages_take_the_source_mean(real: Real, real_data: Callable[[str], BenchmarkData]) -> None:
    (table,) = real("ili")
    data = real_data("ili")
    column = data.channels.index("AGE 25-64")
    raw = table.values[table.times >= 200_900][:500, column]
    assert np.isnan(raw).sum() == 500 - 39
    for rows in (data.source[39:], *data.streams.values()):
        np.testing.assert_allclose(rows[:, column], raw[:39].mean())
        assert np.isfinite(rows).all()


def test_weather_stand_in_says_so(real_data: Callable[[str], BenchmarkData]) -> None:
    data = real_data("weather-stand-in")
    assert (data.name, len(data.channels), data.context, data.season) == ("weather (stand-in)", 6, 96, 24)
    assert data.counts(24) == {"source": 37_918, "id": 4108, "ood_near": 4108, "ood_far": 4108}
    assert all(np.isfinite(rows).all() for rows in (data.source, *data.streams.values()))


def mean_ks(a: Floats, b: Floats) -> float:
    return float(np.mean([ks(x, y) for x, y in zip(a.T, b.T, strict=True)]))


@pytest.mark.parametrize(
    ("name", "pair", "distance"),
    [
        ("etth", (0, 1), 0.751),
        ("weather-stand-in", (0, 1), 0.284),
        ("weather-stand-in", (0, 2), 0.352),
        ("weather-stand-in", (1, 2), 0.154),
    ],
)
def test_distance_between_sites(real: Real, name: str, pair: tuple[int, int], distance: float) -> None:
    tables = real(name)
    a, b = (tables[place].values for place in pair)
    assert mean_ks(a, b) == pytest.approx(distance, abs=5e-4)


def test_distance_between_the_years_of_ili(real_data: Callable[[str], BenchmarkData]) -> None:
    data = real_data("ili")
    before = np.concatenate([data.source, data.streams["id"]])
    assert mean_ks(before, data.streams["ood"]) == pytest.approx(0.62, abs=5e-3)


# Layouts, on small files


def test_weather_5k_layout(tmp_path: Path) -> None:
    channels = weather.WEATHER_5K_CHANNELS
    for number, station in enumerate(public_set("weather-5k").patterns):
        write_hourly(tmp_path / station, "DATE", channels, random_rows(2000, 6, number))
        frame = pl.read_csv(tmp_path / station, infer_schema=False)
        extra = [pl.lit("[1 1 1 1 1]").alias("MASK"), pl.lit("-80.3").alias("LONGITUDE")]
        frame.select("DATE", *extra, *channels[::-1]).write_csv(tmp_path / station)
    data = load("weather-5k", tmp_path)
    assert data.name == "weather-5k"
    assert data.channels == channels
    np.testing.assert_array_equal(data.source, random_rows(2000, 6, 0)[:1800])
    np.testing.assert_array_equal(data.streams["ood_far"], random_rows(2000, 6, 2))


def test_ten_years_of_weather_give_the_windows_of_the_paper() -> None:
    source = 87_648 * 90 // 100
    assert (window_count(source, 96, 24), window_count(87_648 - source, 96, 24)) == (78_764, 8646)


def ili_text(years: range, cell: Callable[[int, str], str], title: str = "") -> str:
    lines = [
        f"National,X,{year},{week}," + ",".join(cell(year, channel) for channel in ili.CHANNELS)
        for year in years
        for week in range(1, 53)
    ]
    return "\n".join([*([title] if title else []), "REGION TYPE,REGION,YEAR,WEEK," + ",".join(ili.CHANNELS), *lines])


def test_ili_as_cdc_hands_it_out(tmp_path: Path) -> None:
    def cell(year: int, channel: str) -> str:
        return "X" if channel == "AGE 25-64" or (channel == "AGE 65" and year % 2) else str(year)

    title = "PERCENTAGE OF VISITS FOR INFLUENZA-LIKE-ILLNESS REPORTED BY SENTINEL PROVIDERS"
    (tmp_path / "ILINet.csv").write_text(ili_text(range(2007, 2024), cell, title))
    data = load("ili", tmp_path)
    assert data.source[0, 0] == 2009
    assert data.streams["ood"][0, 0] == 2021
    known = data.source[:, data.channels.index("ILITOTAL")]
    expected = known[known % 2 == 0].mean()
    np.testing.assert_allclose(data.streams["ood"][:52, data.channels.index("AGE 65")], expected)
    assert not data.streams["ood"][:, data.channels.index("AGE 25-64")].any()  # nothing is known in the source


def test_hours_left_out_and_empty_cells_hold_the_last_value(tmp_path: Path) -> None:
    first, second = write_etth(tmp_path)
    second[0, 3], second[5, 1] = np.nan, np.nan
    write_hourly(tmp_path / "ETTh2.csv", "date", etth.CHANNELS, second)
    lines = (tmp_path / "ETTh2.csv").read_text().splitlines()
    (tmp_path / "ETTh2.csv").write_text("\n".join(lines[:8] + lines[9:]))  # data row 7 is gone
    rows = load("etth", tmp_path).streams["ood"]
    assert rows.shape == second.shape
    np.testing.assert_array_equal(rows[7], second[6])
    assert rows[5, 1] == second[4, 1]
    assert rows[0, 3] == pytest.approx(first[:800, 3].mean())


# What is refused


def test_a_missing_file_says_where_to_get_it(tmp_path: Path) -> None:
    words = {"etth": "ETDataset", "ili": "FluView", "weather-5k": "WEATHER-5K", "weather-stand-in": "Kaggle"}
    assert set(words) == set(NAMES)
    for name, word in words.items():
        with pytest.raises(InputError) as caught:
            load(name, tmp_path)
        for part in (name, public_set(name).patterns[0], str(tmp_path), word, "--folder", VARIABLE):
            assert part in str(caught.value)


def test_two_files_for_one_are_refused(tmp_path: Path) -> None:
    for name in ("ILINet.csv", "ILINet_2020.csv"):
        (tmp_path / name).touch()
    with pytest.raises(InputError, match=r"ILINet\.csv, ILINet_2020\.csv; keep one"):
        load("ili", tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "error", "words"),
    [
        ("OT", "oil", FormatError, "no column 'OT'"),
        ("2014-01-01 03:00:00", "", FormatError, "None in column 'date'"),
        ("2014-01-01 03:00:00", "03:00", FormatError, "'03:00' in column 'date'"),
        ("2014-01-01 03:00:00", "2014-01-01 02:00:00", TimeOrderError, "each must be later"),
        ("2014-01-01 03:00:00", "2014-01-01 03:30:00", TimeOrderError, "off the grid"),
        (":00,", ":00,high", FormatError, "in column 'HUFL'; it must hold numbers"),
    ],
)
def test_another_layout_is_refused(tmp_path: Path, old: str, new: str, error: type[Exception], words: str) -> None:
    write_etth(tmp_path)
    path = tmp_path / "ETTh1.csv"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(error, match=words):
        load("etth", tmp_path)


@pytest.mark.parametrize(("text", "error"), [("", FormatError), ("date," + ",".join(etth.CHANNELS), TooShortError)])
def test_files_without_rows_are_refused(tmp_path: Path, text: str, error: type[Exception]) -> None:
    write_etth(tmp_path)
    (tmp_path / "ETTh1.csv").write_text(text)
    with pytest.raises(error):
        load("etth", tmp_path)


def test_ili_needs_one_region_and_its_years(tmp_path: Path) -> None:
    path = tmp_path / "ILINet.csv"
    text = ili_text(range(2009, 2022), lambda year, _: str(year))
    path.write_text("\n".join([text, *text.splitlines()[1:]]))
    with pytest.raises(TimeOrderError, match="keep one site"):
        load("ili", tmp_path)
    path.write_text(ili_text(range(2009, 2021), lambda year, _: str(year)))
    with pytest.raises(TooShortError, match="ood part of ili has no row"):
        load("ili", tmp_path)
    path.write_text(text.replace(",2009,1,", ",2009,X,", 1))
    with pytest.raises(FormatError, match="without YEAR or WEEK"):
        load("ili", tmp_path)


def test_unknown_names_lengths_and_splits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no data set 'weather'; accepted: etth, ili, weather-5k, weather-stand-in"):
        load("weather", tmp_path)
    write_etth(tmp_path)
    data = load("etth", tmp_path)
    with pytest.raises(OptionError, match="no split 'far'; accepted: id, ood"):
        data.stream("far", 24)
    with pytest.raises(TooShortError, match="has 200 rows, too few for a window of 96 \\+ 105 rows"):
        data.stream("id", 105)
    assert len(data.stream("id", 104)) == 200
    with pytest.raises(OptionError, match="horizon = 0"):
        data.stream("id", 0)


def test_folder_from_argument_variable_or_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert data_folder() == Path("data")
    monkeypatch.setenv(VARIABLE, "elsewhere")
    assert data_folder() == Path("elsewhere")
    assert data_folder("here") == Path("here")


# A table of one's own


def test_any_table_becomes_benchmark_data(tmp_path: Path) -> None:
    values = random_rows(300, 2)
    values[250, 0] = np.nan
    write_hourly(tmp_path / "load.csv", "when", ("a", "b"), values)
    data = from_table(tmp_path / "load.csv", "2014-01-09", context=48, season=None)
    assert (data.name, data.channels, data.horizons) == ("load", ("a", "b"), ())
    np.testing.assert_array_equal(data.source, values[:192])
    assert data.stream("target", 12)[58, 0] == values[249, 0]
    assert data.counts(12) == {"source": 133, "target": 49}


def test_a_context_beyond_the_source_is_refused(tmp_path: Path) -> None:
    write_hourly(tmp_path / "load.csv", "when", ("a",), random_rows(50, 1))
    with pytest.raises(OptionError, match="context = 20 does not fit into the 20 source rows"):
        from_table(tmp_path / "load.csv", "20", context=20, season=24)
