"""Small tables for the command-line tests, and the command line itself."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ompb.__main__ import main
from ompb.types import Floats

CONTEXT, HORIZON, SOURCE, ROWS = 24, 6, 500, 600
START = np.datetime64("2024-01-01T00:00", "us")
LENGTHS = ("--context", str(CONTEXT), "--horizon", str(HORIZON))


@dataclass(frozen=True)
class Answer:
    """What a command left behind."""

    code: int
    out: str
    err: str


def ompb(capsys: pytest.CaptureFixture[str], *arguments: object) -> Answer:
    """Run the command line in this process."""
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return Answer(code, captured.out, captured.err)


def assert_refused(answer: Answer, *words: str) -> None:
    """Exit code 2 and one line on stderr that holds the words."""
    assert answer.code == 2
    assert answer.err.startswith("ompb: ")
    assert answer.err.count("\n") == 1
    assert "Traceback" not in answer.err + answer.out
    for word in words:
        assert word in answer.err


def series(rows: int = ROWS) -> Floats:
    """Two channels with a season of 12 rows, whose level rises where the target begins."""
    rng = np.random.default_rng(3)
    time = np.arange(rows)[:, None]
    wave = np.sin(2 * np.pi * (time - [0, 3]) / 12)
    return np.asarray(10 + wave + 0.2 * rng.standard_normal((rows, 2)) + 2.0 * (time >= SOURCE))


def stamps(rows: int = ROWS) -> Any:
    return START + np.arange(rows) * np.timedelta64(1, "h")


def write_wide(path: Path, values: Floats, times: Any = None) -> Path:
    frame = pl.DataFrame(
        {"date": stamps(len(values)) if times is None else times, "a": values[:, 0], "b": values[:, 1]}
    )
    frame.fill_nan(None).write_csv(path)
    return path


def write_long(path: Path, tables: dict[str, Floats], first: dict[str, int] | None = None) -> Path:
    """Hourly series (T,) by id, each from some hour on."""
    begin = first or {}
    parts = [
        pl.DataFrame({"unique_id": one, "ds": stamps(begin.get(one, 0) + len(rows))[-len(rows) :], "y": rows})
        for one, rows in tables.items()
    ]
    pl.concat(parts).fill_nan(None).write_csv(path)
    return path


def write_recorded(path: Path, forecasts: Floats, origins: Any) -> Path:
    """Forecasts (n, H, C) of these origin rows, one line per channel, origin and lead."""
    times = stamps(ROWS + HORIZON)
    lines = [
        (name, times[origin + lead], times[origin], forecast[lead - 1, channel])
        for origin, forecast in zip(origins, forecasts, strict=True)
        for channel, name in enumerate("ab")
        for lead in range(1, HORIZON + 1)
    ]
    pl.DataFrame(
        {
            "unique_id": [line[0] for line in lines],
            "ds": np.array([line[1] for line in lines]),
            "cutoff": np.array([line[2] for line in lines]),
            "y_hat": [line[3] for line in lines],
        }
    ).write_csv(path)
    return path
