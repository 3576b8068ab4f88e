"""Whether a part of the backbone should learn as well: frozen, its last layer, or low-rank adapters."""

from __future__ import annotations

from ompb.bench.findings import Finding, Section
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.bench.store import Cell
from ompb.paper import printed
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import Doubts, Entry, Measured, Place, compare
from ompb.paper.grid import (
    OMPB,
    PRESET,
    PROTOCOLS,
    SINGLE,
    cells,
    paper_backbone,
    paper_dataset,
    references,
    seeds,
    single_spots,
)
from ompb.paper.main import of_paper
from ompb.paper.tally import duel_sentences, made_from, notes_on

NAME, TABLE = "partial", "partial_backbone_adaptation"
MODES = {PRESET: "frozen", "ompb-paper-last-layer": "last_layer", "ompb-paper-lora": "lora"}
SIZED = {(spot.dataset, spot.horizon) for spot in SINGLE}  # a last layer is as large as the horizon asks for
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
    sections = [_section(protocol, measured, notes_on(asked, results)) for protocol in PROTOCOLS]
    return Finding(
        analysis=NAME,
        title="A part of the backbone that learns beside the head",
        text=" ".join(duel_sentences(measured, DUELS)) or "No two modes have run in the same place yet.",
        sections=tuple(section for section in (*sections, _sizes(measured)) if section.lines),
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


def _sizes(measured: Measured) -> Section:
    """How many weights of the backbone learn."""
    doubts, lines = Doubts(), {}
    for place, found in sorted(measured.results.items()):
        if place.method not in MODES:
            continue
        spot = place.spot
        key = paper_dataset(spot.dataset), paper_backbone(spot.backbone), MODES[place.method]
        ours = {0} if place.method == PRESET else {result.facts.get("trainable") for result in found.values()}
        shown = " ".join(sorted(str(count) for count in ours if count is not None))
        theirs = printed.trainable().get(key) if (spot.dataset, spot.horizon) in SIZED else None
        lines[spot, place.method] = (
            *(spot.dataset, spot.backbone, str(spot.horizon), place.method),
            *(shown, doubts.shown(theirs)),
        )
    return Section(
        title="Weights of the backbone that learn",
        notes=doubts.notes(),
        headings=("data", "backbone", "horizon", "method", "ours", "paper"),
        lines=tuple(lines.values()),
    )


ANALYSIS = Analysis(NAME, "Frozen backbone, last layer or adapters", (TABLE,), wanted, reduce)
