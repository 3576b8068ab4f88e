"""A stream under rows that come on time, late, twice, revised or never, beside a dictionary of what must be learned.

The dictionary holds one label per (origin, lead, channel) whose row is due: the one that was revealed, or, where none
was, what the batch solution itself forecast at that time. After every action the head must be the batch solution of
exactly those labels: discounted ridge towards the source head, one system per lane, discount and lead, solved afresh.
"""

from __future__ import annotations

import tempfile
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ompb import Calibrator, Ridge, Stream
from ompb.core.members.head import SourceHead
from ompb.core.posterior import REFILL_EVERY, Posterior
from ompb.errors import StaleRowError
from ompb.types import Floats

CONTEXT, HORIZON, CHANNELS, PATIENCE = 6, 4, 2, 5
DISCOUNTS = (0.9, 0.99)
TOLERANCE = 1e-8


@lru_cache
def forecaster() -> Ridge:
    return Ridge.fit(source(), CONTEXT, HORIZON, penalty=0.3)


@lru_cache
def source() -> Floats:
    rng = np.random.default_rng(0)
    time = np.arange(160)[:, None]
    return np.asarray([3.0, -20.0] + [1.0, 4.0] * (np.sin(2 * np.pi * time / 3) + 0.5 * rng.normal(size=(160, 2))))


@lru_cache
def calibrator(season: int | None) -> Calibrator:
    return Calibrator.fit(
        forecaster(),
        source(),
        context=CONTEXT,
        horizon=HORIZON,
        season=season,
        discounts=DISCOUNTS,
        basis=2,
        patience=PATIENCE,
        reread=3,
        ring=4,
        anchor=5.0,
        guard=None,
    )


# Cells in source standard deviations; None is a missing one.
CELL = st.one_of(st.none(), st.floats(-3, 3, width=32))
ROW = st.tuples(CELL, CELL)
FULL_ROW = st.tuples(st.floats(-3, 3, width=32), st.floats(-3, 3, width=32))


