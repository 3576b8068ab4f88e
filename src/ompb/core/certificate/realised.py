r"""Realised risk: what matured outcomes prove about the forecasts issued so far.

Forecasts are fixed before their outcome, so the proxy losses l_i of every H-th one, whose outcomes do not overlap, can
be bet on (see `ompb.core.certificate.betting`), and there are H such sequences. At any time their capitals E_1 .. E_H
give p-values 1 / sup E_k, and e times the geometric mean of p-values is one, however they depend on each other. So
with probability 1 - delta, at all times at once, the mean of ln E_k stays below 1 + ln(1 / delta). The logarithm of a
sum of exponentials is convex, hence by Jensen's inequality

.. math:: \ln \textstyle\sum_j w_j \exp\{\lambda_j n \mu / H - A_n(\lambda_j) / H\} \le 1 + \ln(1 / \delta)

with n and A over *all* forecasts and mu their average conditional risk: one number for each lambda is all that has to
be kept, and no hour is left out.

A forecast is judged `patience` rows after its last row is due, by the cells that are known then. The guess for it is
the mean loss of those whose outcome was complete when it was issued, H and more rows before.

Forecasts are judged in *blocks* of H origins, k H .. k H + H - 1, one of each sequence.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, NamedTuple

from ompb.core.arrays import Array, at_least, namespace, over_series, zeros
from ompb.core.certificate.betting import FIRST_GUESS, GRID, Stakes, shortfalls, upper_mean
from ompb.core.certificate.scales import proxy
from ompb.core.counts import Form, along
from ompb.core.fusing import fused
from ompb.floor.shapes import Shape


class RealisedState(NamedTuple):
    """Forecasts of S series that are maturing, and what came of those that have."""

    maturing: Annotated[Array, Shape("S 2 maturing", least=0)]  # by origin: squared errors and known cells, per channel
    block: Annotated[Array, Shape("S 2 H", least=0)]  # losses of the newest block judged, and 1 where there was one
    before: Annotated[Array, Shape("S 2", least=0)]  # sums of losses, and their number, in the blocks before it
    shortfall: Annotated[Array, Shape("S J")]  # A of all judged
    newest: Annotated[Array, Shape("S", least=-1)]  # origin of the newest forecast judged; -1 for none
    rows: int  # seen so far


class Judged(NamedTuple):
    """What is proved of S series, each (S,)."""

    mean: Array  # loss
    upper: Array  # bound on the average conditional risk
    outcomes: Array  # how many are behind it
    newest: Array  # origin of the newest of them; -1 for none


@dataclass(frozen=True)
class RealisedRisks:
    """Follows every forecast until its outcome is complete."""

    channels: int
    tau: Array  # tau_y of each series: (S,)
    patience: int  # rows that a label may be late

    def start(self, like: Array) -> RealisedState:
        """Nothing issued, nothing matured; ``like`` is any (N, H) array."""
        series, horizon = like.shape[0] // self.channels, like.shape[1]
        # a block waits until its last origin is due, so 2 H + patience origins are alive; whole blocks never wrap
        depth = horizon * (2 + -(-self.patience // horizon))
        return RealisedState(
            maturing=zeros(like, series, 2, depth),
            block=zeros(like, series, 2, horizon),
            before=zeros(like, series, 2),
            shortfall=zeros(like, series, len(GRID)),
            newest=zeros(like, series) - 1,
            rows=0,
        )

    def learn(self, state: RealisedState, row: int, errors: Array, observed: Array) -> RealisedState:
        """The newest row's errors (N, H) by lead, 0 but where ``observed`` (N, H) is 1."""
        horizon = int(errors.shape[1])
        if self._judges(row, horizon):
            state = self._judge(state, row - self.patience - 2 * horizon, horizon, row)
        return RealisedState(self._grown(state.maturing, row, errors, observed), *state[1:-1], row + 1)

    def form(self, state: RealisedState, row: int) -> Form:
        """Of a row that is learned: whether a block is due."""
        return self._judges(row, int(state.block.shape[2]))

    def _judges(self, row: int, horizon: int) -> bool:
        """Whether a block is judged once a row has come."""
        since = row - self.patience - 2 * horizon
        return since >= 0 and since % horizon == 0

    def learn_late(self, state: RealisedState, row: int, errors: Array, observed: Array) -> RealisedState:
        """The errors of a row that is at most ``patience`` rows old."""
        return state._replace(maturing=self._grown(state.maturing, row, errors, observed))

    def bound(self, state: RealisedState, delta: float) -> Judged:
        """What all forecasts prove that are due by now; the bound is 1 before the first."""
        xp = namespace(state.before)
        horizon = int(state.block.shape[2])
        due = state.rows - 1 - self.patience - horizon  # no late cell can reach the origins before it
        first = max(due - 1, 0) // horizon * horizon
        if due > 0:
            state = self._judge(state, first, due - first, first)
        total, count = (state.before[:, i] + xp.sum(state.block[:, i], axis=-1) for i in (0, 1))
        outcomes = at_least(count, 1.0)
        price = xp.full_like(total, 1 + math.log(1 / delta))
        upper = upper_mean(price, state.shortfall / horizon, outcomes / horizon)
        mean = total / outcomes
        # rounding must not put the bound below what it bounds
        return Judged(mean, xp.where(count > 0, xp.maximum(upper, mean), 1.0), count, state.newest)

    def _grown(self, maturing: Array, row: int, errors: Array, observed: Array) -> Array:
        """The sums of the forecasts that spoke of a row, with its errors in them."""
        xp, (series, _, depth), horizon = namespace(errors), maturing.shape, errors.shape[1]
        both = over_series(xp.concat([errors * errors, observed], axis=1), self.channels)
        start = -along(row, row) % depth  # leads 1, 2, ... are origins row - 1, row - 2, ...
        return _added(maturing, start, both.reshape((series, 2, horizon)))

    def _judge(self, state: RealisedState, first: int, due: int, row: int) -> RealisedState:
        """Judge the first so many origins of the block that begins at ``first``; the block's places are dead then.

        The present ``row`` is one that a device may know.
        """
        xp, horizon, depth = namespace(state.maturing), int(state.block.shape[2]), int(state.maturing.shape[2])
        begins = along(first, row)
        # the block's last origin comes first
        mature, maturing = _taken_out(state.maturing, (-begins - horizon) % depth, horizon)
        place = xp.arange(horizon, dtype=mature.dtype, device=mature.device)  # float32 counts no further than 2^24
        # those at least a horizon before each: all of the earlier blocks, and a part of the newest that ends with it
        known = state.before[..., None] + xp.cumulative_sum(state.block, axis=-1)
        block, shortfall, newest = _judged(
            mature, place, due, begins, known, state.shortfall, state.newest, self.tau, Stakes.like(mature)
        )
        before = state.before + xp.sum(state.block, axis=-1)
        return RealisedState(maturing, block, before, shortfall, newest, state.rows)


