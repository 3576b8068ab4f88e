"""SOLID's search: past windows of a stream that resemble the present one, in phase and in shape."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ompb.baselines.network import source_pairs
from ompb.bench.contract import Pair, Pairs, Snapshot, Task
from ompb.floor import checks
from ompb.types import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """Options of the search; the defaults are those of SOLID's scripts for ETTh2."""

    candidates: int = 1000  # N: the newest windows with an outcome, among which is searched
    neighbours: int = 10  # n: how many of them are learned from, at most
    phase_tolerance: float = 0.1  # lambda_P, as a share of the season
    # The paper speaks of a small difference in phase; the published numbers were made with a remainder that only
    # lets candidates through which are a little more than whole seasons old. True accepts a little less as well.
    two_sided: bool = False

    def __post_init__(self) -> None:
        checks.check_fields(self, checks.count, "neighbours")
        checks.check_fields(self, partial(checks.count, least=self.neighbours), "candidates")
        checks.number("phase_tolerance", self.phase_tolerance, "a number from 0 to 1", 0, 1, ends=(True, True))
        checks.check_fields(self, checks.flag, "two_sided")


@dataclass(slots=True, eq=False)
class Pool:
    r"""The newest N windows of the stream that have an outcome, and the search among them.

    For the window of origin t, the candidate of origin k is in phase if

    .. math:: (t - k) \bmod p \le \lambda_P\, p,

    two-sided: if that remainder or p less it is. Of those in phase, the n with the least Euclidean distance
    :math:`\lVert X_t - X_k \rVert` over all rows and channels are retrieved, or all where there are fewer.
    """

    settings: SearchSettings
    season: int  # p; 1 lets every candidate through
    pairs: Pairs
    windows: Floats  # (N, context, C), a ring
    outcomes: Floats  # (N, H, C)
    origins: NDArray[np.int64]  # (N,)
    added: int = 0

    @classmethod
    def start(cls, task: Task, settings: SearchSettings) -> Pool:
        """An empty one: a new domain has no matured windows before its stream starts."""
        size, channels = settings.candidates, task.source.shape[1]
        windows, outcomes = (np.zeros((size, rows, channels)) for rows in (task.context, task.horizon))
        pairs = Pairs(task.horizon)
        return cls(settings, task.season or 1, pairs, windows, outcomes, np.zeros(size, dtype=np.int64))

    def fill(self, task: Task) -> None:
        """Take in the newest windows of a source that the stream goes on from, whose row 0 follows the source's last.

        Windows that reach from the source into the stream stay out: no forecast is issued at their origins.
        """
        windows, outcomes = source_pairs(task)
        for place in range(max(0, len(windows) - len(self.origins)), len(windows)):
            if not np.isnan(windows[place]).any():
                origin = task.context - 1 + place - len(task.source)
                self.add(Pair(origin, windows[place], np.asarray(task.source_base[place]), outcomes[place]))

    def take_in_and_retrieve(self, snapshot: Snapshot) -> tuple[Floats, Floats] | None:
        """Take in the pairs that a snapshot completes, then `retrieve`."""
        for pair in self.pairs.completed(snapshot):
            self.add(pair)
        return self.retrieve(snapshot)

    def add(self, pair: Pair) -> None:
        """Take a pair in, in place of the oldest if full. One without any known cell has nothing to teach."""
        if np.isnan(pair.outcome).all():
            return
        place = self.added % len(self.origins)
        self.windows[place], self.outcomes[place], self.origins[place] = pair.window, pair.outcome, pair.origin
        self.added += 1

    def retrieve(self, snapshot: Snapshot) -> tuple[Floats, Floats] | None:
        """Windows (m, context, C) and outcomes (m, H, C), m <= n, nearest first; None if none is in phase."""
        (places,) = np.nonzero(self._in_phase(snapshot.origin))
        if not len(places):
            return None
        gaps = (self.windows[places] - snapshot.window).reshape(len(places), -1)  # (candidates, context * C)
        squares = np.einsum("ij,ij->i", gaps, gaps)
        nearest = places[np.argsort(squares, kind="stable")[: self.settings.neighbours]]
        return self.windows[nearest], self.outcomes[nearest]

    def _in_phase(self, origin: int) -> NDArray[np.bool_]:
        remainder = (origin - self.origins[: self.added]) % self.season
        if self.settings.two_sided:
            remainder = np.minimum(remainder, self.season - remainder)
        return remainder <= self.settings.phase_tolerance * self.season
