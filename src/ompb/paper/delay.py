"""How stale outcomes may be: whole ones after 1, H/2, H and 2H rows, and row by row as they come.

A delay below H shows rows before they have come. ``ompb-paper`` learns whole outcomes only, so for it the honest
protocol is a delay of H.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ompb.bench.findings import Curve, Figure, Finding, Panel, Section
from ompb.bench.protocols import HONEST, ONE_STEP, Clock
from ompb.bench.store import Cell
from ompb.paper import printed
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import Doubts, Entry, Measured, Place, compare, shown
from ompb.paper.grid import OMPB, ORIGINAL, PRESET, Spot, cells, references, seeds, single_spots
from ompb.paper.main import of_paper
from ompb.paper.networks import broken
from ompb.paper.printed import Number
from ompb.paper.rolling import rolling_curve
from ompb.paper.tally import Duel, made_from, notes_on

NAME, TABLE = "delay", "feedback_delay"
DELAYED = (PRESET, "bias", "copy")  # methods that every delay is tried on


def delays(horizon: int) -> dict[str, str]:
    """Protocols, by the delay's name in the paper's table.

    >>> delays(96)["delay_2H"]
    'delay=192'
    """
    return {
        "delay_1": ONE_STEP,  # the same as delay=1, and shared with the main table
        "delay_H2": f"delay={horizon // 2}",
        "delay_H": f"delay={horizon}",
        "delay_2H": f"delay={2 * horizon}",
    }


KEYS = ("data", "backbone", "horizon", "split", "method")
WORDS = {"delay_1": "1", "delay_H2": "H/2", "delay_H": "H", "delay_2H": "2H"}


def wanted(scope: Scope) -> list[Cell]:
    """Every delay for the paper's method and two trivial ones, ours and the references as rows come."""
    found = []
    for spot in single_spots(scope):
        bare = [name for name in references(spot.dataset) if name not in DELAYED]
        found += cells([spot], HONEST, (*bare, OMPB, *DELAYED), seeds(scope))
        for protocol in delays(spot.horizon).values():
            found += cells([spot], protocol, DELAYED, seeds(scope))
    return found


def reduce(runs: Runs, scope: Scope) -> Finding:
    """Delays relative to the bare backbone, then every number, and errors along streams whose steps were kept."""
    asked = wanted(scope)
    results = runs.found(asked)
    measured = Measured.of(results)
    where = [spot for spot in single_spots(scope) if any(place.spot == spot for place in measured.results)]
    sections = (_in_short(where, measured), _section(where, measured, notes_on(asked, results)))
    figures = [_figure(spot, runs, measured) for spot in where]
    return Finding(
        analysis=NAME,
        title="How stale outcomes may be",
        text=_text(where, measured),
        sections=tuple(section for section in sections if section.lines),
        figures=tuple(figure for figure in figures if figure.panels),
        made_from=made_from(results),
    )


def _section(where: list[Spot], measured: Measured, notes: tuple[str, ...]) -> Section:
    numbers = printed.accuracy(TABLE)
    blocks = []
    for spot in where:
        keys = _keys(spot)
        block = [
            Entry(
                (*keys, name, "none"),
                Place(spot, HONEST, name),
                of_paper(numbers, spot, ORIGINAL) if name == ORIGINAL else {},
            )
            for name in references(spot.dataset)
            if name not in DELAYED
        ]
        for method in (OMPB, *DELAYED):
            protocols = {} if method == OMPB else delays(spot.horizon)
            block += [
                Entry(
                    (*keys, method, WORDS[name]),
                    Place(spot, protocol, method),
                    of_paper(numbers, spot, name) if method == PRESET else {},
                )
                for name, protocol in protocols.items()
            ]
            block.append(Entry((*keys, method, HONEST), Place(spot, HONEST, method)))
        blocks.append(block)
    return compare("Delay of the outcomes", (*KEYS, "delay"), blocks, measured, notes)


def _keys(spot: Spot) -> tuple[str, str, str, str]:
    return spot.dataset, spot.backbone, str(spot.horizon), spot.split


def _figure(spot: Spot, runs: Runs, measured: Measured) -> Figure:
    """A panel for each delay: who is shown outcomes so late, beside who sees none and who learns rows as they come."""
    panels = [_panel(spot, WORDS[name], protocol, runs, measured) for name, protocol in delays(spot.horizon).items()]
    return Figure(
        name=f"delay-{spot.dataset}-{spot.split}",
        title=f"Errors along the stream, {spot.dataset} {spot.split}, {spot.backbone}, {spot.horizon} rows",
        caption="MAE of each forecast, mean over the last twentieth of the stream, of one seed in each panel: the "
        "first that its methods have in common. A delay below H knows rows that have not come yet.",
        panels=tuple(panel for panel in panels if any(curve.name in DELAYED for curve in panel.curves)),
    )


def _panel(spot: Spot, delay: str, protocol: str, runs: Runs, measured: Measured) -> Panel:
    places = {
        ORIGINAL: Place(spot, HONEST, ORIGINAL),
        f"{OMPB}, honest": Place(spot, HONEST, OMPB),
        **{method: Place(spot, protocol, method) for method in DELAYED},
    }
    kept = {name: _kept(place, runs, measured) for name, place in places.items()}
    counts = Counter(sorted(seed for cells in kept.values() for seed in cells))
    seed = max(counts, key=counts.__getitem__, default=0)  # the first that all have, or else most
    curves = [_curve(name, cells[seed], runs) for name, cells in kept.items() if seed in cells]
    known = tuple(curve for curve in curves if curve is not None)
    return Panel(title=f"Delay of {delay}", x_label="row of the stream", y_label="MAE", curves=known)


