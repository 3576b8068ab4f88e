"""Fleet: the online stage for many live series at once. A tick's rows go in, all their forecasts come out."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ompb import archive
from ompb.calibrator import Calibrator
from ompb.core.arrays import Array
from ompb.errors import InputError, OptionError, StaleRowError, TimeOrderError
from ompb.fleet.asking import answered
from ompb.fleet.file import FleetState, Now, loaded, owner, saved
from ompb.fleet.forecast import FleetForecast
from ompb.fleet.groups import Group, cohort_of, moved, with_fresh, with_joined, without
from ompb.fleet.history import as_histories, clock_after, with_history
from ompb.fleet.parts import all_parts
from ompb.fleet.rows import as_futures, as_tick_rows
from ompb.floor import checks
from ompb.floor.names import listed
from ompb.floor.turns import Turns, copied, in_turn
from ompb.live.asking import ASK, Asker, as_bases, as_calibrator, require_fit
from ompb.live.library import HOST, Library
from ompb.live.likeness import require_alike, require_same_rows, require_told_apart
from ompb.live.outgoing import TRACKED
from ompb.live.placing import Place
from ompb.live.ticks import Ticks
from ompb.seam.by_id import as_ids, places_of, require_for_all
from ompb.seam.query import AnyForecaster, as_forecaster
from ompb.stream import Stream

# What to do with forecasts that are recorded by row.
HAND_IN = "hand them in with each tick: Fleet(calibrators, None, ids), then step(rows, base=...)"


class Fleet:
    """Many series as one array: a tick brings a row of each, and all are forecast at once.

    Each of them learns as a `Stream` of its own would, and issues the same forecasts. Ticks follow each other: one that
    has been closed is skipped, so a log can be replayed from anywhere before the next one, and one that is left out
    raises `GapError`. A row that is not there when its tick closes is missing, and may come late by `observe`.

    Series that begin with the same tick, have base forecasts at the same ticks and calibrators of one shape (as many
    certificate windows, a memory as long) are computed together. Others form groups, one after the other: let series
    join in crowds, not one by one.

    Args:
        calibrators: one for all series, or a mapping by id of calibrators that were fitted alike.
        forecaster: asked once a tick about all series (n = S), or with ``batched=False`` once for each of them. None:
            each tick is handed its base forecasts.
        ids: distinct texts; the order of all arrays.
        device: None for NumPy; "cpu", "cuda" and the like for torch.
        dtype: of the state, "float64" or "float32", which is refused where it has too few digits for the values.
        batched: whether the forecaster is asked about all series at once.
        compiled: whether torch compiles the step, and a GPU records it: faster there, once the first forecasts, which
            then take half a minute or so, are out.

    >>> import numpy as np, ompb
    >>> hours = np.arange(600)
    >>> load = (10 + np.sin(2 * np.pi * hours / 24) + 0.1 * np.random.default_rng(0).normal(size=600))[:, None]
    >>> forecaster = ompb.SeasonalProfile(horizon=12, season=24)
    >>> cal = ompb.Calibrator.fit(forecaster, load, context=48, horizon=12, season=24)
    >>> fleet = ompb.Fleet(cal, forecaster, ["north", "south"])
    >>> for tick in range(60):
    ...     out = fleet.step({"north": load[tick], "south": load[tick] + 3}, at=tick)
    >>> out.ids, out.mean.shape, fleet.step({}, at=7) is None
    (('north', 'south'), (2, 12, 1), True)
    """

    def __init__(
        self,
        calibrators: Calibrator | Mapping[str, Calibrator],
        forecaster: AnyForecaster | None,
        ids: Iterable[str],
        *,
        device: str | None = None,
        dtype: str | None = None,
        batched: bool = True,
        compiled: bool = False,
    ) -> None:
        self._forecaster = None if forecaster is None else as_forecaster(forecaster)
        self._batched = checks.flag("batched", batched)
        self._library = Library(device, dtype or "float64", checks.flag("compiled", compiled))
        self._turns = Turns("fleet")
        self._default = None if isinstance(calibrators, Mapping) else calibrators
        self._now = self._with_new(Now((), (), Ticks()), as_ids(ids), calibrators)

    def __repr__(self) -> str:
        return f"Fleet({len(self.ids)} series, {self.ticks} ticks, of {self._cal!r})"

    def __getstate__(self) -> dict[str, Any]:
        # a copy by `copy.copy`, too, writes to buffers of its own
        return copied(lambda: self._now, lambda now: {**self.__dict__, "_turns": None, "_now": now.copy()}, "fleet")

    def __setstate__(self, saved: dict[str, Any]) -> None:
        self.__dict__ = {**saved, "_turns": Turns("fleet")}

    @property
    def ids(self) -> tuple[str, ...]:
        """Of the series, in the order of all arrays."""
        return self._now.ids

    @property
    def ticks(self) -> int:
        """How many ticks have been closed."""
        return self._now.ticks.closed

    @property
    def newest(self) -> Any:
        """The newest tick that was closed, or that of a history before the first one; None if there is none."""
        return self._now.ticks.newest

    @in_turn
    def step(self, rows: Any, *, at: Any = None, future: Any = None, base: Any = ASK) -> FleetForecast | None:
        """Close the next tick and forecast from it; None for a tick that was closed before, which changes nothing.

        Args:
            rows: (S, C) in the order of ``ids``, NaN where missing; or a mapping by id of rows (C,), or a frame with a
                line for each series, named by a column ``unique_id`` or by a pandas index of ids: those that are not
                there are missing.
            at: the tick: a whole number, counted on from that of the first one, or a time if the calibrators have
                times. Without it the next one is meant.
            future: covariates known ahead, (S, horizon, K), also by id, or (horizon, K) for all, handed to the
                forecaster.
            base: the base forecasts (S, horizon, C), if the forecaster is not to be asked, or a mapping by id; NaN for
                a series that has none, None for no forecast at all. An array on another device than the processor is
                taken as it is, since nobody waits for it: all of it must be finite.

        Raises:
            GapError: a tick beyond the next one.
            InputError: rows, tick or covariates cannot be used.
            ForecasterError: the forecaster failed, or broke its contract; base forecasts cannot be used.
            BusyError: another call is at work.

        Any of them leaves the fleet as it was. What is about one series begins with its id.
        """
        now = self._now
        ticks = now.ticks.after(at, self._cal.grid)
        if ticks is None:
            return None
        values = as_tick_rows(rows, now.ids, self._cal.names, self._library)
        out, groups = self._stepped(now, ticks, values, future, base)
        self._now = Now(now.ids, groups, ticks)
        return out

    @in_turn
    def remember(self, history: Any, *, times: Any = None) -> None:
        """Take in rows known before the first tick, which is then forecast from; nothing is learned from them.

        Args:
            history: (S, T, C) in the order of ``ids``; or a mapping by id of arrays (T, C) or frames, or a long frame
                (unique_id, ds, y). Series may know as many rows as they like, or none.
            times: of the rows, (T,) for all or by id, if frames do not bring them: all end at the same one, which the
                first tick follows.

        Raises `InputError` for rows or times that cannot be used, `StaleRowError` once there is a tick or a history.
        The fleet is then as it was.
        """
        now, cal = self._now, self._cal
        if now.ticks.newest is not None or any(group.state.known for group in now.groups):
            taken = f"{now.ticks.closed} ticks have been closed" if now.ticks.closed else "the fleet has a history"
            raise StaleRowError(f"{taken}; history comes once, before the first tick: start a new fleet.")
        known = as_histories(history, times, now.ids, cal)
        self._now = Now(now.ids, with_history(now.groups, known), clock_after(known, now.ids))

    @in_turn
    def observe(self, at: Any, rows: Any) -> None:
        """Take in cells of an older tick, as `step` takes rows, NaN elsewhere: see `Stream.observe`.

        Raises `StaleRowError` for a tick not yet closed, or too old to be of use. The fleet is then as it was.
        """
        now, cal = self._now, self._cal
        values = as_tick_rows(rows, now.ids, cal.names, self._library)
        age = now.ticks.age(at, cal.grid)
        kept = max(cal.settings.patience, *(group.cohort.cal.remembers - 1 for group in now.groups))
        if age > kept:
            raise StaleRowError(f"tick {at!r} is {age} ticks old; accepted: up to {kept}.")
        groups = tuple(self._observed(now, group, age, group.rows(values)) for group in now.groups)
        self._now = Now(now.ids, groups, now.ticks)

    @in_turn
    def replace(self, forecaster: AnyForecaster | None, calibrators: Calibrator | Mapping[str, Calibrator]) -> None:
        """Go on with another model for all series, from the next tick on: see `Stream.replace`.

        Series that share a clock are computed together again, wherever they had forecasts before.
        """
        now, each = self._now, each_of(calibrators, self.ids)
        new = None if forecaster is None else as_forecaster(forecaster)
        require_fit(new, each[0])
        require_for_all(new, len(each), HAND_IN)
        require_alike(each, now.ids)
        require_told_apart(each, now.ids, self._library)
        require_same_rows(each[0], self._cal)
        groups: tuple[Group, ...] = ()
        for group in now.groups:
            for part in group.taken_over([each[place] for place in group.places]):
                groups = with_joined(groups, part)
        default = None if isinstance(calibrators, Mapping) else calibrators
        after = {"_forecaster": new, "_default": default, "_now": Now(now.ids, groups, now.ticks)}
        self.__dict__ = {**self.__dict__, **after}  # one assignment, as for a tick

    @in_turn
    def add(self, ids: Iterable[str], calibrators: Calibrator | Mapping[str, Calibrator] | None = None) -> None:
        """Let series join with the next tick; they come last in ``ids``. Without calibrators, that of the others."""
        with_calibrators = self._default if calibrators is None else calibrators
        if with_calibrators is None:
            raise OptionError("the series of this fleet have calibrators of their own; pass calibrators= by id.")
        self._now = self._with_new(self._now, as_ids(ids), with_calibrators)

    @in_turn
    def drop(self, ids: Iterable[str]) -> None:
        """Let series leave, but not all of them."""
        now = self._now
        leaving = np.asarray(places_of(as_ids(ids), now.ids, "drop"))
        if len(leaving) == len(now.ids):
            raise InputError("these are all series of the fleet; keep one, or let go of the fleet.")
        staying = tuple(np.delete(np.asarray(now.ids, dtype=object), leaving).tolist())
        self._now = Now(staying, without(now.groups, leaving), now.ticks)

    def take(self, one: str) -> Stream:
        """A series as an ordinary stream, which goes on from here. The series stays, and knows nothing of it."""
        return copied(lambda: self._now, lambda now: self._alone(now, one), "fleet")

    @in_turn
    def put(self, one: str, stream: Stream) -> None:
        """Let a stream go on as a series of this fleet: in the place of the one of that id, else as a new one.

        Its newest row is that of the newest tick; before the first tick, the clock begins where the stream is, which
        may have a history. The stream stays, and knows nothing of it.
        """
        if not isinstance(stream, Stream):
            raise InputError(f"what is put in for {one!r} is a {type(stream).__name__}; accepted: an ompb.Stream.")
        now, (cohort, _, state) = self._now, stream.__getstate__()  # which may go on, and writes to its own buffers
        cal = cohort.cal
        require_alike([self._cal, cal], [now.ids[0], one])
        require_told_apart([cal], [one], self._library)
        ticks = now.ticks
        if ticks.newest is None and state.timed:  # the clock begins where this stream is
            ticks = Ticks.behind(Place(cal.grid, state.rows, True, int(state.newest[0])).newest)
        expected = int(np.asarray(ticks.newest).astype(np.int64)) if ticks.timed else 0
        if state.timed != ticks.timed or int(state.newest[0]) != expected:
            raise TimeOrderError(
                f"the stream of {one!r} has not come as far as the fleet, whose newest tick is {ticks.newest}; "
                "bring one whose newest row is of that time."
            )
        ids, groups, place = (*now.ids, *as_ids([one])), now.groups, len(now.ids)
        if one in now.ids:
            ids, place = now.ids, now.ids.index(one)
            groups = without(groups, np.asarray([place]), closes_up=False)
        require_for_all(self._forecaster, len(ids), HAND_IN)
        new = Group.of(cohort_of([cal], self._library), moved(state, self._library), np.asarray([place]))
        self._now = Now(ids, with_joined(groups, new), ticks)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all series to one file, at any time, with the tick inside; calibrators are saved on their own."""
        now = copied(lambda: self._now, Now.copy, "fleet")
        archive.write(path, "fleet", saved(now), of=owner(now.ids, now.calibrators))

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        calibrators: Calibrator | Mapping[str, Calibrator],
        forecaster: AnyForecaster | None,
        *,
        device: str | None = None,
        dtype: str | None = None,
        batched: bool = True,
        compiled: bool = False,
    ) -> Fleet:
        """Continue a saved fleet as if it had never stopped. Raises `FormatError` under other calibrators.

        A mapping of calibrators may have more ids than the fleet.
        """

        def of(state: FleetState) -> str:
            return owner(state.ids, each_of(calibrators, state.ids))

        state = archive.read(path, "fleet", FleetState, of=of)
        fleet = cls(calibrators, forecaster, state.ids, device=device, dtype=dtype, batched=batched, compiled=compiled)
        fleet._now = loaded(path, state, each_of(calibrators, state.ids), fleet._library)
        return fleet

    @property
    def _cal(self) -> Calibrator:
        """Of one of the series: how they are asked and what they issue is alike for all."""
        return self._now.groups[0].cohort.cal

    def _with_new(self, now: Now, ids: tuple[str, ...], calibrators: Calibrator | Mapping[str, Calibrator]) -> Now:
        """With new series, which have seen nothing yet."""
        here = sorted(set(ids) & set(now.ids))
        if here:
            raise OptionError(f"ids = {listed(here)} are here already; accepted: new ones.")
        each = each_of(calibrators, ids)
        first = now.groups[0].cohort.cal if now.groups else each[0]
        require_fit(self._forecaster, first)
        require_for_all(self._forecaster, len(now.ids) + len(ids), HAND_IN)
        require_alike([first, *each], [(now.ids or ids)[0], *ids])
        require_told_apart(each, ids, self._library)
        return Now((*now.ids, *ids), with_fresh(now.groups, each, self._library, len(now.ids)), now.ticks)

    def _alone(self, now: Now, one: str) -> Stream:
        """A series as a stream, with buffers of its own."""
        place = places_of([one], now.ids, "take")[0]
        group = next(group for group in now.groups if place in group.places)
        alone = group.part(np.flatnonzero(group.places == place))
        stream = Stream(alone.cohort.cal, self._forecaster)
        stream._state = moved(alone.state, HOST)
        return stream

    def _observed(self, now: Now, group: Group, age: int, told: Array) -> Group:
        """A group once cells (s, C) of a row so many ticks back are known."""
        late = group.state.rows - 1 - age
        if late >= 0:
            return group._replace(state=group.cohort.observe(group.state, late, told))
        early = group.places[~np.isnan(self._library.host(told)).all(axis=1)]
        if len(early):
            raise StaleRowError(
                f"that tick lies before {listed([now.ids[place] for place in early])} joined the fleet."
            )
        return group

    def _stepped(
        self, now: Now, ticks: Ticks, values: Array, future: Any, base: Any
    ) -> tuple[FleetForecast, tuple[Group, ...]]:
        """The forecast and the groups after the rows (S, C) of a tick."""
        assert ticks.newest is not None  # it is the tick being closed
        cal, stamp = self._cal, ticks.newest if ticks.timed else None
        given = base if base is ASK or base is None or self._library.is_afar(base) else as_bases(base, now.ids, cal)
        ahead = as_futures(future, now.ids, cal.horizon)
        entered = [group.enter(values) for group in now.groups]
        asker = Asker(cal, self._forecaster, self._batched)
        groups, answers = answered(now.ids, now.groups, entered, asker, stamp, ahead, given)
        if len(groups) > len(now.groups):  # some series were left out
            entered = [group.enter(values) for group in groups]
        after, parts = [], []
        for group, one, answer in zip(groups, entered, answers, strict=True):
            part, left = group.leave(one, stamp, answer)
            after.append(left)
            parts.append(part)
        (origin, replaced), spoken = np.empty((2, len(now.ids)), dtype=np.int64), np.empty(len(now.ids), dtype=bool)
        for group, answer in zip(after, answers, strict=True):
            origin[group.places], spoken[group.places] = group.state.rows - 1, answer is not None
            replaced[group.places] = -1 if group.state.replaced is None else group.state.replaced
        out = FleetForecast(
            ids=now.ids,
            at=ticks.newest,
            origin=origin,
            issued=spoken,
            replaced=replaced,
            times=None if stamp is None or cal.grid is None else cal.grid.after(stamp, cal.horizon),
            names=cal.names,
            signals=after[0].cohort.online.warnings.names,
            levels=TRACKED,
            bounds=after[0].cohort.bounds,
            parts=all_parts([group.places for group in after], parts),
            library=self._library,
        )
        return out, tuple(after)


def each_of(calibrators: Calibrator | Mapping[str, Calibrator], ids: Sequence[str]) -> list[Calibrator]:
    """The calibrator of each series."""
    if not isinstance(calibrators, Mapping):
        return [as_calibrator(calibrators)] * len(ids)
    lacking = [one for one in ids if one not in calibrators]
    if lacking:
        raise OptionError(f"calibrators lack {listed(lacking)}; pass one for each id, or one for all.")
    return [as_calibrator(calibrators[one]) for one in ids]
