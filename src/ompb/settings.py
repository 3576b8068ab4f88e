"""Every option of the calibrator, with its default and the range it accepts."""

from __future__ import annotations

import dataclasses
import difflib
import math
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, get_args, get_type_hints

from ompb.errors import OptionError
from ompb.types import Kind

GateMode = Literal["channel", "shared", "open"]
DisagreementMode = Literal["clipped", "normalised", "unclipped"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of `Calibrator.fit`. One default configuration serves all data; the rest are ablations.

    >>> Settings.of(gate="shared").gate
    'shared'
    >>> Settings.of(gates="shared")
    Traceback (most recent call last):
    ompb.errors.OptionError: unknown option 'gates'; did you mean 'gate'? ...
    """

    # the head
    discounts: tuple[float, ...] = (0.999,)  # one head each: how much of the past survives a row
    anchor: float = 800.0  # how many windows the source's word is worth, for ever
    basis: int = 10  # functions over the horizon that the features are projected on
    profile: bool = True  # seasonal profile as features and as a member
    online: bool = True  # False: the head stays as the source left it
    patience: int = 32  # rows back that a late cell is still learned

    # the gate
    gate: GateMode = "channel"  # one per channel, one for all, or always open
    backbone_prior: float = 0.6  # weight of the bare forecaster before any outcome; 1 = closed for ever
    gate_discount: float = 0.997
    evidence: float = 12.0  # weight ~ loss ** -evidence
    caution: float = 200.0  # rows in which all members are taken to do as well as the best

    # the certificate
    certificate: bool = True
    kind: Kind = "freedman"
    delta: float = 0.05
    certificate_share: float = 0.25  # last part of the source kept out of all learning
    stride: int | None = None  # rows between certificate windows; None = horizon, outcomes do not overlap
    reread: int = 32  # every so many steps, so many certificate windows are read again
    ring: int = 64  # target windows the disagreement looks back on
    draws: int = 0  # K forecasts drawn per window; 0 = expectation in closed form
    disagreement: DisagreementMode = "clipped"
    tau_d_factor: float = 3.0  # times the median gap on the source; at 1 half the source is clipped, which hides shift
    variance_factor: float = 1.0
    posterior_scale: float = 1.0  # factor on the posterior variance (miscalibration on purpose)

    # intervals
    interval_discount: float = 0.99
    conformal_rate: float = 0.05

    @classmethod
    def of(cls, **options: Any) -> Settings:
        """Settings with some options changed; an unknown or unfit one raises `OptionError`."""
        known = [f.name for f in dataclasses.fields(cls)]
        for name in options:
            if name not in known:
                close = difflib.get_close_matches(name, known, 1)
                hint = f"did you mean {close[0]!r}? " if close else ""
                raise OptionError(f"unknown option {name!r}; {hint}Accepted: {', '.join(known)}.")
        try:
            return cls(**options)
        except TypeError as error:
            given = ", ".join(f"{name} = {value!r}" for name, value in options.items())
            raise OptionError(f"an option has the wrong type ({given}): {error}. See ompb.Settings.") from error

    def __post_init__(self) -> None:
        remembered = "one or more numbers from 0.5 to 1"
        _require(not isinstance(self.discounts, str), "discounts", self.discounts, remembered)
        object.__setattr__(self, "discounts", tuple(self.discounts))
        hints = get_type_hints(Settings)
        for name in ("gate", "kind", "disagreement"):
            accepted = get_args(hints[name])
            _require(getattr(self, name) in accepted, name, getattr(self, name), f"one of {', '.join(accepted)}")
        for name in ("profile", "online", "certificate"):
            _require(isinstance(getattr(self, name), bool), name, getattr(self, name), "True or False")
        _require(len(self.discounts) > 0, "discounts", self.discounts, remembered)
        for value in self.discounts:
            # below, hardly a row is remembered, and rounding errors are all that is left of a variance
            _require(0.5 <= _number(value) <= 1, "discounts", value, remembered)
        for name in ("backbone_prior", "gate_discount", "interval_discount"):
            _require(0 < _number(getattr(self, name)) <= 1, name, getattr(self, name), "a number in (0, 1]")
        _require(
            self.gate != "open" or self.backbone_prior < 1,
            "backbone_prior",
            self.backbone_prior,
            "a number below 1 with an open gate, which leaves the backbone out",
        )
        for name in ("delta", "certificate_share"):
            _require(0 < _number(getattr(self, name)) < 1, name, getattr(self, name), "a number inside (0, 1)")
        for name in ("anchor", "evidence", "caution", "tau_d_factor", "variance_factor", "posterior_scale"):
            _require(_number(getattr(self, name)) > 0, name, getattr(self, name), "a positive number")
        for name in ("basis", "reread", "ring"):
            _require(_is_count(getattr(self, name), 1), name, getattr(self, name), "a whole number from 1")
        _require(_is_count(self.patience, 0), "patience", self.patience, "a whole number from 0")
        _require(_is_count(self.draws, 0) and self.draws != 1, "draws", self.draws, "0, or a whole number from 2")
        _require(
            self.stride is None or _is_count(self.stride, 1), "stride", self.stride, "None, or a whole number from 1"
        )
        _require(_number(self.conformal_rate) >= 0, "conformal_rate", self.conformal_rate, "a number from 0")


def _number(value: object) -> float:
    """A finite number as it is; NaN, which lies in no range, for anything else."""
    if not isinstance(value, Real) or isinstance(value, bool):
        return math.nan
    number = float(value)
    return number if math.isfinite(number) else math.nan


def _is_count(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _require(holds: bool, name: str, value: object, accepted: str) -> None:
    if not holds:
        raise OptionError(f"option {name} = {value!r} is out of range; accepted: {accepted}.")
