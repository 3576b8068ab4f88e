"""Figures drawn from values: what they hold, their colours, and that the same makes the same."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from ompb.bench.findings import Curve, Figure, Mark, Panel
from ompb.reports.drawing import panel_svgs, svg
from ompb.reports.style import DARK, LIGHT, PAGE, SERIES, SERIES_DARK
from ompb.types import Floats

POINT = r"[ML](-?[\d.]+) ?(-?[\d.]+)"
SVG = "{http://www.w3.org/2000/svg}"


def panel(*curves: Curve, title: str = "A <title>") -> Panel:
    return Panel(title, "row", "MAE", curves)


def figure(*panels: Panel) -> Figure:
    return Figure("some figure", "Title", "Caption.", panels)


def elements(drawn: str, tag: str) -> list[ElementTree.Element]:
    return list(ElementTree.fromstring(drawn).iter(SVG + tag))


def test_each_panel_is_an_element_of_its_own_for_a_page() -> None:
    one = panel(Curve("a", (0.0, 1.0), (1.0, 2.0)))
    both = panel_svgs(figure(one, replace(one, title="another")))
    assert [ElementTree.fromstring(text).get("aria-label") for text in both] == ["A <title>", "another"]
    drawn = "".join(both)
    names = re.findall(r'\sid="([^"]+)"', drawn)
    assert len(names) == len(set(names))
    used = set(re.findall(r'href="#([^"]+)"|url\(#([^)]+)\)', drawn))
    assert {one or other for one, other in used} <= set(names)


def test_a_file_has_all_panels_two_in_a_row() -> None:
    few = panel(Curve("a", (0.0, 1.0), (1.0, 2.0)))
    many = panel(*(Curve(str(n), (0.0, 1.0), (1.0, 2.0)) for n in range(6)))  # higher, for its legend
    whole = ElementTree.fromstring(svg(figure(few, many, few)))
    behind, *panels = whole
    assert (behind.get("width"), behind.get("height"), behind.get("fill")) == ("100%", "100%", f"var(--page, {PAGE})")
    inner = [{name: float(one.get(name, "")) for name in ("x", "y", "width", "height")} for one in panels]
    width, height = inner[0]["width"], inner[1]["height"]
    assert [(one["x"], one["y"]) for one in inner] == [(0, 0), (width, 0), (0, height)]
    assert height > inner[0]["height"]
    size = [float(word) for word in whole.get("viewBox", "").split()]
    assert size == pytest.approx([0, 0, 2 * width, height + inner[2]["height"]])
    assert len(ElementTree.fromstring(svg(figure()))) == 1


def test_the_same_figure_makes_the_same_text() -> None:
    values = panel(Curve("a", (0.0, 1.0), (1.0, 2.0)), Curve("b", (0.0, 1.0), (1.0, None), "points"))
    assert svg(figure(values)) == svg(figure(values))


def test_every_colour_is_a_variable_of_the_page() -> None:
    curves = [Curve(str(n), (0.0, 1.0), (float(n), 1.0)) for n in range(8)]
    drawn = svg(figure(panel(*curves)))
    alone = re.sub(r"var\(--[a-z0-9-]+, #[0-9a-fA-F]{6}\)", "", drawn)
    assert not re.search(r"#[0-9a-fA-F]{6}\b", alone)
    assert all(f"var(--series-{place}, {colour})" in drawn for place, colour in enumerate(SERIES))
    assert "background" not in drawn


def line_of(drawn: str, place: int) -> list[tuple[float, float]]:
    """The points of the path in the colour of a curve, all its pieces."""
    colour = f"var(--series-{place}, {SERIES[place]})"
    paths = [one.get("d", "") for one in elements(drawn, "path") if f"stroke: {colour}" in one.get("style", "")]
    return [(float(x), float(y)) for x, y in re.findall(POINT, max(paths, key=len))]


def test_a_line_goes_through_its_points_and_stops_where_there_is_nothing() -> None:
    x = tuple(float(n) for n in range(20))
    y = tuple(None if n == 10 else float(n % 3) for n in range(20))
    drawn = svg(figure(panel(Curve("a", x, y))))
    points = line_of(drawn, 0)
    assert len(points) == 19
    steps = [(after[0] - before[0]) for before, after in itertools.pairwise(points)]
    assert max(steps) == pytest.approx(2 * min(steps), rel=0.01)  # over the gap
    heights = sorted({round(at[1]) for at in points})
    assert len(heights) == 3
    assert heights[1] - heights[0] == pytest.approx(heights[2] - heights[1], abs=1.5)


def test_bars_stand_side_by_side_as_high_as_their_numbers() -> None:
    names = ("tcn", "autoformer")
    drawn = svg(figure(panel(Curve("a", names, (1.0, 2.0), "bars"), Curve("b", names, (4.0, None), "bars"))))
    boxes = []
    for place in (0, 1):
        fill = f"fill: var(--series-{place}, {SERIES[place]})"
        for path in elements(drawn, "path"):
            if fill in path.get("style", "") and path.get("clip-path"):
                corners = [(float(x), float(y)) for x, y in re.findall(POINT, path.get("d", ""))]
                across, up = zip(*corners, strict=True)
                boxes.append((min(across), max(across), max(up) - min(up)))
    first, second, other, *_ = boxes
    assert second[2] == pytest.approx(2 * first[2], rel=0.02)
    assert other[2] == pytest.approx(4 * first[2], rel=0.02)
    assert first[1] == pytest.approx(other[0], abs=0.1)  # beside it
    texts = [one.text for one in elements(drawn, "text")]
    assert {"tcn", "autoformer", "a", "b"} <= set(texts)


def test_a_band_lies_between_its_ends_and_points_are_where_they_should() -> None:
    points = Curve("", (0.0, 1.0), (1.0, 3.0), "points")
    drawn = svg(figure(panel(points, Curve("", (0.0, 1.0), (1.0, 1.0), "band", (3.0, 3.0)))))
    (dots,) = (one.get("d", "") for one in elements(drawn, "path") if one.get("d", "").endswith("h.01"))
    low, high = (float(y) for _, y in re.findall(r"M(\S+) (\S+?)h\.01", dots))
    (band,) = (one for one in elements(drawn, "use") if SERIES[1] in one.get("style", ""))
    shape = next(one for one in elements(drawn, "path") if f"#{one.get('id')}" in band.attrib.values())
    corners = {round(float(band.get("y", "")) + float(y), 1) for _, y in re.findall(POINT, shape.get("d", ""))}
    assert sorted(corners) == pytest.approx([high, low], abs=0.15)


def test_a_name_has_one_colour_in_all_panels_and_ours_the_first() -> None:
    x = (0.0, 1.0)
    first = panel(Curve("bare", x, (1.0, 2.0)), Curve("ompb", x, (1.0, 1.0)))
    second = panel(Curve("ompb", x, (1.0, 1.0)), title="second")
    drawn = panel_svgs(figure(first, second))
    assert SERIES[0] in drawn[1]
    assert SERIES[1] not in drawn[1]
    assert "ompb" in drawn[1]  # named, since there are other names in the figure


def legend(drawn: str) -> dict[str, str]:
    """The look of each name, in order: in a legend its sample comes just before the name."""
    found, sample = {}, ""
    for one in ElementTree.fromstring(drawn).iter():
        sample = one.get("style", "") if one.tag == f"{SVG}path" else sample
        if one.tag == f"{SVG}text" and "font-size: 9px" in one.get("style", ""):
            found[str(one.text)] = sample
    return found


def number_in(style: str, name: str) -> float:
    return float(style.partition(f"{name}: ")[2].partition(";")[0])


@pytest.mark.parametrize("name", ["ompb", "ompb, honest", "issued"])
def test_ours_has_the_first_colour_with_its_band_and_the_bare_forecaster_the_second(name: str) -> None:
    x = (0.0, 1.0)
    band = Curve("80% interval", x, (0.0, 0.0), "band", (2.0, 2.0))
    others = (Curve("ompb-paper, honest", x, (3.0, 3.0)), Curve("original", x, (1.0, 2.0)))
    found = legend(svg(figure(panel(band, *others, Curve(name, x, (1.0, 1.0))))))
    colours = dict(zip((name, "original", "ompb-paper, honest", "80% interval"), (0, 1, 2, 0), strict=True))
    assert all(f": var(--series-{place}," in found[words] for words, place in colours.items())
    assert list(found) == ["80% interval", name, "original", "ompb-paper, honest"]


def test_lines_that_hide_each_other_are_seen_the_wide_one_below_and_each_dashed_its_own_way() -> None:
    found = legend(svg(figure(panel(*(Curve(f"curve {n}", (0.0, 1.0), (1.0, 1.0)) for n in range(4))))))
    widths = [number_in(style, "stroke-width") for style in found.values()]
    assert widths == sorted(set(widths), reverse=True)
    dashes = [style.partition("stroke-dasharray: ")[2].partition(";")[0] for style in found.values()]
    assert dashes[0] == ""
    assert len(set(dashes)) == 4


def test_panels_of_one_title_say_what_they_measure() -> None:
    one = panel(Curve("a", (0.0, 1.0), (1.0, 2.0)), title="A sweep")
    drawn = panel_svgs(figure(one, replace(one, y_label="width"), replace(one, title="Another")))
    labels = [ElementTree.fromstring(text).get("aria-label") for text in drawn]
    assert labels == ["A sweep: MAE", "A sweep: width", "Another"]


def test_with_many_names_each_panel_has_the_first_colours() -> None:
    def part(*names: str) -> Panel:
        return panel(*(Curve(name, (0.0, 1.0), (1.0, 2.0)) for name in names))

    drawn = panel_svgs(figure(part("a", "b", "c", "d"), part("e", "f", "g", "issued")))
    assert all(colour in text for text in drawn for colour in SERIES[:4])
    assert not any(colour in text for text in drawn for colour in SERIES[4:])


# Machado, Oliveira and Fernandes (2009): linear RGB as it is seen without one of the three kinds of cones.
BLIND = {
    "nobody": np.eye(3),
    "red": np.array([[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]),
    "green": np.array([[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]),
    "blue": np.array([[1.2555, -0.0767, -0.1788], [-0.0784, 0.9308, 0.1476], [0.0047, 0.6914, 0.3039]]),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(colour: str) -> Floats:
    """RGB as light, from 0 to 1."""
    parts = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(light: Floats) -> Floats:
    """CIE L*a*b*, in which distances are as they are seen."""
    x, y, z = np.cbrt(XYZ @ light.clip(1e-4, 1) / XYZ.sum(axis=1))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize(("colours", "page"), [(SERIES, LIGHT), (SERIES_DARK, DARK)], ids=["light", "dark"])
def test_curves_stand_out_from_the_page_and_from_each_other_for_everyone(colours: Sequence[str], page: str) -> None:
    behind = XYZ[1] @ linear(page.partition("--page: ")[2][:7])
    for colour in colours:
        low, high = sorted((behind, XYZ[1] @ linear(colour)))
        assert (high + 0.05) / (low + 0.05) >= 3  # what WCAG asks of lines
    for one, other in itertools.combinations(colours, 2):
        for seen in BLIND.values():
            assert np.linalg.norm(lab(seen @ linear(one)) - lab(seen @ linear(other))) > 18  # 2 can just be told apart


def test_ticks_keep_their_digits() -> None:
    drawn = svg(figure(panel(Curve("a", (0.0, 1.0), (1.0, 1.0012)))))
    ticks = [one.text for one in elements(drawn, "text") if re.fullmatch(r"1\.\d+", one.text or "")]
    assert len(ticks) == len(set(ticks)) > 3


def test_marks_of_a_line_say_their_style_once_and_no_group_says_nothing() -> None:
    drawn = svg(figure(panel(Curve("a", (0.0, 1.0, 2.0), (1.0, 2.0, 4.0)))))
    styles = re.findall(r'<g style="([^"]*)"><use ', drawn)
    assert len(styles) == 1
    assert f"var(--series-0, {SERIES[0]})" in styles[0]
    assert ElementTree.fromstring(drawn) is not None
    assert "<g>" not in drawn


def test_a_cloud_of_points_takes_few_letters() -> None:
    many = tuple(float(n) for n in range(400))
    values = tuple(n % 17 / 17 for n in range(400))
    assert len(svg(figure(panel(Curve("a", many, values, "points"))))) < 15_000


@pytest.mark.parametrize("mark", ["line", "points", "bars", "band"])
@pytest.mark.parametrize(("x", "y"), [((), ()), ((1.0,), (2.0,)), ((1.0, 2.0), (None, None)), (("a",), (None,))])
def test_hardly_anything_to_draw(mark: Mark, x: tuple[float | str, ...], y: tuple[float | None, ...]) -> None:
    (drawn,) = panel_svgs(figure(panel(Curve("a", x, y, mark, y if mark == "band" else ()))))
    assert elements(drawn, "text")


def test_long_words_are_broken_into_lines() -> None:
    long = Panel("a title of many words " * 5, "below " * 12, "beside " * 12, (Curve("a", (0.0, 1.0), (1.0, 2.0)),))
    (drawn,) = panel_svgs(figure(long))
    assert max(len(one.text or "") for one in elements(drawn, "text")) <= 54


def test_many_curves_have_a_legend_below_and_room_for_it() -> None:
    def height(count: int) -> float:
        drawn = svg(figure(panel(*(Curve(f"curve {n}", (0.0, 1.0), (float(n), 1.0)) for n in range(count)))))
        assert ("curve 0" in drawn) is (count > 1)  # one alone is what the axis says
        return float(ElementTree.fromstring(drawn).get("viewBox", "").split()[3])

    assert height(1) < height(2) < height(8)


def test_names_that_would_touch_are_turned() -> None:
    def is_turned(names: tuple[str, ...]) -> bool:
        drawn = svg(figure(panel(Curve("a", names, tuple(1.0 for _ in names), "bars"))))
        label = next(one for one in elements(drawn, "text") if one.text == names[0])
        return "rotate(-35" in label.get("transform", "")

    assert not is_turned(("tcn", "gpt4ts"))
    assert is_turned(("autoformer", "gpt4ts[gpt2-partial]", "tcn"))