class Model:
    """What must be known and learned, in dictionaries."""

    def __init__(self, cal: Calibrator) -> None:
        self.cal = cal
        self.head = next(member for member in cal.source.members if isinstance(member, SourceHead))
        self.rows = 0
        self.cells: dict[tuple[int, int], float] = {}  # (row, channel) -> newest value
        self.learned: set[tuple[int, int]] = set()  # (row, channel)
        # (origin, lead, channel) -> residual of the base forecast, as each head sees it: (M,)
        self.labels: dict[tuple[int, int, int], Floats] = {}
        self.phi: dict[int, Floats] = {}  # origin -> whitened features (C, F), as they were when it was issued
        self.said: dict[int, Floats] = {}  # origin -> base forecast (C, H), standardised

    def hear(self, row: int, values: Floats) -> None:
        """Cells of a row have come; those not learned before become labels of every origin that spoke of them."""
        for channel in np.flatnonzero(~np.isnan(values)):
            place = (row, int(channel))
            self.cells[place] = float(values[channel])
            if place in self.learned:
                continue
            self.learned.add(place)
            scaled = (values[channel] - self.cal.centre[channel]) / self.cal.scale[channel]
            for lead in range(1, HORIZON + 1):
                if row - lead in self.said:
                    residual = float(scaled - self.said[row - lead][channel, lead - 1])
                    self.labels[row - lead, lead, int(channel)] = np.full(len(DISCOUNTS), residual)

    def impute(self, row: int, channels: list[int]) -> None:
        """Cells of the newest row that have not come: their labels are what the heads forecast."""
        if not channels or not self.said:
            return
        heads = self.solution()
        for channel in channels:
            for lead in range(1, HORIZON + 1):
                if row - lead in self.said:
                    phi = self.phi[row - lead][channel]
                    self.labels[row - lead, lead, channel] = heads[channel, :, lead - 1] @ phi

    def step(self, values: Floats) -> None:
        """The next row: it is heard, then a forecast is issued from the window it completes."""
        self.impute(self.rows, np.flatnonzero(np.isnan(values)).tolist())
        self.hear(self.rows, values)
        self.rows += 1
        if self.rows >= CONTEXT:
            self.issue(self.rows - 1)

    def issue(self, origin: int) -> None:
        window = np.asarray([[self.filled(row, c) for c in range(CHANNELS)] for row in range(origin - 5, origin + 1)])
        base = (forecaster()(window[None])[0] - self.cal.centre) / self.cal.scale
        lanes = ((window - self.cal.centre) / self.cal.scale).T[:, None]
        view = self.cal.source.features.view(lanes, base.T[:, None])
        self.phi[origin] = (view.features @ self.head.whitening)[:, 0]
        self.said[origin] = base.T

    def filled(self, row: int, channel: int) -> float:
        """The last known value of the channel at that row; the source mean before any is known."""
        for earlier in range(row, -1, -1):
            if (earlier, channel) in self.cells:
                return self.cells[earlier, channel]
        return float(self.cal.centre[channel])

    def word(self, discount: float, lead: int) -> float:
        """Weight of the source's word: what is left of the first, and of every refill since."""
        first, last = CONTEXT - 1, self.rows - 1 - lead
        total = discount ** max(0, last - first + 1)
        for origin in range(first, last + 1, REFILL_EVERY):
            total += discount ** (last - origin) * (1 - discount**REFILL_EVERY)
        return float(total)

    def precision(self, channel: int, discount: float, lead: int) -> Floats:
        """The quadratic part of the recursion's equation, a matrix (F, F)."""
        last = self.rows - 1 - lead
        total = self.word(discount, lead) * np.eye(self.cal.source.features.size)
        for origin in range(CONTEXT - 1, last + 1):
            phi = self.phi[origin][channel]
            total += discount ** (last - origin) * np.outer(phi, phi)
        return np.asarray(total)

    def solution(self) -> Floats:
        """Batch solution (C, M, H, F)."""
        size = self.cal.source.features.size
        out = np.zeros((CHANNELS, len(DISCOUNTS), HORIZON, size))
        for channel in range(CHANNELS):
            for m, discount in enumerate(DISCOUNTS):
                for lead in range(1, HORIZON + 1):
                    last = self.rows - 1 - lead
                    right = self.word(discount, lead) * self.head.weights[channel, lead - 1]
                    for origin in range(CONTEXT - 1, last + 1):
                        residual = self.labels[origin, lead, channel][m]
                        right += discount ** (last - origin) * residual * self.phi[origin][channel]
                    matrix = self.precision(channel, discount, lead)
                    out[channel, m, lead - 1] = np.linalg.solve(matrix, right)
        return out

    def open_cells(self) -> list[int]:
        """Rows that can still be observed and have a cell that has not come."""
        return [
            row
            for row in range(max(0, self.rows - 1 - PATIENCE), self.rows)
            if any((row, channel) not in self.learned for channel in range(CHANNELS))
        ]


def posterior(stream: Stream) -> Posterior:
    return next(state for state in stream._state.online.members if isinstance(state, Posterior))


def head(stream: Stream) -> Floats:
    return np.array(posterior(stream).mean)


def saved(stream: Stream) -> bytes:
    """The whole state: equal states are equal files."""
    with tempfile.TemporaryDirectory() as folder:
        stream.save(Path(folder) / "state.ompb")
        return (Path(folder) / "state.ompb").read_bytes()


