"""Where the paper's analyses look, in our names: data sets, splits, horizons, backbones, and the methods compared."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ompb.bench.named import Named
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.bench.store import Cell
from ompb.paper.analysis import Scope
from ompb.paper.costs import Sizes

STAND_IN = "weather-stand-in"
SPLITS: Mapping[str, tuple[str, ...]] = {
    "etth": ("id", "ood"),
    "ili": ("id", "ood"),
    STAND_IN: ("id", "ood_near", "ood_far"),
}
HOURLY = (24, 48, 96, 192, 336, 720)
HORIZONS: Mapping[str, tuple[int, ...]] = {"etth": HOURLY, "ili": (24, 48, 72), STAND_IN: HOURLY}
HEADLINE = (24, 96)  # those that are looked at first
SHORT: Mapping[str, tuple[int, ...]] = {"etth": (24, 96, 336), "ili": (24, 48, 72), STAND_IN: (24, 96, 336)}
PROTOCOLS = (HONEST, ONE_STEP)
SEEDS = (0, 1, 2)  # of our methods and of what they are held against; of others where that is cheap

ORIGINAL, OMPB, PRESET = "original", "ompb", "ompb-paper"
TRIVIAL = ("profile", "last", "bias", "copy")
NO_PROFILE = ("ili",)  # whose windows hold no whole season
PUBLISHED = (
    "solid", "solid+tuned", "solid++", "solid-continual", "onenet", "onenet+tuned", "onenet-fsnet-rate",
    "proceed", "proceed+tuned", "gd", "er", "der++", "tafas", "petsa", "cosa", "cosa-tuned", "dsof", "elf",
    "aci", "dtaci",
)  # fmt: skip
INTERVALS_ONLY = ("aci", "dtaci")  # of these, what leaves the forecast of the backbone as it is
PRINTED = ("solid", "onenet", "proceed")  # of these, what the paper has numbers of
# Where the rows of these are far from the paper's, more than a tenth worse on the whole, or are not there yet: by data
# set and backbone. There they are run with a rate of their own, too, so that nobody is beaten at a bad one.
TUNED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("etth", "tcn"): ("solid", "proceed"),
    ("etth", "autoformer"): ("solid", "proceed"),
    ("ili", "tcn"): ("solid", "proceed"),
    ("ili", "autoformer"): ("solid", "proceed"),
}
WITH_RATE = "+tuned"
# Where every method has all seeds: a processor takes them there in hours. By data set and backbone, the horizons.
EVERY_SEED: Mapping[tuple[str, str], tuple[int, ...]] = {
    ("etth", "tcn"): HEADLINE,
    ("ili", "tcn"): (24, 48, 72),
    ("ili", "autoformer"): (24, 48, 72),
}
RETRAIN = "retrain"
RETRAINED = (RETRAIN, "retrain-warm", "retrain+ompb")
RETRAINED_ALONE = tuple(name for name in RETRAINED if OMPB not in name)
QUICK_RIVALS = ("solid", "gd", "elf")  # that take a minute a stream on a CPU
IN_PAPER = {STAND_IN: "weather", "weather-5k": "weather"}  # data sets that the paper has under another name
PAPERS_DATA = ("etth", "ili", "weather-5k")  # the others stand in for the paper's


@dataclass(frozen=True, slots=True, order=True)
class Spot:
    """A stream and the forecaster that is corrected on it."""

    dataset: str
    backbone: str
    horizon: int
    split: str

    @property
    def sizes(self) -> Sizes:
        """What decides how much a method's work is here: not the split, nor where weights come from."""
        return self.dataset, paper_backbone(self.backbone), self.horizon

    def cell(self, protocol: str, method: str, seed: int = 0) -> Cell:
        """What a method does here."""
        return Cell(self.dataset, self.backbone, self.horizon, self.split, protocol, method, seed)


CHEAPEST = "tcn"
QUICK = ("etth", CHEAPEST, 24)  # what a quick scope looks at
# The paper's three streams for single questions: one a data set, each with another backbone.
SINGLE = (Spot("etth", "tcn", 96, "ood"), Spot("ili", "gpt4ts", 48, "ood"), Spot(STAND_IN, "autoformer", 96, "ood_far"))

# Where it is told what training anew costs: each backbone on the data and at the horizon of the first.
ANEW = tuple(Spot("etth", backbone, 96, "ood") for backbone in ("tcn", "autoformer", "gpt4ts"))


def backbones(scope: Scope) -> tuple[str, ...]:
    """The paper's three, GPT4TS as it is at hand."""
    return "tcn", "autoformer", scope.gpt4ts


