from pathlib import Path

import numpy as np
import pytest

from ompb.errors import InputError, OptionError
from ompb.metrics.shift import ShiftTable, shift_table
from ompb.reports.shift_figure import shift_figure
from ompb.tables import Table


def pair(channels: int) -> tuple[Table, Table, ShiftTable]:
    """Two tables whose later channels lie further apart."""
    rng = np.random.default_rng(0)
    names = tuple(f"channel {c}" for c in range(channels))
    a = Table(rng.normal(0, 1, (80, channels)), np.arange(80), names, "row")
    b = Table(rng.normal(np.arange(channels), 1, (60, channels)), np.arange(60), names, "row")
    return a, b, shift_table(a.values, b.values, names)


def test_svg_names_every_channel_both_tables_and_the_ks(tmp_path: Path) -> None:
    a, b, shift = pair(3)
    path = tmp_path / "new" / "shift.svg"
    shift_figure(a, b, shift, path, labels=("Miami", "Atlanta"))
    text = path.read_text()
    for expected in (
        "Miami",
        "Atlanta",
        "all channels",
        *(f"channel {c}   KS {shift.ks[c]:.3f}" for c in range(3)),
    ):
        assert f"{expected}" in text


def test_more_channels_than_panels_are_cut_and_said_so(tmp_path: Path) -> None:
    path = tmp_path / "shift.svg"
    shift_figure(*pair(15), path)
    text = path.read_text()
    assert "the 12 of 15 channels with the largest KS" in text
    assert "channel 14 " in text
    assert "channel 0 " not in text


def test_png_is_a_png(tmp_path: Path) -> None:
    path = tmp_path / "shift.png"
    shift_figure(*pair(1), path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_odd_channels_are_drawn(tmp_path: Path) -> None:
    values = np.array([[1.0, np.nan, np.nan, 3.0], [1.0, np.nan, np.nan, 4.0]])
    other = np.array([[1.0, 2.0, np.nan, 3.0]])
    names = ("constant", "half unknown", "unknown", "$ and $")
    a, b = Table(values, np.arange(2), names, "row"), Table(other, np.arange(1), names, "row")
    path = tmp_path / "shift.svg"
    shift_figure(a, b, shift_table(values, other, names), path)
    assert "$ and $" in path.read_text()


@pytest.mark.parametrize("name", ["負荷", "x" * 200])
def test_foreign_letters_and_long_names_are_drawn_without_a_warning(tmp_path: Path, name: str) -> None:
    table = Table(np.arange(20.0)[:, None], np.arange(20), (name,), "row")
    shift_figure(table, table, shift_table(table.values, table.values, (name,)), tmp_path / "shift.png")


def test_other_formats_and_unknown_channels_are_refused(tmp_path: Path) -> None:
    a, b, shift = pair(2)
    with pytest.raises(OptionError, match=r"ends in '\.pdf'; name the figure \.png or \.svg"):
        shift_figure(a, b, shift, tmp_path / "shift.pdf")
    with pytest.raises(InputError, match="no channel 'channel 1'"):
        shift_figure(a, b.select(["channel 0"]), shift, tmp_path / "shift.png")