class LedgerMachine(RuleBasedStateMachine):
    @initialize(season=st.sampled_from([None, 3]), rows=st.integers(0, 3 * CONTEXT))
    def begin(self, season: int | None, rows: int) -> None:
        self.cal = calibrator(season)
        self.stream = self.cal.stream(forecaster())
        self.model = Model(self.cal)
        for row in range(rows):  # a good start: labels come soon
            self.take(self.user((np.sin(row), np.cos(3.0 * row))))

    def user(self, row: tuple[float | None, float | None]) -> Floats:
        """A row in the user's units."""
        scaled = np.asarray([np.nan if cell is None else cell for cell in row])
        return np.asarray(self.cal.centre + self.cal.scale * scaled)

    def take(self, values: Floats) -> None:
        forecast = self.stream.step(values)
        self.model.step(values)
        assert (forecast is not None) == (self.model.rows >= CONTEXT)

    def observe(self, row: int, values: Floats) -> None:
        self.stream.observe(row, values)
        self.model.hear(row, values)

    @rule(row=FULL_ROW)
    def whole_row(self, row: tuple[float, float]) -> None:
        self.take(self.user(row))

    @rule(row=ROW)
    def row_with_holes(self, row: tuple[float | None, float | None]) -> None:
        self.take(self.user(row))

    @rule(rows=st.lists(ROW, min_size=2, max_size=PATIENCE))
    def some_rows(self, rows: list[tuple[float | None, float | None]]) -> None:
        for row in rows:
            self.take(self.user(row))

    @rule()
    def gap(self) -> None:
        self.take(np.full(CHANNELS, np.nan))

    @precondition(lambda self: bool(self.model.open_cells()))
    @rule(data=st.data(), row=ROW)
    def late(self, data: st.DataObject, row: tuple[float | None, float | None]) -> None:
        self.observe(data.draw(st.sampled_from(self.model.open_cells())), self.user(row))

    @precondition(lambda self: self.model.rows > 0)
    @rule(data=st.data(), row=ROW)
    def revision(self, data: st.DataObject, row: tuple[float | None, float | None]) -> None:
        """New values for cells learned before, nothing for others: no label changes, windows do."""
        at = data.draw(st.integers(max(0, self.model.rows - 1 - PATIENCE), self.model.rows - 1))
        known = [(at, channel) in self.model.learned for channel in range(CHANNELS)]
        before = head(self.stream)
        self.observe(at, np.where(known, self.user(row), np.nan))
        np.testing.assert_array_equal(head(self.stream), before)

    @precondition(lambda self: self.model.rows > 0)
    @rule(data=st.data())
    def duplicate(self, data: st.DataObject) -> None:
        at = data.draw(st.integers(max(0, self.model.rows - 1 - PATIENCE), self.model.rows - 1))
        values = np.asarray([self.model.cells.get((at, channel), np.nan) for channel in range(CHANNELS)])
        before = head(self.stream)
        self.observe(at, values)
        np.testing.assert_array_equal(head(self.stream), before)

    @rule(back=st.integers(1, 10), ahead=st.integers(0, 3), row=FULL_ROW)
    def out_of_reach(self, back: int, ahead: int, row: tuple[float, float]) -> None:
        """Rows too old, or not yet due, are refused and change nothing at all."""
        before = saved(self.stream)
        reach = max(PATIENCE, self.cal.remembers - 1)
        for at in (self.model.rows - 1 - reach - back, self.model.rows + ahead):
            with pytest.raises(StaleRowError):
                self.stream.observe(at, self.user(row))
        assert saved(self.stream) == before

    @rule(back=st.integers(1, 10), row=FULL_ROW)
    def within_memory_alone(self, back: int, row: tuple[float, float]) -> None:
        """Rows too old to be learned, which the memory still sees, are no labels."""
        at = self.model.rows - 1 - PATIENCE - back
        if at >= 0 and PATIENCE + back < self.cal.remembers:
            before, values = head(self.stream), self.user(row)
            self.stream.observe(at, values)
            self.model.cells.update({(at, channel): values[channel] for channel in range(CHANNELS)})
            np.testing.assert_array_equal(head(self.stream), before)

    @rule()
    def save_and_load(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state.ompb"
            self.stream.save(path)
            other = Stream.load(path, self.cal, forecaster())
        np.testing.assert_array_equal(head(other), head(self.stream))
        self.stream = other

    @invariant()
    def head_is_the_batch_solution(self) -> None:
        if not hasattr(self, "model"):
            return
        assert self.stream.rows == self.model.rows
        np.testing.assert_allclose(head(self.stream), self.model.solution(), rtol=0, atol=TOLERANCE)

    @invariant()
    def covariance_is_that_of_all_inputs(self) -> None:
        """Shared by the leads: the inverse of the batch matrix of a lead that has heard of every origin."""
        if not hasattr(self, "model") or self.model.rows < CONTEXT:
            return
        found = posterior(self.stream).covariance
        for channel in range(CHANNELS):
            for m, discount in enumerate(DISCOUNTS):
                expected = np.linalg.inv(self.model.precision(channel, discount, lead=0))
                np.testing.assert_allclose(found[channel, m], expected, atol=TOLERANCE, rtol=1e-8)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(
    max_examples=40,
    stateful_step_count=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


def walked(season: int | None, rows: int, holes: tuple[int, ...] = ()) -> tuple[Stream, Floats]:
    """A stream after some rows, those in ``holes`` missing, and the rows as they should have come."""
    stream = calibrator(season).stream(forecaster())
    values = np.random.default_rng(5).normal(size=(rows, CHANNELS)) * [1.0, 4.0] + [3.0, -20.0]
    for row, value in enumerate(values):
        stream.step(np.full(CHANNELS, np.nan) if row in holes else value)
    return stream, values


@pytest.mark.parametrize("back", range(PATIENCE + 1))
def test_a_duplicate_changes_nothing_at_all(back: int) -> None:
    """Neither the head, nor the gate, nor the intervals."""
    stream, values = walked(3, 20)
    before = saved(stream)
    stream.observe(19 - back, values[19 - back])
    assert saved(stream) == before


@pytest.mark.parametrize("back", range(PATIENCE + 1))
def test_a_row_without_news_changes_nothing_at_all(back: int) -> None:
    stream, _ = walked(None, 20, holes=(17,))
    before = saved(stream)
    stream.observe(19 - back, [np.nan, np.nan])
    assert saved(stream) == before


@pytest.mark.parametrize("season", [None, 3])
@pytest.mark.parametrize("back", range(PATIENCE + 1))
def test_a_late_row_is_learned_up_to_the_last_moment(back: int, season: int | None) -> None:
    """A hole filled after any number of rows up to the patience, beside a second one that stays."""
    stream, values = walked(season, 21 + back, holes=(18, 20))
    stream.observe(20, values[20])
    model = Model(calibrator(season))
    for row, value in enumerate(values):
        model.step(np.full(CHANNELS, np.nan) if row in (18, 20) else value)
    model.hear(20, values[20])
    np.testing.assert_allclose(head(stream), model.solution(), rtol=0, atol=TOLERANCE)


def test_the_gate_counts_a_row_that_is_observed_at_once_like_one_on_time() -> None:
    """The newest row comes empty and its cells a moment later: the members' losses are those of a row on time."""
    on_time, values = walked(3, 20)
    at_once, _ = walked(3, 20, holes=(19,))
    at_once.observe(19, values[19])
    np.testing.assert_allclose(at_once._state.online.gate.rows, on_time._state.online.gate.rows, rtol=1e-12)
    np.testing.assert_allclose(at_once._state.online.gate.loss, on_time._state.online.gate.loss, rtol=1e-12)


@pytest.mark.parametrize("season", [None, 3])
def test_the_model_can_tell_a_wrong_label(season: int | None) -> None:
    """The oracle has teeth: with another value for any one of the newest labels, the batch solution is another."""
    stream, values = walked(season, 20)
    model = Model(calibrator(season))
    for value in values:
        model.step(value)
    np.testing.assert_allclose(head(stream), model.solution(), rtol=0, atol=TOLERANCE)
    for label in [(18, 1, 0), (15, 4, 1), (10, 2, 0)]:
        kept = model.labels[label]
        model.labels[label] = np.zeros(len(DISCOUNTS))
        assert np.abs(head(stream) - model.solution()).max() > 1e3 * TOLERANCE
        model.labels[label] = kept
