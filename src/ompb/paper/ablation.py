"""What each part is worth: the gate, the PAC-Bayes terms and the online stage taken away, one at a time, at 24 rows.

=========== ======================== ==================================
paper       ``ompb-paper``           ``ompb``
=========== ======================== ==================================
w/o gate    s = 1                    the gate is always open
w/o PB      the newest error alone   no certificate, no label-free word
w/o online  no steps                 the head stays as the source left it
=========== ======================== ==================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ompb.bench.findings import Finding, Section
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.bench.store import Cell, Result
from ompb.paper import printed
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import Entry, Measured, Place, compare
from ompb.paper.grid import OMPB, PRESET, SPLITS, Spot, cells, references, seeds, spots, with_options
from ompb.paper.main import of_paper
from ompb.paper.tally import Duel, made_from, notes_on

NAME, TABLE, HORIZON = "ablation", "ablation_result", 24
FULL, NO_GATE, NO_PB, NO_ONLINE = "ompb", "wo_gate", "wo_pb", "wo_online"  # as the paper's table names them
PAPERS = {
    FULL: PRESET,
    NO_GATE: with_options(PRESET, gated=False),
    NO_PB: with_options(PRESET, certified=False),
    NO_ONLINE: with_options(PRESET, steps=0),
}
OURS = {
    FULL: OMPB,
    NO_GATE: with_options(OMPB, gate="open"),
    NO_PB: with_options(OMPB, certificate=False, novelty=0.0),
    NO_ONLINE: with_options(OMPB, online=False),
}
WORDS = {FULL: "whole", NO_GATE: "without gate", NO_PB: "without PAC-Bayes", NO_ONLINE: "without online stage"}


def wanted(scope: Scope) -> list[Cell]:
    """Variants of both methods, and the references, with the same seeds."""
    where = spots(scope, dict.fromkeys(SPLITS, (HORIZON,)))
    found = []
    for spot in where:
        bare = references(spot.dataset)
        found += cells([spot], HONEST, (*bare, *OURS.values(), *PAPERS.values()), seeds(scope))
        found += cells([spot], ONE_STEP, (*bare, *PAPERS.values()), seeds(scope))
    return found


def reduce(runs: Runs, scope: Scope) -> Finding:
    """A section for each method and protocol, the paper's numbers beside its own method."""
    asked = wanted(scope)
    results = runs.found(asked)
    measured = Measured.of(results)
    parts = ((PRESET, PAPERS, ONE_STEP), (PRESET, PAPERS, HONEST), (OMPB, OURS, HONEST))
    sections = [
        _section(method, variants, protocol, measured, _lacking(asked, results, variants, protocol))
        for method, variants, protocol in parts
    ]
    text = " ".join(
        sentence
        for method, variants, protocol in parts
        for sentence in _sentences(method, variants, protocol, measured)
    )
    return Finding(
        analysis=NAME,
        title="What each part is worth",
        text=text or "No cell of the ablation has run yet.",
        sections=tuple(section for section in sections if section.lines),
        made_from=made_from(results),
    )


def _lacking(
    asked: Sequence[Cell], results: Iterable[Result], variants: Mapping[str, str], protocol: str
) -> tuple[str, ...]:
    others = {*PAPERS.values(), *OURS.values()} - set(variants.values())
    return notes_on([cell for cell in asked if cell.method not in others], results, protocol=protocol)


def _section(
    method: str, variants: Mapping[str, str], protocol: str, measured: Measured, notes: Iterable[str]
) -> Section:
    numbers = printed.accuracy(TABLE)
    places = sorted({place.spot for place in measured.results if place.protocol == protocol})
    blocks = []
    for spot in places:
        entries = [
            Entry((*_keys(spot), WORDS[part]), Place(spot, protocol, name), of_paper(numbers, spot, part))
            for part, name in variants.items()
        ]
        bare = [Entry((*_keys(spot), name), Place(spot, protocol, name)) for name in references(spot.dataset)]
        blocks.append(entries + bare)
    title = f"Ablation: {method}, protocol {protocol}"
    return compare(title, ("data", "backbone", "split", "variant"), blocks, measured, notes)


def _keys(spot: Spot) -> tuple[str, str, str]:
    return spot.dataset, spot.backbone, spot.split


def _sentences(method: str, variants: dict[str, str], protocol: str, measured: Measured) -> list[str]:
    """How often a part's absence costs accuracy."""
    sentences = []
    for part in (NO_GATE, NO_PB, NO_ONLINE):
        duel = Duel.of(measured, (protocol, variants[FULL]), (protocol, variants[part]))
        if duel.ratios:
            sentences.append(f"`{method}` ({protocol}) has a smaller MAE whole than {WORDS[part]} {duel}.")
    return sentences


ANALYSIS = Analysis(NAME, "What gate, certificate and online stage are worth", (TABLE,), wanted, reduce)
