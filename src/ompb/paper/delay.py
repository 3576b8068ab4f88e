"""How stale outcomes may be: whole ones after 1, H/2, H and 2H rows, and row by row as they come.

A delay below H shows rows before they have come. ``ompb-paper`` learns whole outcomes only, so for it the honest
protocol is a delay of H.
"""

from __future__ import annotations

from dataclasses import replace

from ompb.bench.findings import Curve, Figure, Finding, Panel, Section
from ompb.bench.protocols import HONEST, ONE_STEP
from ompb.bench.store import Cell
from ompb.paper import printed
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.beside import Entry, Measured, Place, compare
from ompb.paper.grid import OMPB, ORIGINAL, PRESET, Spot, cells, references, seeds, single_spots
from ompb.paper.main import of_paper
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
    """One table, and the errors along each stream where steps were kept."""
    asked = wanted(scope)
    results = runs.found(asked)
    measured = Measured.of(results)
    where = [spot for spot in single_spots(scope) if any(place.spot == spot for place in measured.results)]
    section = _section(where, measured, notes_on(asked, results))
    panels = [panel for spot in where if (panel := _panel(spot, runs, measured)).curves]
    figure = Figure(
        name="delay",
        title="Errors along the stream",
        caption="MAE of each forecast, mean over the last twentieth of the stream, of the first seed. A delay below H "
        "knows rows that have not come yet.",
        panels=tuple(panels),
    )
    return Finding(
        analysis=NAME,
        title="How stale outcomes may be",
        text=_text(where, measured),
        sections=(section,) if section.lines else (),
        figures=(figure,) if panels else (),
        made_from=made_from(results),
    )


def _section(where: list[Spot], measured: Measured, notes: tuple[str, ...]) -> Section:
    numbers = printed.accuracy(TABLE)
    blocks = []
    for spot in where:
        keys = spot.dataset, spot.backbone, str(spot.horizon), spot.split
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
    return compare(
        "Delay of the outcomes", ("data", "backbone", "horizon", "split", "method", "delay"), blocks, measured, notes
    )


def _panel(spot: Spot, runs: Runs, measured: Measured) -> Panel:
    wanted_curves = {
        ORIGINAL: Place(spot, HONEST, ORIGINAL),
        f"{OMPB}, honest": Place(spot, HONEST, OMPB),
        **{
            f"{PRESET}, delay {WORDS[name]}": Place(spot, protocol, PRESET)
            for name, protocol in delays(spot.horizon).items()
        },
    }
    curves = [_curve(name, place, runs, measured) for name, place in wanted_curves.items()]
    return Panel(
        title=f"{spot.dataset} {spot.split}, {spot.backbone}, {spot.horizon} rows",
        x_label="row of the stream",
        y_label="MAE",
        curves=tuple(curve for curve in curves if curve is not None),
    )


def _curve(name: str, place: Place, runs: Runs, measured: Measured) -> Curve | None:
    """Of the first seed that has run; None if its steps were not kept."""
    found = measured.results.get(place, {})
    steps = runs.steps(found[min(found)].cell) if found else None
    return None if steps is None else rolling_curve(name, steps["origin"], steps["mae"])


def _text(where: list[Spot], measured: Measured) -> str:
    """The paper's method at each delay against the bare backbone and ours."""
    sentences = []
    for spot in where:
        here = replace(measured, results={at: found for at, found in measured.results.items() if at.spot == spot})
        for name, protocol in delays(spot.horizon).items():
            duel = Duel.of(here, (protocol, PRESET), (HONEST, ORIGINAL))
            if duel.ratios:
                sentences.append(
                    f"On {spot.dataset} ({spot.split}) `{PRESET}` with a delay of {WORDS[name]} has "
                    f"{duel.ratios[0]:.2f} times the MAE of the bare backbone."
                )
        ours = Duel.of(here, (HONEST, OMPB), (HONEST, ORIGINAL))
        if ours.ratios:
            sentences.append(f"`{OMPB}`, which learns rows as they come, has {ours.ratios[0]:.2f} times.")
    return " ".join(sentences) or "No delay has run yet."


ANALYSIS = Analysis(NAME, "Delay of the outcomes", (TABLE, "feedback_delay_curves"), wanted, reduce, per_step=True)
