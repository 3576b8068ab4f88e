"""What a notebook shows: one or two lines of text, and a small piece of HTML that needs nothing from elsewhere."""

import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import ompb
from ompb.floor import cards

ROWS = np.random.default_rng(0).normal(size=(420, 2)).cumsum(axis=0)


def last_value(windows: np.ndarray) -> np.ndarray:
    return np.repeat(windows[:, -1:], 4, axis=1)


def fitted(**options: Any) -> ompb.Calibrator:
    return ompb.Calibrator.fit(last_value, ROWS[:300], context=24, horizon=4, season=None, **options)


CAL = fitted(patience=8)
STREAM = CAL.stream(last_value)
RUN = ompb.backtest(CAL, last_value, ROWS[300:])
FORECASTS = [STREAM.step(row) for row in ROWS[300:]]


def shown() -> dict[str, object]:
    last = FORECASTS[-1]
    assert last is not None
    empty = CAL.stream()
    return {
        "Calibrator": CAL,
        "Stream": STREAM,
        "empty Stream": empty,
        "Run": RUN,
        "Forecast": last,
        "Certificate": last.certificate,
        "Breakdown": RUN.score(by="channel"),
    }


def parsed(html: str) -> ElementTree.Element:
    return ElementTree.fromstring(f"<body>{html.replace('&nbsp;', ' ')}</body>")


@pytest.mark.parametrize("name", list(shown()))
def test_the_text_is_short(name: str) -> None:
    lines = repr(shown()[name]).splitlines()
    assert len(lines) <= (3 if name == "Breakdown" else 2)
    assert max(map(len, lines)) < 250


@pytest.mark.parametrize("name", list(shown()))
def test_the_html_is_whole_and_needs_nothing_from_elsewhere(name: str) -> None:
    html = shown()[name]._repr_html_()  # type: ignore[attr-defined]
    parsed(html)
    elsewhere = html.replace('xmlns="http://www.w3.org/2000/svg"', "")
    assert not re.search(r"https?:|url\(|<script|<style|<link|<img| on\w+=", elsewhere)
    assert "#000" not in html  # black on a dark page
    assert "#fff" not in html


def test_names_cannot_break_out() -> None:
    source = pd.DataFrame(ROWS[:300], columns=["<b>", "</table>"])
    wild = ompb.Calibrator.fit(last_value, source, context=24, horizon=4, season=None)
    run = ompb.backtest(wild, last_value, ROWS[300:])
    for value in (wild, run):
        texts = [cell.text for cell in parsed(value._repr_html_()).iter("td")]
        assert any("<b>" in str(text) for text in texts)


def test_a_certificate_says_what_it_is_made_of() -> None:
    certificate = RUN.last_certificate
    assert certificate is not None
    value, *terms = (float(number) for number in re.findall(r"\d\.\d{3}", repr(certificate)))
    assert value == pytest.approx(sum(terms), abs=0.002)
    assert value == pytest.approx(certificate.value, abs=0.0005)
    assert repr(certificate).endswith(f"{certificate.windows} source windows, in sample)")


def test_the_bar_is_as_long_as_its_parts() -> None:
    bar = parsed(cards.stacked([("a", 0.5, "red"), ("b", 1.5, "blue")]))
    widths = [float(rect.get("width", "nan")) for rect in bar.iter("{http://www.w3.org/2000/svg}rect")]
    assert widths == [65.0, 195.0]


def test_the_fan_reaches_from_its_lowest_to_its_highest_value() -> None:
    svg = cards.fan([0.0, 1.0], [2.0, 5.0], [1.0, 2.0], [1.0, 1.0])
    heights = [float(point) for point in re.findall(r"\d+\.\d (\d+\.\d)", svg)]
    assert (min(heights), max(heights)) == (0.0, 44.0)
    assert cards.fan([1.0], [1.0], [1.0], [1.0]).count("<path") == 3  # a constant has no range


def test_a_run_tells_the_errors_of_both_forecasts() -> None:
    texts = [str(cell.text) for cell in parsed(RUN._repr_html_()).iter("td")]
    by_channel = RUN.score(by="channel")
    place = texts.index("channel 1")
    assert texts[place + 1 : place + 3] == [f"{by_channel.bare_mae[1]:.3f}", f"{by_channel.mae[1]:.3f}"]


def test_changed_options_are_told() -> None:
    assert "patience = 8" in CAL._repr_html_()
    assert "changed options" not in fitted()._repr_html_()
