"""Every option of the calibrator, with its default and the range it accepts: the public face of all stages."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from ompb.core.certificate.certifier import CertificateOptions
from ompb.core.certificate.disagreement import DisagreementMode
from ompb.core.certificate.kinds import Kind
from ompb.core.evidence import EvidenceOptions
from ompb.core.gate import GateMode, GateOptions
from ompb.core.guard import GuardOptions
from ompb.core.intervals import IntervalOptions, IntervalRule
from ompb.core.members.backbone import NAME as BACKBONE
from ompb.core.members.contract import Member, MemberOptions
from ompb.core.mixture import MEMBERS
from ompb.core.record import BLOCK, RAREST
from ompb.core.warnings import WarningOptions
from ompb.errors import OptionError
from ompb.floor import checks
from ompb.floor.shapes import LARGEST, Tagged

# Draws more than this cost a step their square and say no more than the expectation in closed form.
MOST_DRAWS = 100
# Warnings more often than about once in two blocks of a record would never end.
MOST_OFTEN = 2 * BLOCK
# What `Calibrator.fit` takes by name beside the settings.
PARAMETERS = ("context", "horizon", "season", "unseen", "times", "future", "every", "progress")


@dataclass(frozen=True, slots=True)
class Settings:
    """Options of `Calibrator.fit`. One default configuration serves all data; the rest are ablations.

    >>> Settings.of(gate="shared").gate
    'shared'
    >>> Settings.of(gates="shared")
    Traceback (most recent call last):
    ompb.errors.OptionError: unknown option 'gates'; did you mean 'gate'? ...
    """

    # the members
    members: tuple[str, ...] = tuple(member.tag for member in MEMBERS)  # who speaks in the mixture
    discounts: tuple[float, ...] = (0.999,)  # one head each: how much of the past survives a row
    anchor: float = 800.0  # how many windows the source's word is worth, for ever
    basis: int = 10  # functions over the horizon that the features are projected on
    profile: bool = True  # seasonal profile as features and as a member
    spans: tuple[int, ...] = (1, 2, 4)  # lengths of memory that are tried, in windows; the source says which pay
    online: bool = True  # False: the head stays as the source left it
    patience: int = 32  # rows back that a late cell is still learned

    # the gate
    gate: GateMode = "channel"  # one per channel, one for all, or always open
    backbone_prior: float = 0.5  # weight of the bare forecaster before any outcome; 1 = closed for ever
    gate_discounts: tuple[float, ...] = (0.997, 0.98)  # one speed each: how much of what was heard survives a row
    cautions: tuple[float, ...] = (200.0, 20.0)  # of each speed: rows in which all members do as well as the best
    evidence: float = 12.0  # weight ~ loss ** -evidence
    novelty: float = 4.0  # what the distance to memory says against the backbone before outcomes do; 0 = nothing
    novelty_fade: float = 3.0  # rows of outcomes that halve it

    # the guard
    guard: float | None = 20.0  # standard deviations off its forecast at which a cell is not believed; None = never
    guard_rows: int = 6  # cells in a row that are not believed; the next one is

    # the certificate
    certificate: bool = True
    kind: str = "betting"  # of the complexity term
    delta: float = 0.05  # each reading holds with probability 1 - delta
    uniform: bool = False  # True: all readings hold at once, and later ones are wider
    certificate_share: float = 0.25  # last part of the source kept out of all learning
    stride: int | None = None  # rows between certificate windows; None = horizon; below it the value is no bound
    reread: int = 32  # every so many steps, so many certificate windows are read again
    ring: int = 8  # target windows the disagreement looks back on
    draws: int = 0  # K forecasts drawn per window; 0 = expectation in closed form
    disagreement: DisagreementMode = "clipped"
    tau_d_factor: float = 3.0  # times the median gap on the source; at 1 half the source is clipped, which hides shift
    variance_factor: float = 1.0  # on the variance that "freedman" and "subgamma" estimate
    posterior_scale: float = 1.0  # factor on the posterior variance (miscalibration on purpose)

    # intervals
    intervals: str = "conformal"  # the rule that keeps their coverage
    interval_discount: float = 0.99  # what of the variance survives a row; half a horizon is remembered in any case
    conformal_rate: float = 0.5  # per horizon: a row whose leads all lie outside moves ln(half-width) by rate / H
    lower: tuple[float | None, ...] | None = None  # what no value lies below: one number, or one for each channel
    upper: tuple[float | None, ...] | None = None  # what no value lies above; both in the user's units

    # warnings
    warning_rows: float = 1500.0  # a signal of a calm stream gives a warning once in so many rows

    @classmethod
    def of(cls, **options: Any) -> Settings:
        """Settings with some options changed; an unknown or unfit one raises `OptionError`."""
        known = [field.name for field in dataclasses.fields(cls)]
        for name in options:
            if name not in known:
                raise _unknown(name, known)
        return cls(**options)

    def changed(self) -> str:
        """The options that are not at their defaults, in words; empty if all are.

        >>> Settings.of(gate="open").changed()
        'gate = open'
        """
        default = dataclasses.asdict(Settings())
        return ", ".join(f"{k} = {v}" for k, v in dataclasses.asdict(self).items() if v != default[k])

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, check(name, getattr(self, name)))
        if self.gate == "open" and self.backbone_prior == 1:
            raise checks.refuse("backbone_prior", 1.0, "a number below 1 with an open gate, which leaves it out")
        if len(self.cautions) != len(self.gate_discounts):
            raise checks.refuse("cautions", self.cautions, f"one for each of gate_discounts = {self.gate_discounts}")
        _require_ordered(self.lower, self.upper)

    def member_options(self, spans: tuple[int, ...] = ()) -> MemberOptions:
        """For the members, of which the memory keeps these spans."""
        return MemberOptions(self.discounts, self.anchor, self.patience, spans, self.posterior_scale)

    def gate_options(self) -> GateOptions:
        """For the gate."""
        return GateOptions(self.gate, self.gate_discounts, self.cautions, self.evidence, waits=self.online)

    def evidence_options(self) -> EvidenceOptions:
        """For the evidence before any outcome."""
        return EvidenceOptions(self.novelty, self.novelty_fade)

    def guard_options(self) -> GuardOptions:
        """For the guard."""
        return GuardOptions(self.guard, self.guard_rows)

    def interval_options(self) -> IntervalOptions:
        """For the intervals."""
        return IntervalOptions(self.interval_discount, self.conformal_rate)

    def warning_options(self) -> WarningOptions:
        """For the warnings."""
        return WarningOptions(self.warning_rows)

    def certificate_options(self) -> CertificateOptions:
        """For the certificate."""
        return CertificateOptions(
            self.kind, self.delta, self.uniform, self.reread, self.ring, self.disagreement, self.variance_factor
        )


def _unknown(name: str, known: list[str]) -> OptionError:
    """The error that names what is known, the nearest of it first."""
    if name in PARAMETERS:
        return OptionError(
            f"{name!r} is a parameter of Calibrator.fit and no setting; accepted: {', '.join(known)}. Pass {name}= to "
            "Calibrator.fit by its name."
        )
    close = difflib.get_close_matches(name, [*known, *PARAMETERS], 1)
    accepted = f"did you mean {close[0]!r}? Accepted" if close else "accepted"
    beside = f"and to Calibrator.fit: {', '.join(PARAMETERS)}"
    return OptionError(f"unknown option {name!r}; {accepted}: {', '.join(known)}; {beside}.")


def _discounts(name: str, value: Any) -> tuple[float, ...]:
    accepted = "one or more numbers from 0.8 to 1"
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise checks.refuse(name, value, accepted)
    # below 0.8 hardly a row is remembered, and in float32 rounding errors are all that is left of a variance
    found = tuple(checks.number(name, one, accepted, 0.8, 1.0, ends=(True, True)) for one in value)
    if not found:
        raise checks.refuse(name, value, accepted)
    return found


def _numbers(name: str, value: Any, check: Callable[[Any], float]) -> tuple[float, ...]:
    """One or more numbers, each of which passes the check."""
    if isinstance(value, str) or not hasattr(value, "__iter__") or not tuple(value):
        raise checks.refuse(name, value, "one or more numbers")
    return tuple(check(one) for one in value)


def _spans(name: str, value: Any) -> tuple[int, ...]:
    accepted = "increasing whole numbers, of which the first is 1"
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise checks.refuse(name, value, accepted)
    found = tuple(checks.count(name, one, most=1000) for one in value)
    if found[:1] != (1,) or list(found) != sorted(set(found)):
        raise checks.refuse(name, value, accepted)
    return found


def _tag(name: str, value: Any, family: type[Tagged]) -> str:
    """The name of a part: of one of ours, or of one whose module has been imported."""
    if not isinstance(value, str) or value not in family.tags:
        words = ", ".join(family.tags)
        raise checks.refuse(name, value, f"one of {words}; import the module that defines another one first")
    return value


def _members(name: str, value: Any) -> tuple[str, ...]:
    accepted = f"distinct names, {BACKBONE!r} among them, out of {', '.join(Member.tags)}"
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        raise checks.refuse(name, value, accepted)
    found = tuple(_tag(name, one, Member) for one in value)
    if BACKBONE not in found or len(set(found)) < len(found):
        raise checks.refuse(name, value, accepted)
    return found


def _bound(name: str, value: Any) -> tuple[float | None, ...] | None:
    """One number for all channels becomes a tuple of one."""
    accepted = "None, a number, or one number (or None) for each channel"
    if value is None:
        return None
    if isinstance(value, str):
        raise checks.refuse(name, value, accepted)
    every = tuple(value) if hasattr(value, "__iter__") else (value,)
    if not every:
        raise checks.refuse(name, value, accepted)
    return tuple(
        None if one is None else checks.number(name, one, accepted, -LARGEST, LARGEST, ends=(True, True))
        for one in every
    )


def _require_ordered(lower: tuple[float | None, ...] | None, upper: tuple[float | None, ...] | None) -> None:
    if lower is None or upper is None:
        return
    if 1 < len(lower) != len(upper) > 1:
        raise checks.refuse("lower", lower, f"as many bounds as upper has: {len(upper)}")
    channels = max(len(lower), len(upper))
    pairs = zip(lower * (channels // len(lower)), upper * (channels // len(upper)), strict=True)
    if any(low is not None and high is not None and low >= high for low, high in pairs):
        raise checks.refuse("lower", lower, f"numbers below upper = {upper}")


def _draws(name: str, value: Any) -> int:
    found = checks.count(name, value, least=0, most=MOST_DRAWS, or_else="0, or (from 2) ")
    if found == 1:
        raise checks.refuse(name, value, f"0, or a whole number from 2 to {MOST_DRAWS}")
    return found


_CHECKS: dict[str, Any] = {
    "members": _members,
    "discounts": _discounts,
    "anchor": checks.positive,
    "basis": lambda name, value: checks.count(name, value, most=1000),
    "profile": checks.flag,
    "spans": _spans,
    "online": checks.flag,
    "patience": lambda name, value: checks.count(name, value, least=0, most=100_000),
    "gate": lambda name, value: checks.choice(name, value, get_args(GateMode)),
    "backbone_prior": lambda name, value: checks.share(name, value, whole=True),
    "gate_discounts": lambda name, value: _numbers(name, value, lambda one: checks.share(name, one, whole=True)),
    "cautions": lambda name, value: _numbers(name, value, lambda one: checks.positive(name, one)),
    "evidence": lambda name, value: checks.positive(name, value, most=1e4),
    "novelty": lambda name, value: checks.number(name, value, "a number from 0 to 100", 0, 100, ends=(True, True)),
    "novelty_fade": checks.positive,
    "guard": lambda name, value: None if value is None else checks.positive(name, value, or_else="None, or "),
    "guard_rows": lambda name, value: checks.count(name, value, least=0),
    "certificate": checks.flag,
    "kind": lambda name, value: _tag(name, value, Kind),
    "delta": checks.share,
    "uniform": checks.flag,
    "certificate_share": checks.share,
    "stride": lambda name, value: None if value is None else checks.count(name, value, or_else="None, or "),
    "reread": checks.count,
    "ring": lambda name, value: checks.count(name, value, most=1_000_000),
    "draws": _draws,
    "disagreement": lambda name, value: checks.choice(name, value, get_args(DisagreementMode)),
    "tau_d_factor": lambda name, value: checks.positive(name, value, most=1e6),
    "variance_factor": lambda name, value: checks.positive(name, value, most=1e6),
    "posterior_scale": lambda name, value: checks.positive(name, value, most=1e6),
    "intervals": lambda name, value: _tag(name, value, IntervalRule),
    "interval_discount": lambda name, value: checks.share(name, value, whole=True),
    "conformal_rate": lambda name, value: checks.not_negative(name, value, most=100.0),
    "lower": _bound,
    "upper": _bound,
    "warning_rows": lambda name, value: checks.number(
        name, value, f"a number from {MOST_OFTEN} to {RAREST:g}", MOST_OFTEN, RAREST, ends=(True, True)
    ),
}
