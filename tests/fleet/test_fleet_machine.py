"""A fleet under ticks that come in order, again, too early, with rows missing or late, beside plain streams."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from small_fleets import CHANNELS, PATIENCE, assert_equal, calibrator, last_season

import ompb
from ompb.types import Floats

CELL = st.one_of(st.just(np.nan), st.floats(-3, 3, width=32), st.just(400.0))
ROWS = st.lists(st.lists(CELL, min_size=CHANNELS, max_size=CHANNELS), min_size=6, max_size=6).map(np.asarray)
NAMES = ("a", "b", "c", "d", "e", "f")


class FleetMachine(RuleBasedStateMachine):
    @initialize(own=st.booleans(), series=st.integers(1, 3))
    def start(self, own: bool, series: int) -> None:
        self.cals = {one: calibrator(number if own else 0) for number, one in enumerate(NAMES)}
        self.fleet = ompb.Fleet(self.cals, last_season, NAMES[:series], batched=False)
        self.streams = {one: self.cals[one].stream(last_season) for one in NAMES[:series]}
        self.tick = 0

    def values(self, rows: Floats) -> Floats:
        """In source standard deviations, for the series that are here."""
        here = list(self.streams)
        each = [
            self.cals[one].centre + self.cals[one].scale * row for one, row in zip(here, rows[: len(here)], strict=True)
        ]
        return np.stack(each)

    @rule(rows=ROWS, by_name=st.booleans())
    def step(self, rows: Floats, by_name: bool) -> None:
        values = self.values(rows)
        given = dict(zip(self.streams, values, strict=True)) if by_name else values
        out = self.fleet.step(given, at=self.tick)
        assert out is not None
        for place, (stream, row) in enumerate(zip(self.streams.values(), values, strict=True)):
            assert_equal(out, place, stream.step(row))
        self.tick += 1

    @precondition(lambda self: self.tick > 0)
    @rule(rows=ROWS, back=st.integers(1, 5))
    def repeat(self, rows: Floats, back: int) -> None:
        assert self.fleet.step(self.values(rows), at=self.tick - min(back, self.tick)) is None

    @precondition(lambda self: self.tick > 0)
    @rule(rows=ROWS, ahead=st.integers(1, 5))
    def leave_out(self, rows: Floats, ahead: int) -> None:
        with pytest.raises(ompb.GapError) as told:
            self.fleet.step(self.values(rows), at=self.tick + ahead)
        assert told.value.expected == self.tick

    @precondition(lambda self: self.tick > 0)
    @rule(rows=ROWS, age=st.integers(0, PATIENCE + 2))
    def late(self, rows: Floats, age: int) -> None:
        values = self.values(rows)
        told = {
            one: row
            for (one, stream), row in zip(self.streams.items(), values, strict=True)
            if stream.rows > age and not np.isnan(row).all()
        }
        if age < self.tick and told:
            self.fleet.observe(self.tick - 1 - age, told)
            for one, row in told.items():
                self.streams[one].observe(self.streams[one].rows - 1 - age, row)

    @precondition(lambda self: len(self.streams) < len(NAMES))
    @rule()
    def add(self) -> None:
        new = next(one for one in NAMES if one not in self.streams)
        self.fleet.add([new], self.cals)
        self.streams[new] = self.cals[new].stream(last_season)

    @precondition(lambda self: len(self.streams) > 1)
    @rule(number=st.integers(0, 5))
    def drop(self, number: int) -> None:
        gone = list(self.streams)[number % len(self.streams)]
        self.fleet.drop([gone])
        del self.streams[gone]

    @rule(number=st.integers(0, 5))
    def take_and_put(self, number: int) -> None:
        one = list(self.streams)[number % len(self.streams)]
        stream = self.fleet.take(one)
        assert stream.hidden == self.streams[one].hidden
        assert stream.realised_risk() == self.streams[one].realised_risk()
        self.fleet.put(one, stream)

    @rule()
    def save_and_load(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            self.fleet.save(Path(folder) / "fleet")
            here = {one: self.cals[one] for one in self.streams}
            shared = len({id(cal) for cal in here.values()}) == 1
            owners = next(iter(here.values())) if shared else here
            again = ompb.Fleet.load(Path(folder) / "fleet", owners, last_season, batched=False)
        assert (again.ids, again.ticks) == (tuple(self.streams), self.tick)
        self.fleet = again


TestFleetMachine = FleetMachine.TestCase
TestFleetMachine.settings = settings(
    max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
