"""The user's own tables: time series and recorded forecasts, in the form in which people have them."""

from ompb.tables.clock import Clock
from ompb.tables.forecasts import ForecastLines, RecordedTable, read_forecasts
from ompb.tables.options import Reading
from ompb.tables.reading import read_series, read_table
from ompb.tables.table import Covariates, Table, common_channels, regular, split_row, with_future, without_empty
from ompb.tables.writing import write_table

__all__ = [
    "Clock",
    "Covariates",
    "ForecastLines",
    "Reading",
    "RecordedTable",
    "Table",
    "common_channels",
    "read_forecasts",
    "read_series",
    "read_table",
    "regular",
    "split_row",
    "with_future",
    "without_empty",
    "write_table",
]
