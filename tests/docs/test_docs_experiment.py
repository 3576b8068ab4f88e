"""The page on the experiment says what the code does: data, recipes, protocols, and the series of the rehearsal."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import rehearsal_streams
from ompb.bench.backbones import backbone_names
from ompb.bench.protocols import Clock
from ompb.datasets.benchmark import load

PAGE = (Path(__file__).parents[2] / "docs" / "experiment.md").read_text(encoding="utf-8")
DATASETS = ("etth", "ili", "weather-stand-in")
HORIZON = 4


def lines(heading: str) -> dict[str, list[str]]:
    """The other words of each line of the first table below a heading, by its first."""
    part = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [[word.strip() for word in line.strip("|").split("|")] for line in part.splitlines() if line.startswith("|")]
    return {row[0].strip("`"): row[1:] for row in rows}


@pytest.mark.parametrize("name", DATASETS)
def test_data_are_cut_as_the_page_says(name: str, data_dir: Path) -> None:
    data, table = load(name, data_dir), lines("Data")
    said = {fact: words[DATASETS.index(name)] for fact, words in table.items()}
    assert said[""] == f"`{name}`"
    assert int(said["channels"]) == len(data.channels)
    assert int(said["its rows"]) == len(data.source)
    judged = {len(data.stream(split, data.horizons[0])) for split in data.streams}
    assert {int(said["rows judged of each stream"])} == judged
    assert int(said["context, rows"]) == data.context
    assert int(said["season, rows"]) == data.season
    assert [int(rows) for rows in said["horizons, rows"].split(", ")] == list(data.horizons)
    assert ["id", *re.findall("`(.*?)`", said["streams away"])] == list(data.streams)


def test_backbones_are_named_with_their_recipes() -> None:
    recipes = pytest.importorskip("ompb.forecasters.torch.recipes").RECIPES
    table = lines("Backbones")
    assert list(table)[2:] == list(backbone_names())
    for (dataset, backbone), recipe in recipes.items():
        if dataset in DATASETS:
            said = table[backbone][1 + DATASETS.index(dataset)]
            assert tuple(float(number) for number in said.split(", ")) == recipe


@pytest.mark.parametrize("name", ["honest", "full", "delay=D", "one-step"])
def test_a_protocol_shows_what_the_page_says(name: str) -> None:
    """The condition stands in the page: it is taken from there, for a delay of three rows."""
    said = re.search(r"k (?:\+ h )?<= t(?: - \w)?", lines("Protocols")[name][0])
    assert said is not None
    condition, sizes = compile(said[0], "page", "eval"), {"H": HORIZON, "D": 3}
    clock, known = Clock(name.replace("D", "3"), HORIZON), set[tuple[int, int]]()
    for t in range(12):
        shown = clock.revealed(t)
        known |= set(zip(shown.origins.tolist(), shown.leads.tolist(), strict=True))
        labels = {(k, h) for k in range(t + 1) for h in range(1, HORIZON + 1)}
        assert known == {(k, h) for k, h in labels if eval(condition, {**sizes, "k": k, "h": h, "t": t})}


def test_the_series_of_the_rehearsal_are_listed_with_their_seasons() -> None:
    said = {name.removesuffix(".csv"): words for name, words in lines("Sources of the rehearsal").items()}
    seasons = {name: int(words[3]) if words[3] else None for name, words in list(said.items())[2:]}
    assert seasons == {name: season for name, (_, season, _) in rehearsal_streams.OTHERS.items()}


@pytest.mark.parametrize("name", rehearsal_streams.OTHERS)
def test_the_series_of_the_rehearsal_have_the_sizes_that_the_page_says(name: str, data_dir: Path) -> None:
    file = data_dir / "rehearsal" / f"{name}.csv"
    if not file.exists():
        pytest.skip(f"{file} is not there")
    rows = np.genfromtxt(file, delimiter=",", skip_header=1)
    rows = rows.reshape(len(rows), -1)
    assert tuple(map(int, lines("Sources of the rehearsal")[f"{name}.csv"][:2])) == rows.shape