def spots(scope: Scope, horizons: Mapping[str, Sequence[int]]) -> list[Spot]:
    """Every backbone and split of these data sets and horizons; a quick scope has a TCN at 24 rows of the first."""
    every = (
        Spot(dataset, backbone, horizon, split)
        for dataset, lengths in horizons.items()
        for backbone, horizon, split in itertools.product(backbones(scope), lengths, SPLITS[dataset])
    )
    quick = next(iter(horizons)), *QUICK[1:]
    return [spot for spot in every if not scope.quick or (spot.dataset, spot.backbone, spot.horizon) == quick]


def single_spots(scope: Scope) -> list[Spot]:
    """The three streams for single questions; ETTh2 at 24 rows if the scope is quick."""
    if scope.quick:
        return [Spot(*QUICK, "ood")]
    return [
        Spot(spot.dataset, scope.gpt4ts if spot.backbone == "gpt4ts" else spot.backbone, spot.horizon, spot.split)
        for spot in SINGLE
    ]


def rivals(scope: Scope, spot: Spot, protocol: str = HONEST) -> tuple[str, ...]:
    """The published methods that are run somewhere.

    Those that the paper has numbers of are run everywhere, and shown rows to come where there are the paper's data to
    compare on. All others follow on the paper's data, and around the cheapest network on data that stand in for them;
    with a rate of their own those that are far from the paper's rows.
    """
    asked = QUICK_RIVALS if scope.quick else tuple(name for name in PUBLISHED if _is_wanted(name, spot))
    is_papers = spot.dataset in PAPERS_DATA
    if protocol != HONEST and not is_papers:
        return ()
    every = protocol == HONEST and (is_papers or spot.backbone == CHEAPEST)
    return asked if every else tuple(name for name in asked if name in PRINTED)


def _is_wanted(method: str, spot: Spot) -> bool:
    """Whether a method is, in its published form or with a rate of its own."""
    own = TUNED.get((spot.dataset, paper_backbone(spot.backbone)), ())
    return not method.endswith(WITH_RATE) or (_trains_often(spot) and method.removesuffix(WITH_RATE) in own)


def retrained(scope: Scope, spot: Spot) -> tuple[str, ...]:
    """Ways to train the backbone anew that are run somewhere; as each takes minutes, a quick scope has none."""
    return () if scope.quick or not _trains_often(spot) else RETRAINED


def _trains_often(spot: Spot) -> bool:
    """Whether what trains again and again, or tries several rates, is run here.

    Around a large network on hourly data that takes many minutes a stream even on a GPU: there it is run at two
    horizons, and not at all on data that stand in for the paper's.
    """
    large = spot.backbone != CHEAPEST and HORIZONS[spot.dataset] == HOURLY
    return not large or (spot.dataset in PAPERS_DATA and spot.horizon in HEADLINE)


def seeds(scope: Scope) -> tuple[int, ...]:
    """Those of our methods."""
    return SEEDS[:1] if scope.quick else SEEDS


def rival_seeds(scope: Scope, spot: Spot) -> tuple[int, ...]:
    """Those of published methods and of retraining, as they are."""
    cheap = spot.horizon in EVERY_SEED.get((spot.dataset, spot.backbone), ())
    return seeds(scope) if cheap else SEEDS[:1]


def references(dataset: str) -> tuple[str, ...]:
    """The bare backbone and what anyone could do in its place."""
    return ORIGINAL, *(name for name in TRIVIAL if name != "profile" or dataset not in NO_PROFILE)


def with_options(method: str, **options: Any) -> str:
    """A method's name with options.

    >>> with_options("ompb", novelty=0.0, gate="open")
    'ompb[gate="open",novelty=0.0]'
    """
    return str(Named(method, options))


def cells(spots: Iterable[Spot], protocol: str, methods: Iterable[str], seeds: Iterable[int] = (0,)) -> list[Cell]:
    """Every combination."""
    return [spot.cell(protocol, name, seed) for spot, name, seed in itertools.product(spots, methods, seeds)]


def paper_backbone(backbone: str) -> str:
    """The paper's name of a backbone: it knows one Autoformer, and GPT-2's own weights only.

    >>> paper_backbone("gpt4ts[gpt2-partial]@5"), paper_backbone("autoformer-canonical")
    ('gpt4ts', 'autoformer')
    """
    return backbone.partition("@")[0].partition("[")[0].removesuffix("-canonical")


def paper_dataset(dataset: str) -> str:
    """The paper's name of a data set, or of the one that this one stands in for."""
    return IN_PAPER.get(dataset, dataset)
