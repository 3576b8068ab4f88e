"""Whether a part of the backbone should learn as well: frozen, its last layer, or low-rank adapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ompb.bench.findings import Finding, Section
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.bench.store import Cell
from ompb.paper import printed
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import Doubts, Entry, Measured, Place, compare
from ompb.paper.costs import Cost, Costs, in_short
from ompb.paper.grid import (
    OMPB,
    PRESET,
    PROTOCOLS,
    SINGLE,
    Spot,
    cells,
    paper_backbone,
    paper_dataset,
    references,
    seeds,
    single_spots,
)
from ompb.paper.main import of_paper
from ompb.paper.tally import duels, made_from, notes_on, sentence, who_is_ahead

NAME, TABLE = "partial", "partial_backbone_adaptation"
MODES = {PRESET: "frozen", "ompb-paper-last-layer": "last_layer", "ompb-paper-lora": "lora"}
SIZED = {(spot.dataset, spot.horizon) for spot in SINGLE}  # a last layer is as large as the horizon asks for
PRICE = (
    "Weights of the backbone that learn beside the head. A row takes so many milliseconds of one processor, so many "
    "times what it takes around the frozen backbone, and so many megabytes beside what is kept from row to row."
)
DUELS = tuple(((protocol, PRESET), (protocol, other)) for protocol in PROTOCOLS for other in list(MODES)[1:])


def wanted(scope: Scope) -> list[Cell]:
    """Every mode and reference under both protocols, ours under the honest one."""
    found = []
    for spot in single_spots(scope):
        bare = references(spot.dataset)
        found += cells([spot], HONEST, (*bare, OMPB, PRESET), seeds(scope))
        found += cells([spot], ONE_STEP, (*bare, PRESET), seeds(scope))
        found += [cell for protocol in PROTOCOLS for cell in cells([spot], protocol, list(MODES)[1:], seeds(scope))]
    return found


def reduce(runs: Runs, scope: Scope) -> Finding:
    """A section for each protocol, and one of what learns."""
    asked = wanted(scope)
    results = runs.found(asked)
    measured = Measured.of(results)
    sections = [_section(protocol, measured, notes_on(asked, results, protocol=protocol)) for protocol in PROTOCOLS]
    met = duels(measured, DUELS)
    told = " ".join(sentence(pair, duel) for pair, duel in met.items() if pair[0][0] == HONEST)
    spots = dict.fromkeys(replace(place.spot, split="") for place in sorted(measured.results))
    price = _price(list(spots), measured, runs.costs)
    return Finding(
        analysis=NAME,
        title="A part of the backbone that learns beside the head",
        text=told if met else "No two modes have run in the same place yet.",
        sections=(*who_is_ahead(met), *(section for section in (*sections, price) if section.lines)),
        made_from=made_from(results),
    )


def _section(protocol: str, measured: Measured, notes: tuple[str, ...]) -> Section:
    numbers = printed.accuracy(TABLE)
    blocks = []
    for spot in sorted({place.spot for place in measured.results if place.protocol == protocol}):
        keys = spot.dataset, spot.backbone, str(spot.horizon), spot.split
        methods = (*references(spot.dataset), OMPB, *MODES)
        blocks.append([
            Entry((*keys, method), Place(spot, protocol, method), of_paper(numbers, spot, MODES.get(method, "")))
            for method in methods
        ])  # fmt: skip
    title = f"Partial adaptation, protocol {protocol}"
    return compare(title, ("data", "backbone", "horizon", "split", "method"), blocks, measured, notes)


def _price(spots: Sequence[Spot], measured: Measured, costs: Costs) -> Section:
    """How many weights of the backbone learn, and what a row then takes, relative to the frozen backbone's."""
    doubts, lines = Doubts(), []
    for spot in spots:
        frozen = costs.of(spot.sizes, PRESET)
        for method in (OMPB, *MODES):
            ours = _learned(method, spot, measured)
            theirs = printed.trainable().get(
                (paper_dataset(spot.dataset), paper_backbone(spot.backbone), MODES.get(method, ""))
            )
            cost = costs.of(spot.sizes, method)
            if ours or theirs or cost:
                lines.append((
                    *(spot.dataset, spot.backbone, str(spot.horizon), method),
                    *(ours, doubts.shown(theirs) if (spot.dataset, spot.horizon) in SIZED else ""),
                    *_spent(cost, frozen),
                ))  # fmt: skip
    return Section(
        title="What a part that learns costs",
        notes=(PRICE, *costs.notes(), *doubts.notes()),
        headings=("data", "backbone", "horizon", "method", "weights", "paper", "ms a row", "to frozen", "MB a row"),
        lines=tuple(lines),
    )


def _learned(method: str, spot: Spot, measured: Measured) -> str:
    """The number of weights of the backbone that a method moves, as its cells say; blank if none does."""
    if method in (OMPB, PRESET):
        return "0"
    places = (place for place in measured.results if place.method == method)
    found = [place for place in places if replace(place.spot, split="") == spot]
    told = {result.facts.get("trainable") for place in found for result in measured.results[place].values()}
    return " ".join(sorted(str(count) for count in told if count is not None))


def _spent(cost: Cost | None, frozen: Cost | None) -> tuple[str, str, str]:
    if cost is None:
        return "", "", ""
    ratio = in_short(cost.milliseconds / frozen.milliseconds) if frozen else ""
    return in_short(cost.milliseconds), ratio, in_short(cost.megabytes)


ANALYSIS = Analysis(NAME, "Frozen backbone, last layer or adapters", (TABLE,), wanted, reduce)
