"""The numbers that the paper prints, digit for digit, and what speaks against some of them.

They lie as CSV files in the folder ``numbers``. The column "where" of doubts.csv says which numbers a doubt is about:
``table=a|b metric=mae`` are those of table a or b whose metric is mae. Names of data sets, splits and methods are the
paper's: "weather", "ood_near", and "ompb" for the method that is "ompb-paper" here.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TypeAlias

from ompb.errors import OptionError

Row: TypeAlias = Mapping[str, str]
Accuracy: TypeAlias = "Mapping[tuple[str, str, str, int, str, str], Number]"

WIDE = {  # files with a column for each metric
    "accuracy": ("mae", "mse"),
    "probabilistic": ("nll", "crps", "cov80", "cov95", "width80", "width95", "ece"),
}


@dataclass(frozen=True, slots=True)
class Number:
    """One printed number."""

    value: str  # as printed
    doubt: str | None = None  # why not to trust it

    def __float__(self) -> float:
        return float(self.value)


@cache
def accuracy(table: str) -> Accuracy:
    """MAE and MSE of a table, by data set, backbone, method, horizon, split and metric."""
    return {
        (row["dataset"], row["backbone"], row["method"], int(row["horizon"]), row["split"], row["metric"]): number
        for row, number in _of_table("accuracy", table)
    }


@cache
def probabilistic() -> Mapping[tuple[str, str, str, str, str], Number]:
    """Scores of laws, by data set, backbone, split, method and metric; the paper does not say at which horizon."""
    return {
        (row["dataset"], row["backbone"], row["split"], row["method"], row["metric"]): number
        for row, number in _numbers("probabilistic")
    }


@cache
def diagnostics(table: str) -> Mapping[tuple[str, str, str], Number]:
    """Bounds, correlations and distances of a table, by data set, subject and metric."""
    return {(row["dataset"], row["subject"], row["metric"]): number for row, number in _of_table("diagnostics", table)}


@cache
def sensitivity(table: str) -> Mapping[tuple[str, str], Number]:
    """What a sweep on ETTh2 (TCN, 96 rows) found, by the parameter's value and metric."""
    return {(row["parameter_value"], row["metric"]): number for row, number in _of_table("sensitivity", table)}


@cache
def trainable() -> Mapping[tuple[str, str, str], Number]:
    """Weights of the backbone that move online, by data set, backbone and method."""
    return _by_method("trainable")


@cache
def epochs_chosen() -> Mapping[tuple[str, str, str], Number]:
    """The epoch behind each row that compares two ways to choose it, by data set, backbone and method."""
    return _by_method("epochs_chosen")


@cache
def epochs_won() -> Mapping[tuple[str, str, int], Number]:
    """How many results are said to be best at an epoch, by data set, backbone and epoch."""
    return {(row["dataset"], row["backbone"], int(row["epoch"])): number for row, number in _numbers("epochs_won")}


def _by_method(name: str) -> dict[tuple[str, str, str], Number]:
    return {(row["dataset"], row["backbone"], row["method"]): number for row, number in _numbers(name)}


def _of_table(name: str, table: str) -> list[tuple[Row, Number]]:
    numbers = _numbers(name)
    found = [(row, number) for row, number in numbers if row["table"] == table]
    if not found:
        accepted = ", ".join(dict.fromkeys(row["table"] for row, _ in numbers))
        raise OptionError(f"the paper has no table {table!r} of this kind; accepted: {accepted}.")
    return found


@cache
def _numbers(name: str) -> list[tuple[Row, Number]]:
    """Every number of a file, with what it is about."""
    doubts = [(_selection(row["where"]), row["doubt"]) for row in _rows("doubts") if row["numbers"] == name]
    found = []
    for row in _single(name):
        against = [doubt for where, doubt in doubts if all(row[field] in values for field, values in where.items())]
        found.append((row, Number(row["value"], " ".join(against) or None)))
    return found


def _single(name: str) -> list[Row]:
    """The rows of a file, one number each."""
    rows = _rows(name)
    if name not in WIDE:
        return rows
    return [{**row, "metric": metric, "value": row[metric]} for row in rows for metric in WIDE[name]]


def _rows(name: str) -> list[Row]:
    text = files("ompb.paper").joinpath("numbers", f"{name}.csv").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def _selection(where: str) -> dict[str, set[str]]:
    """The values that each field may have."""
    pairs = (word.partition("=") for word in where.split())
    return {field: set(values.split("|")) for field, _, values in pairs}
