"""The house can be extended from outside: a member, a moving member, a kind and an interval rule, all defined here.

Nothing in the package knows of them. They are chosen by name, run, are saved and go on, like those of the package.
"""

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pytest
from numpy.typing import NDArray

import ompb
from ompb.core.arrays import Array, namespace, zeros
from ompb.core.certificate.kinds import Kind
from ompb.core.features import FeatureMap, View
from ompb.core.intervals import IntervalRule, IntervalState, Matured
from ompb.core.members.contract import Fixed, Learner, Member, MemberOptions, MemberState, Speech, Untaught, Voices
from ompb.errors import FormatError, OptionError
from ompb.floor.normal import gaussian_half_width
from ompb.floor.shapes import Shape

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Halfway(Fixed, tag="halfway"):
    """Half of the way from the base forecast z to the profile p: y_h = (z_h + p_h) / 2."""

    @classmethod
    def learner(cls, features: FeatureMap, options: MemberOptions) -> Learner:
        del features, options
        return Untaught(cls)

    def correction(self, view: View) -> Array:
        return (view.profile - view.base) / 2


@dataclass(frozen=True)
class BiasState(MemberState, tag="bias"):
    total: Annotated[Array, Shape("N H")]  # of the residuals so far
    count: Annotated[Array, Shape("N H")]


@dataclass(frozen=True)
class Bias(Member, tag="bias"):
    """The mean residual of each lead, where the source's word b_0 counts as `WORTH` labels.

    b_h = (WORTH b_0 + sum r_h) / (WORTH + n_h).
    """

    source: Annotated[Array, Shape("N H")]  # b_0

    @classmethod
    def learner(cls, features: FeatureMap, options: MemberOptions) -> Learner:
        del features, options
        return _BiasLearner()

    def voices(self, options: MemberOptions) -> Voices:
        del options
        return _BiasVoice(self.source)


class _BiasLearner(Learner):
    def __init__(self) -> None:
        self.total: Array = 0.0
        self.count: Array = 0.0

    def add(self, view: View, outcomes: Array) -> None:
        xp = namespace(outcomes)
        known = xp.isfinite(outcomes)
        self.total = self.total + xp.sum(xp.where(known, outcomes - view.base, 0.0), axis=1)
        self.count = self.count + xp.sum(xp.astype(known, outcomes.dtype), axis=1)

    def finish(self) -> Bias:
        return Bias(self.total / namespace(self.count).maximum(self.count, 1.0))


WORTH = 10.0


class _BiasVoice(Voices):
    names = ("bias",)

    def __init__(self, source: Array) -> None:
        self.source = source

    def see(self, view: View) -> Array:
        return view.features[..., :1]  # the constant, whose weight a bias is

    def start(self, like: Array) -> BiasState:
        return BiasState(zeros(like, *like.shape), zeros(like, *like.shape))

    def speak(self, state: BiasState, seen: Array) -> Speech:
        bias = (WORTH * self.source + state.total) / (WORTH + state.count)
        return Speech((seen * bias[:, None])[:, None], None)

    def learn(self, state: BiasState, row: int, residual: Array, observed: Array) -> BiasState:
        del row
        return BiasState(state.total + residual, state.count + observed)

    def learn_late(self, state: BiasState, row: int, newest: int, residual: Array, observed: Array) -> BiasState:
        del newest
        return self.learn(state, row, residual, observed)


class Looks(Kind, tag="looks"):
    r"""Hoeffding's term for a bound that is looked at `TIMES` times: sqrt((kappa + ln TIMES) / (2 m))."""

    TIMES = 7

    def summary(self, losses: Array, factor: float) -> Array:
        del factor
        return losses[..., :0]

    def gamma(self, kappa: Array, summary: Array, windows: int) -> Array:
        del summary
        return namespace(kappa).sqrt((kappa + math.log(self.TIMES)) / (2 * windows))


@dataclass(frozen=True)
class GaussianState(IntervalState, tag="gaussian"):
    variance: Annotated[Array, Shape("N H", positive=True)]


class Gaussian(IntervalRule, tag="gaussian"):
    """The Gaussian half-widths, whatever is observed; only the variance is learned."""

    def start(self, variance: Array, half_widths: Array) -> GaussianState:
        del half_widths
        return GaussianState(namespace(variance).asarray(variance, copy=True))

    def half_widths(self, state: IntervalState) -> Array:
        return zeros(state.variance, state.variance.shape[0], 2, 1) + self.gaussian

    def learn(self, state: IntervalState, matured: Matured) -> GaussianState:
        return GaussianState(self.next_variance(state, matured, 1 - self.options.discount))


