"""What a fleet hands out: the forecasts of all its series at one tick, as arrays over series."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ompb.core.arrays import Array
from ompb.core.certificate.certifier import Reading
from ompb.core.counts import along
from ompb.core.record import BLOCK, often_between
from ompb.core.warnings import NEVER, WarningState
from ompb.errors import OptionError
from ompb.floor.names import counted
from ompb.floor.times import Stamp, Times, shown
from ompb.live.library import Library
from ompb.live.outgoing import InUnits
from ompb.rows.frames import BACKENDS
from ompb.types import Floats, ends, half_widths


class FleetCertificate(NamedTuple):
    """The terms of the series' certificates, each (S,); see `ompb.Certificate`."""

    source_risk: Array  # R_S(t)
    gamma: Array
    source_disagreement: Array
    target_disagreement: Array
    kl: Array
    log_term: Array
    posterior_shift: Array
    delta: Array

    @classmethod
    def of(cls, reading: Reading) -> FleetCertificate:
        """What the core has read."""
        source = reading.source
        return cls(
            source.source_risk,
            source.gamma,
            source.source_disagreement,
            reading.target_disagreement,
            source.kl,
            source.log_term,
            source.posterior_shift,
            source.delta,
        )

    @property
    def disagreement_change(self) -> Array:
        """Target less source: below 0 the members agree more than they did on the source."""
        return self.target_disagreement - self.source_disagreement

    @property
    def disagreement(self) -> Array:
        """dis(t) = max(0, disagreement_change)."""
        return self.disagreement_change.clip(0.0)

    @property
    def value(self) -> Array:
        """PB(t), the sum of the three terms."""
        return self.source_risk + self.gamma + 0.5 * self.disagreement


class FleetWarnings(NamedTuple):
    """The signals of the series' warnings, each (S, signals); see `ompb.Alert`."""

    in_force: Array  # whether there is a warning
    since: Array  # the row of its first alarm, counted from the series' own first row
    newest: Array  # the newest row at which it was above its line
    excess: Array  # how far beyond what is usual it was at its strongest

    @classmethod
    def of(cls, state: WarningState, row: int) -> FleetWarnings:
        """As they stand at a row."""
        in_force = (state.newest != NEVER) & (along(row, row) - state.newest <= BLOCK)
        return cls(in_force, state.since, state.newest, state.peak)

    @property
    def rows_between(self) -> Array:
        """Rows between two times that a calm stream does this; the more, the stronger."""
        return often_between(self.excess)


class Parts(NamedTuple):
    """All that a fleet's forecast says of S series; NaN where one has no forecast."""

    units: InUnits
    certificate: FleetCertificate | None
    warning: FleetWarnings
    hidden: Array  # (S, C)


@dataclass(frozen=True, eq=False)
class FleetForecast:
    """The forecasts of S series at one tick, in the user's units. A series without a forecast has NaN everywhere."""

    ids: tuple[str, ...]  # of the series, in the order of all arrays
    at: Stamp  # the tick they were issued at
    origin: NDArray[np.int64]  # the newest row of each series, counted from its own first one: (S,)
    issued: NDArray[np.bool_]  # which series have a forecast: (S,)
    replaced: NDArray[np.int64]  # as in `ompb.Forecast`, in rows of the series; -1 where there is no new model: (S,)
    times: Times | None  # of the rows they speak of, (H,); None if nobody gave any
    names: tuple[str, ...]  # of the channels
    signals: tuple[str, ...]  # of the warnings
    levels: Floats  # interval levels whose half-widths are tracked online: (levels,)
    bounds: Any  # what no value can lie below or above: (2, C); None if nobody gave any
    parts: Parts
    library: Library

    def __repr__(self) -> str:
        horizon, channels = self.mean.shape[1:]
        size = f"{len(self.ids)} series, {counted(horizon, 'lead')}, {counted(channels, 'channel')}"
        return f"FleetForecast(tick {shown(self.at)}, {size})"

    @property
    def mean(self) -> Array:
        """(S, H, C)."""
        return self.parts.units.mean

    @property
    def base(self) -> Array:
        """What the bare forecaster said: (S, H, C)."""
        return self.parts.units.base

    @property
    def gate(self) -> Array:
        """How far the correction is trusted: (S, C)."""
        return self.parts.units.gate

    @property
    def novelty(self) -> Array | None:
        """Distance of base forecast and memory, 1 = rare on the source: (S, C); None without memory."""
        return self.parts.units.novelty

    @property
    def sd(self) -> Array:
        """Predictive standard deviation: (S, H, C)."""
        return self.parts.units.sd

    @property
    def multipliers(self) -> Array:
        """Half-widths below and above at each level, in sd: (S, 2, levels, H, C), or H = 1 for all leads."""
        return self.parts.units.multipliers

    @property
    def expected_error(self) -> Array:
        """Mean absolute error over the leads that is to be expected: (S, C)."""
        return self.parts.units.expected_error

    @property
    def certificate(self) -> FleetCertificate | None:
        """Its terms as arrays (S,)."""
        return self.parts.certificate

    @property
    def warning(self) -> FleetWarnings:
        """The warnings' signals as arrays (S, signals)."""
        return self.parts.warning

    @property
    def hidden(self) -> Array:
        """Newest cells that were not believed and count as missing: (S, C)."""
        return self.parts.hidden

    def interval(self, level: float) -> tuple[Array, Array]:
        """Lower and upper end, each (S, H, C), of the central interval of that level, within the bounds."""
        return ends(self.mean, self.sd, half_widths(level, self.levels, self.multipliers), self.bounds)

    def frame(self, backend: Literal["pandas", "polars", "pyarrow"] = "polars") -> Any:
        """One line per (series, channel, lead), as a frame of pandas, polars or pyarrow.

        ``unique_id`` is the id of a series of one channel, else id/channel. ``ds`` and ``cutoff`` are times if there
        are any, else ticks.
        """
        if backend not in BACKENDS or find_spec(backend) is None:
            raise OptionError(f"backend = {backend!r} is not here; accepted, if installed: {', '.join(BACKENDS)}.")
        import narwhals as nw  # frames only: keeps `import ompb` light

        host = self.library.host
        series, horizon, channels = self.mean.shape
        shape = (series, channels, horizon)
        ahead = np.arange(1, horizon + 1)
        named = self.ids if channels == 1 else [f"{one}/{name}" for one in self.ids for name in self.names]

        def tall(values: Array) -> NDArray[Any]:
            return np.ascontiguousarray(host(values).swapaxes(1, 2)).ravel()

        columns = {
            "unique_id": np.repeat(np.asarray(named), horizon),
            "ds": np.broadcast_to(self.at + ahead if self.times is None else self.times, shape).ravel(),
            "cutoff": np.full(series * channels * horizon, self.at),
            "lead": np.broadcast_to(ahead, shape).ravel(),
            "base": tall(self.base),
            "y_hat": tall(self.mean),
        }
        for level in (0.8, 0.95):
            lower, upper = self.interval(level)
            columns[f"lower_{level * 100:.0f}"], columns[f"upper_{level * 100:.0f}"] = tall(lower), tall(upper)
        columns["gate"] = np.repeat(host(self.gate).ravel(), horizon)
        if self.certificate is not None:
            columns["certificate"] = np.repeat(host(self.certificate.value), channels * horizon)
        return nw.from_dict(columns, backend=backend).to_native()
