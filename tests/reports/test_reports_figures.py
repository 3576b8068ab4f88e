from dataclasses import replace
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from small_study import CONTEXT, HORIZON, renamed, small_study

import ompb
from ompb.errors import OptionError
from ompb.plots.look import MOST_POINTS
from ompb.reports.figures import (
    certificate_figure,
    error_figure,
    fan_figure,
    gate_figure,
    write_picture,
)
from ompb.reports.html import html_report
from ompb.studies import Phase, Study


def test_errors_show_ours_the_bare_forecaster_and_references_and_name_the_phases() -> None:
    (panel,) = error_figure(small_study()).axes
    assert {line.get_label() for line in panel.lines if not str(line.get_label()).startswith("_")} == {
        "bare forecaster",
        "seasonal profile",
        "running bias",
        "ompb",
    }
    assert {text.get_text() for text in panel.texts} == {"early", "late"}


def test_certificate_is_stacked_to_its_value() -> None:
    study = small_study()
    (panel,) = certificate_figure(study).axes
    top = max(np.asarray(path.vertices)[:, 1].max() for area in panel.collections for path in area.get_paths())
    assert top == pytest.approx(study.run.certificate["value"].max())


def test_gates_of_many_channels_become_a_band() -> None:
    study = small_study()
    (panel,) = gate_figure(study).axes
    assert [line.get_label() for line in panel.lines[:2]] == list(study.run.names)
    run = renamed(study.run, tuple(str(c) for c in range(20)))
    crowd = replace(run, gate=np.tile(run.gate, (1, 10)))
    (panel,) = gate_figure(replace(study, run=crowd)).axes
    assert panel.lines[0].get_label() == "median channel"


def test_every_channel_is_named_in_the_legend_however_it_is_called() -> None:
    study = small_study()
    long = replace(study, run=renamed(study.run, (f"{'x' * 200} north", "_hidden")))
    figure = gate_figure(long)
    (panel,) = figure.axes
    figure.draw_without_rendering()
    legend = panel.get_legend()
    assert legend is not None
    assert [text.get_text()[-6:].strip() for text in legend.get_texts()] == ["north", "hidden"]
    box, whole = legend.get_window_extent(), figure.bbox
    assert whole.x0 <= box.x0 < box.x1 <= whole.x1
    assert panel.get_window_extent().width > 0.7 * whole.width
    fans = fan_figure(long)
    fans.draw_without_rendering()  # a warning would be an error


def test_one_fan_per_phase_or_per_third_of_a_single_phase() -> None:
    study = small_study()
    assert [panel.get_title(loc="left") for panel in fan_figure(study).axes] == ["early", "late"]
    single = replace(study, phases=(Phase("target", CONTEXT - 1, len(study.rows)),))
    assert len(fan_figure(single).axes) == 3
    numbered = replace(single, run=replace(study.run, times=None))
    assert len(fan_figure(numbered).axes) == 3


def test_a_target_shorter_than_the_horizon_still_has_pictures() -> None:
    study = short_study(2)
    (panel,) = fan_figure(study).axes
    assert panel.get_title(loc="left") == "the last forecast"
    for draw in (error_figure, certificate_figure, gate_figure):
        assert draw(study).axes


def test_a_single_forecast_is_drawn_into_the_future() -> None:
    study = short_study(1)
    (panel,) = fan_figure(study).axes
    (ours,) = (line for line in panel.lines if line.get_label() == "ompb")
    np.testing.assert_array_equal(ours.get_ydata(), study.run.mean[0, :, 0])
    assert (np.asarray(ours.get_xdata()) > study.times[-1]).all()
    assert html_report(study).count("<svg") == 1


def short_study(forecasts: int) -> Study:
    study = small_study()
    forecaster, rows = ompb.SeasonalProfile(HORIZON, 12), study.rows[: CONTEXT - 1 + forecasts]
    run = ompb.backtest(study.calibrator, forecaster, rows, times=study.times[: len(rows)])
    target = Phase("target", CONTEXT - 1, len(rows))
    return replace(study, run=run, phases=(target,), references={})


def test_long_lines_are_thinned() -> None:
    study = small_study()
    rows = np.tile(study.rows, (9, 1))
    run = ompb.backtest(study.calibrator, ompb.SeasonalProfile(HORIZON, 12), rows)
    long = replace(study, run=run, references={})
    for draw in (error_figure, certificate_figure, gate_figure):
        (panel,) = draw(long).axes
        assert max(len(np.asarray(line.get_xdata())) for line in panel.lines) <= MOST_POINTS


def test_picture_is_a_small_png_1200_pixels_wide(tmp_path: Path) -> None:
    path = tmp_path / "new" / "picture.png"
    write_picture(small_study(), path)
    content = path.read_bytes()
    assert content.startswith(b"\x89PNG")
    assert int.from_bytes(content[16:20], "big") == 1200
    assert len(content) < 300_000
    with pytest.raises(OptionError, match=r"ends in '\.jpg'; name the picture \.png"):
        write_picture(small_study(), tmp_path / "picture.jpg")


def test_no_figure_changes_global_settings() -> None:
    before = dict(matplotlib.rcParams)
    error_figure(small_study())
    assert dict(matplotlib.rcParams) == before
