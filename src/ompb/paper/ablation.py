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
from typing import TypeAlias

from ompb.bench.findings import Finding, Section
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.bench.store import Cell, Result
from ompb.paper import printed
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import Entry, Measured, Place, compare
from ompb.paper.grid import OMPB, PRESET, SPLITS, Spot, cells, references, seeds, spots, with_options
from ompb.paper.main import of_paper
from ompb.paper.networks import BROKEN, NO_FORECAST
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
Side: TypeAlias = tuple[str, Mapping[str, str], str]  # a method, its variants, a protocol
SIDES: tuple[Side, ...] = ((PRESET, PAPERS, ONE_STEP), (PRESET, PAPERS, HONEST), (OMPB, OURS, HONEST))
PARTS = (NO_GATE, NO_PB, NO_ONLINE)
HARM = 1.005  # times the error without a part
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
    sections = [
        _section(method, variants, protocol, measured, _lacking(asked, results, variants, protocol))
        for method, variants, protocol in SIDES
    ]
    duels = _duels(SIDES, measured)
    return Finding(
        analysis=NAME,
        title="What each part is worth",
        text=_text(duels),
        sections=tuple(section for section in (_in_short(duels), *sections) if section.lines),
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


def _duels(sides: Iterable[Side], measured: Measured) -> dict[tuple[str, str], dict[str, Duel]]:
    """The whole against each part's absence, by method and protocol."""
    found = {}
    for method, variants, protocol in sides:
        duels = {part: Duel.of(measured, (protocol, variants[FULL]), (protocol, variants[part])) for part in PARTS}
        found[method, protocol] = {part: duel for part, duel in duels.items() if duel.ratios or duel.diverged}
    return {side: duels for side, duels in found.items() if duels}


def _of_paper() -> dict[str, Duel]:
    """The same of the printed MAE, of the same three backbones and all streams."""
    numbers = printed.accuracy(TABLE)
    ratios: dict[str, list[float]] = {part: [] for part in PARTS}
    for (dataset, backbone, method, horizon, split, metric), number in numbers.items():
        if metric == "mae" and method in ratios:
            whole = numbers[dataset, backbone, FULL, horizon, split, metric]
            ratios[method].append(float(whole) / float(number))
    return {part: Duel(tuple(found)) for part, found in ratios.items()}


def _in_short(duels: Mapping[tuple[str, str], Mapping[str, Duel]]) -> Section:
    every = {**duels, ("paper", ONE_STEP): _of_paper()} if duels else duels
    lines = [
        (method, protocol, WORDS[part], str(len(duel.ratios)), str(duel.won), *_numbers(duel))
        for (method, protocol), found in every.items()
        for part, duel in found.items()
    ]
    return Section(
        title="The whole against each part's absence",
        notes=(
            "Ratios are of the MAE of the whole to that without the part: above 1 the part does harm.",
            *_left_out(every),
        ),
        headings=("method", "protocol", "against", "places", "whole better in", "median ratio", "least", "most"),
        lines=tuple(lines),
        keys=3,
    )


def _numbers(duel: Duel) -> tuple[str, str, str]:
    """Median, least and most of the ratios."""
    if not duel.ratios:
        return NO_FORECAST, "", ""
    return f"{duel.median:.3f}", f"{min(duel.ratios):.3f}", f"{max(duel.ratios):.3f}"


def _left_out(duels: Mapping[tuple[str, str], Mapping[str, Duel]]) -> tuple[str, ...]:
    """The notes on places that are in no ratio, if there are any."""
    counts = [
        f"{WORDS[part]} by `{method}` ({protocol}) {duel.diverged}"
        for (method, protocol), found in duels.items()
        for part, duel in found.items()
        if duel.diverged
    ]
    return (f"Left out are places where either has diverged: {', '.join(counts)}.", BROKEN) if counts else ()


def _text(duels: Mapping[tuple[str, str], Mapping[str, Duel]]) -> str:
    """What each part is worth in the median place, and which do harm."""
    worth, harm = [], []
    for (method, protocol), found in duels.items():
        medians = {part: duel.median for part, duel in found.items() if duel.ratios}
        least = min(medians, key=medians.__getitem__, default=None)
        if least is not None and medians[least] < 1:
            worth.append(f"{WORDS[least]} by `{method}` ({protocol}, ratio {medians[least]:.3f})")
        harm += [f"`{method}` ({protocol}) {WORDS[part]}" for part, median in medians.items() if median > HARM]
    sentences = [f"In the median place most is lost {', '.join(worth)}."] if worth else []
    sentences += [f"By more than {HARM - 1:.1%} better without a part: {', '.join(harm)}."] if harm else []
    return " ".join(sentences) or "Nothing is known to be lost without a part yet."


ANALYSIS = Analysis(NAME, "What gate, certificate and online stage are worth", (TABLE,), wanted, reduce)