def _kept(place: Place, runs: Runs, measured: Measured) -> dict[int, Cell]:
    """The cells of which steps were kept, by seed."""
    found = measured.results.get(place, {})
    return {seed: result.cell for seed, result in found.items() if runs.store.has_steps(result.cell)}


def _curve(name: str, cell: Cell, runs: Runs) -> Curve | None:
    steps = runs.steps(cell)
    return None if steps is None else rolling_curve(name, steps["origin"], steps["mae"])


def _in_short(where: list[Spot], measured: Measured) -> Section:
    """The MAE at each delay relative to that of the bare backbone, as the paper prints it of its method, too."""
    doubts = Doubts()
    lines: list[tuple[str, ...]] = []
    for spot in where:
        for method in (OMPB, *DELAYED):
            found = [
                _to_bare(measured, spot, method, protocol) for protocol in (*delays(spot.horizon).values(), HONEST)
            ]
            if any(found):
                lines.append((*_keys(spot), method, *(shown(one, digits=3) for one in found)))
        lines.append((*_keys(spot), "paper", *(doubts.shown(one) for one in _papers(spot)), ""))
    return Section(
        title="Delays, relative to the bare backbone",
        notes=("The MAE of a method relative to that of the bare backbone, ours to ours, the paper's to the paper's.",
               *broken(lines), *doubts.notes()),
        headings=(*KEYS, *(f"ratio, {word}" for word in (*WORDS.values(), HONEST))),
        lines=tuple(lines),
        keys=len(KEYS),
    )  # fmt: skip


def _to_bare(measured: Measured, spot: Spot, method: str, protocol: str) -> float | None:
    return measured.relative(Place(spot, protocol, method), Place(spot, HONEST, ORIGINAL))


def _papers(spot: Spot) -> list[Number | None]:
    """At each delay, doubted if either side is; None where the paper has no number."""
    numbers = printed.accuracy(TABLE)
    bare = of_paper(numbers, spot, ORIGINAL).get("mae")
    return [_by(of_paper(numbers, spot, name).get("mae"), bare) for name in WORDS]


def _by(one: Number | None, other: Number | None) -> Number | None:
    if one is None or other is None:
        return None
    against = dict.fromkeys(doubt for number in (one, other) if (doubt := number.doubt))
    return Number(f"{float(one) / float(other):.3f}", " ".join(against) or None)


def _text(where: list[Spot], measured: Measured) -> str:
    """The paper's method early and late, ours, and where nothing could be learned."""
    early, late = (f"`{PRESET}` with a delay of {WORDS[name]}" for name in ("delay_1", "delay_H"))
    sides = {
        early: [_to_bare(measured, spot, PRESET, ONE_STEP) for spot in where],
        late: [_to_bare(measured, spot, PRESET, f"delay={spot.horizon}") for spot in where],
        f"`{OMPB}` as rows come": [_to_bare(measured, spot, OMPB, HONEST) for spot in where],
    }
    words = [f"{name}: {_listed(where, found)}" for name, found in sides.items() if any(found)]
    sentences = [f"MAE relative to that of the bare backbone, {'; '.join(words)}."] if words else []
    return " ".join((*sentences, *_leak(where, measured), *_unheard(where, measured))) or "No delay has run yet."


def _listed(where: list[Spot], found: list[float | None]) -> str:
    pairs = zip(where, found, strict=True)
    return ", ".join(f"{shown(one, digits=2)} on {spot.dataset}" for spot, one in pairs if one is not None)


def _leak(where: list[Spot], measured: Measured) -> list[str]:
    """On how many streams the last residual that was shown too early beats what is learned from it."""
    here = replace(measured, results={at: found for at, found in measured.results.items() if at.spot in where})
    duel = Duel.of(here, (ONE_STEP, "copy"), (ONE_STEP, PRESET))
    count = f"{duel.won} of {len(duel.ratios)} streams"
    return [f"With a delay of 1 `copy` is ahead of `{PRESET}` on {count}."] if duel.ratios else []


def _unheard(where: list[Spot], measured: Measured) -> list[str]:
    """Where a stream ends before any outcome has been shown."""
    sentences = []
    for spot in where:
        forecasts = measured.scored.get((spot.dataset, spot.horizon, spot.split))
        for name, protocol in delays(spot.horizon).items():
            delay = Clock(protocol, spot.horizon).delay
            if forecasts and delay and delay >= forecasts and _to_bare(measured, spot, PRESET, protocol):
                sentences.append(
                    f"On {spot.dataset} no outcome is shown with a delay of {WORDS[name]}, as the stream ends after "
                    f"{forecasts} forecasts: nothing is learned, `bias` and `copy` are the bare backbone, and "
                    f"`{PRESET}` is its head as the source left it."
                )
    return sentences


ANALYSIS = Analysis(
    NAME,
    "Delay of the outcomes",
    (TABLE, "feedback_delay_curves"),
    wanted,
    reduce,
    per_step=True,
    draws_steps=True,
)