CONTEXT, HORIZON, SEASON, ROWS = 24, 3, 8, 320
TOYS: dict[str, Any] = {"members": ("backbone", "halfway", "bias"), "kind": "looks", "intervals": "gaussian"}


def world(seed: int = 0) -> Floats:
    """Two channels with a season of eight rows."""
    noise = np.random.default_rng(seed).normal(size=(ROWS, 2))
    return np.asarray([10.0, -4.0] + 3 * np.sin(2 * np.pi * np.arange(ROWS)[:, None] / SEASON) + noise)


def naive(windows: Floats) -> Floats:
    return np.repeat(windows[:, -1:], HORIZON, axis=1)


def fitted(**options: Any) -> ompb.Calibrator:
    return ompb.Calibrator.fit(
        naive, world(), context=CONTEXT, horizon=HORIZON, season=SEASON, **{**TOYS, "guard": None, **options}
    )


def forecasts(stream: ompb.Stream, rows: Floats) -> list[ompb.Forecast]:
    said = [stream.step(row) for row in rows]
    return [forecast for forecast in said if forecast is not None]


def test_the_toys_have_voices_of_their_names() -> None:
    assert fitted().online.mixture.names == ("backbone", "halfway", "bias")
    everyone = fitted(members=(*ompb.Settings().members, "halfway", "bias"))
    ours = ("backbone", "profile", "regression", "head 0.999", "memory", "memory of the channel", "running bias")
    assert everyone.online.mixture.names == (*ours, "halfway", "bias")


def test_a_fixed_member_says_what_its_formula_says() -> None:
    """With the gate open and nobody else there, the forecast is the toy's own."""
    cal, rows = fitted(members=("backbone", "halfway"), gate="open"), world(1) + 2
    for forecast in forecasts(cal.stream(naive), rows):
        seasons = rows[forecast.origin + 1 - CONTEXT : forecast.origin + 1].reshape(-1, SEASON, 2)
        profile = seasons.mean(axis=0)[:HORIZON]  # the window is three whole seasons, so lead 1 has the first phase
        np.testing.assert_allclose(forecast.mean, (rows[forecast.origin] + profile) / 2, rtol=1e-12)


def test_a_learner_sees_the_learning_windows_and_no_others() -> None:
    cal, source = fitted(), world()
    bias = cal.source.members[2]
    assert isinstance(bias, Bias)
    split = ROWS - round(cal.settings.certificate_share * ROWS)
    origins = np.arange(CONTEXT - 1, split - HORIZON)
    for lead in range(1, HORIZON + 1):
        expected = (source[origins + lead] - source[origins]).mean(axis=0) / cal.scale
        np.testing.assert_allclose(bias.source[:, lead - 1], expected, rtol=1e-9, atol=1e-12)


def test_a_member_with_a_state_learns_each_label_once_it_is_there() -> None:
    cal, rows = fitted(members=("backbone", "bias"), gate="open"), world(2) + 5
    bias = cal.source.members[1]
    assert isinstance(bias, Bias)
    for forecast in forecasts(cal.stream(naive), rows[:80]):
        for lead in range(1, HORIZON + 1):
            known = np.arange(CONTEXT - 1, forecast.origin + 1 - lead)  # origins whose lead has arrived
            total = (rows[known + lead] - rows[known]).sum(axis=0)
            mean = (WORTH * cal.scale * bias.source[:, lead - 1] + total) / (WORTH + len(known))
            np.testing.assert_allclose(forecast.mean[lead - 1], rows[forecast.origin] + mean, rtol=1e-12)


def test_a_late_label_reaches_it_too() -> None:
    """The forecasts it is due to are the same late or on time, as a mean does not ask for order."""
    cal, rows = fitted(members=("backbone", "bias"), gate="open"), world(3)
    holed = rows.copy()
    holed[60, 1] = np.nan
    late = cal.stream(naive)
    for row in holed[:64]:
        late.step(row)
    before = late._state.online.members[1]
    late.observe(60, rows[60])
    after = late._state.online.members[1]
    assert isinstance(before, BiasState)
    assert isinstance(after, BiasState)
    np.testing.assert_array_equal(after.count - before.count, [[0, 0, 0], [1, 1, 1]])
    said = np.asarray([rows[60 - lead, 1] for lead in (1, 2, 3)])  # what origins 59, 58 and 57 said of row 60
    expected = (rows[60, 1] - said) / cal.scale[1]
    np.testing.assert_allclose((after.total - before.total)[1], expected, rtol=1e-9)


