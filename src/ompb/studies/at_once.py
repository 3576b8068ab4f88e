"""The one way to learn from the first part of series and to follow the rest: all of one shape at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from ompb.backtest import follow_each
from ompb.bench.compare import references_of_each
from ompb.offline.fitting import fit
from ompb.seam.query import as_forecaster
from ompb.studies.ready import Asked, Ready
from ompb.studies.result import Study

Progress: TypeAlias = Callable[[str, int, int], None]  # what is being done, steps done, steps in all

DOING = ("Learning from the source", "Following the target")


def learn_and_follow(series: Sequence[Ready], asked: Asked, progress: Progress | None) -> list[Study]:
    """A study of each, as it would be alone."""
    learning, following = (
        partial(progress, f"{what}{'s' * (len(series) > 1)}") if progress is not None else None for what in DOING
    )
    by = {id(one.parts.by): as_forecaster(one.parts.by) for one in series}  # one that they share stays one
    who = [by[id(one.parts.by)] for one in series]
    calibrators = fit([one.learned(own) for one, own in zip(series, who, strict=True)], asked.order, learning)
    followed = [one.followed(own, asked.order.horizon) for one, own in zip(series, who, strict=True)]
    runs = follow_each(calibrators, followed, following)
    return [
        Study(
            title=f"{one.table.name}, followed by ompb",
            run=run,
            phases=one.phases,
            references=references,
            facts=one.facts(asked.order.context),
            notes=(one.sentence(), *one.notes),
            clock=one.table.clock,
        )
        for one, run, references in zip(series, runs, references_of_each(runs), strict=True)
    ]
