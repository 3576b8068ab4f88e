"""Hourly weather of Miami (90 % source, 10 % "id"), Atlanta ("ood_near") and New York ("ood_far").

Two sets that are never mixed up. ``weather-5k`` is the paper's: three stations of WEATHER-5K, 2014 to 2023, one CSV
each, named after the station. ``weather-stand-in`` is not: the same cities in other years and from other sensors, shown
as "weather (stand-in)" in every table.

*What is known of the WEATHER-5K layout.* The public code of that data set reads the columns DATE, TMP, DEW, WND_ANGLE,
WND_RATE and SLP, hourly from 2014-01-01 00:00:00 to 2023-12-31 23:00:00; the 87,648 rows give exactly the paper's
78,764 and 8,646 windows at horizon 24. The paper has a sixth channel that it does not name. TIME_DIFF is taken for it,
as the only other measured number; this, like the file as a whole, has not been checked against a real file.

*The stand-in's files* are joined from the Kaggle set historical-hourly-weather-data, one CSV per city with the columns
of ``STAND_IN_CHANNELS`` and date; the dew point is derived from temperature and humidity.
"""

from __future__ import annotations

from pathlib import Path

from ompb.datasets.public import PublicSet, read_hourly
from ompb.datasets.splits import BenchmarkData, hourly_sites
from ompb.tables import Table

WEATHER_5K_CHANNELS = ("TMP", "DEW", "WND_ANGLE", "WND_RATE", "SLP", "TIME_DIFF")
STAND_IN_CHANNELS = (
    "temperature_C",
    "dew_point_C_derived",
    "humidity_pct",
    "pressure_hPa",
    "wind_direction_deg",
    "wind_speed_ms",
)


def _read_weather_5k(path: Path) -> Table:
    return read_hourly(path, "DATE", WEATHER_5K_CHANNELS)


def _read_stand_in(path: Path) -> Table:
    return read_hourly(path, "date", STAND_IN_CHANNELS)


def _build_weather_5k(miami: Table, atlanta: Table, new_york: Table) -> BenchmarkData:
    return hourly_sites("weather-5k", 90, miami, {"ood_near": atlanta, "ood_far": new_york})


def _build_stand_in(miami: Table, atlanta: Table, new_york: Table) -> BenchmarkData:
    return hourly_sites("weather (stand-in)", 90, miami, {"ood_near": atlanta, "ood_far": new_york})


WEATHER_5K = PublicSet(
    name="weather-5k",
    patterns=("72202012839.csv", "72219013874.csv", "72503014732.csv"),
    origin="the WEATHER-5K release (repository WEATHER-5K of taohan10200 on GitHub)",
    read=_read_weather_5k,
    build=_build_weather_5k,
)
STAND_IN = PublicSet(
    name="weather-stand-in",
    patterns=("weather_Miami*.csv", "weather_Atlanta*.csv", "weather_NewYork*.csv"),
    origin=(
        "the Kaggle set historical-hourly-weather-data, joined to one CSV per city with the columns "
        f"date, {', '.join(STAND_IN_CHANNELS)}"
    ),
    read=_read_stand_in,
    build=_build_stand_in,
)