def test_a_kind_charges_what_its_formula_says() -> None:
    first = forecasts(fitted().stream(naive), world(4)[:CONTEXT])[0].certificate
    iid = forecasts(fitted(kind="iid").stream(naive), world(4)[:CONTEXT])[0].certificate
    assert first is not None
    assert iid is not None
    assert first.kind == "looks"
    m = first.windows
    assert first.gamma == pytest.approx(math.sqrt((math.log(2 * math.sqrt(m) / 0.05) + math.log(7)) / (2 * m)))
    assert first.gamma**2 - iid.gamma**2 == pytest.approx(math.log(7) / (2 * m))
    assert first.source_risk == iid.source_risk


def test_an_interval_rule_gives_the_half_widths_it_promises() -> None:
    cal, rows = fitted(), world(5) * 1.5
    said = {forecast.origin: forecast for forecast in forecasts(cal.stream(naive), rows)}
    variance = cal.source.base_variance.T * cal.scale**2  # (H, C)
    for row in range(CONTEXT - 1, ROWS):
        spoken = [lead for lead in range(1, HORIZON + 1) if row - lead in said]
        squared = {lead: (rows[row] - said[row - lead].mean[lead - 1]) ** 2 for lead in spoken}
        if spoken:  # at first not all leads have a label; those without are taken to err as the others
            ratio = np.mean([squared[lead] / variance[lead - 1] for lead in spoken], axis=0)
            own = np.stack([squared.get(h, ratio * variance[h - 1]) for h in range(1, HORIZON + 1)])
            variance += (1 - cal.settings.interval_discount) * (own - variance)
        forecast = said[row]
        np.testing.assert_allclose(forecast.sd, np.sqrt(variance), rtol=1e-9)  # no toy has leverage
        for level in (0.5, 0.8, 0.95):
            lower, upper = forecast.interval(level)
            half = gaussian_half_width(level) * np.sqrt(variance)
            np.testing.assert_allclose(upper - forecast.mean, half, rtol=1e-9)
            np.testing.assert_allclose(forecast.mean - lower, half, rtol=1e-9)


def test_saved_in_the_middle_they_go_on_bit_for_bit(tmp_path: Path) -> None:
    cal, rows = fitted(members=(*ompb.Settings().members, "halfway", "bias")), world(6) + 3
    whole = forecasts(cal.stream(naive), rows)
    stream = cal.stream(naive)
    first = forecasts(stream, rows[:100])
    cal.save(tmp_path / "cal.ompb")
    stream.save(tmp_path / "stream.ompb")
    loaded = ompb.Calibrator.load(tmp_path / "cal.ompb")
    again = ompb.Stream.load(tmp_path / "stream.ompb", loaded, naive)
    assert loaded.online.mixture.names == cal.online.mixture.names
    for found, expected in zip([*first, *forecasts(again, rows[100:])], whole, strict=True):
        np.testing.assert_array_equal(found.mean, expected.mean)
        np.testing.assert_array_equal(found.sd, expected.sd)
        np.testing.assert_array_equal(found.multipliers, expected.multipliers)
        assert found.certificate == expected.certificate


@pytest.mark.parametrize(("option", "value"), [("members", ("backbone", "no such")), ("kind", "no such")])
def test_an_unknown_name_is_told(option: str, value: Any) -> None:
    with pytest.raises(OptionError, match=f"option {option} = 'no such'.*accepted: one of .*(halfway|looks)"):
        fitted(**{option: value})


def test_an_unknown_interval_rule_is_told() -> None:
    with pytest.raises(OptionError, match=r"option intervals = 'no such'.*accepted: one of conformal, gaussian"):
        fitted(intervals="no such")


def test_a_file_of_a_toy_that_is_not_imported_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "cal.ompb"
    fitted().save(path)
    attempt = f"ompb.Calibrator.load({str(path)!r})"
    code = f"import ompb\ntry:\n    {attempt}\nexcept ompb.errors.FormatError as error:\n    print(error)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "members = 'halfway'" in done.stdout
    assert "accepted: one of backbone, running bias, head, memory, persistence, profile, regression" in done.stdout


@pytest.mark.parametrize(("family", "tag"), [(MemberState, "bias"), (IntervalState, "gaussian")])
def test_a_state_whose_class_is_not_imported_is_refused_by_name(
    family: type[MemberState] | type[IntervalState], tag: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cal = fitted()
    cal.stream(naive).save(tmp_path / "stream.ompb")
    monkeypatch.delitem(family.tags, tag)
    with pytest.raises(FormatError, match=f"is '{tag}'; expected: a {family.__name__}.*import the module that defines"):
        ompb.Stream.load(tmp_path / "stream.ompb", cal, naive)