def _added(maturing: Array, start: int | Array, news: Array) -> Array:
    """The sums (S, 2, depth) with others (S, 2, H) added, which begin at a place and go on at the first."""
    xp, depth, horizon = namespace(news), int(maturing.shape[2]), int(news.shape[2])
    grown = xp.asarray(maturing, copy=True)
    if not isinstance(start, int):
        return grown.index_add_(2, (start + xp.arange(horizon, device=news.device)) % depth, news)
    left = min(depth - start, horizon)
    if left == horizon:
        here = grown[..., start : start + horizon]
        here += news
    else:
        grown[..., start:] += news[..., :left]
        grown[..., : horizon - left] += news[..., left:]
    return grown


def _taken_out(maturing: Array, start: int | Array, horizon: int) -> tuple[Array, Array]:
    """The sums (S, 2, H) that begin at a place, and all (S, 2, depth) with zeros there."""
    xp, left = namespace(maturing), namespace(maturing).asarray(maturing, copy=True)
    if not isinstance(start, int):
        places = start + xp.arange(horizon, device=maturing.device)
        return xp.take(maturing, places, axis=2), left.index_fill_(2, places, 0.0)
    left[..., start : start + horizon] = 0.0
    return maturing[..., start : start + horizon], left


@fused
def _judged(
    mature: Array,
    place: Array,
    due: int,
    first: int | Array,
    known: Array,
    shortfall: Array,
    newest: Array,
    tau: Array,
    stakes: Stakes,
) -> tuple[Array, Array, Array]:
    """A block of losses, its shortfall and newest origin from the sums (S, 2, H) of its origins, the last first.

    They begin at ``first`` and have a place (H,) each. Those from the place ``due`` on are not due yet; ``known``
    (S, 2, H) sums up the losses known to each, and their number.
    """
    xp = namespace(mature)
    squared, cells = (xp.flip(mature[:, i], axis=-1) for i in (0, 1))
    heard = (cells > 0) & (place < due)
    seen = xp.astype(heard, cells.dtype)
    loss = seen * proxy(squared / xp.where(cells > 0, cells, 1.0), tau[:, None])
    guess = (FIRST_GUESS + known[:, 0]) / (1 + known[:, 1])
    return (
        xp.stack([loss, seen], axis=1),
        shortfall + xp.sum(seen[..., None] * shortfalls(loss, guess, stakes), axis=1),
        xp.max(xp.where(heard, first + place, newest[:, None]), axis=-1),
    )
