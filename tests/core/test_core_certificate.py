"""The certificate's terms against numeric integration, dense algebra, plain loops and draws in weight space."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations
from typing import Any, Literal

import numpy as np
import pytest
from betting_twin import betting_twin
from scipy import integrate, stats

from ompb import Calibrator, Ridge, Stream, backtest
from ompb.core.certificate.certifier import Certifier
from ompb.core.certificate.disagreement import _by_pair, bounded, differences, gaps, lane_statistics, pair_statistics
from ompb.core.certificate.windows import CertificateWindows, Reader
from ompb.core.members.head import Heads, SourceHead
from ompb.core.members.regression import WindowRegression
from ompb.core.mixture import States
from ompb.core.posterior import Posterior, gaussian_kl
from ompb.errors import OptionError
from ompb.offline.learning import SPREAD
from ompb.types import Certificate, Floats

CONTEXT, HORIZON, CHANNELS, SEASON, ROWS = 12, 5, 2, 6, 480
SPLIT = 360  # three quarters of the rows
OPTIONS: dict[str, Any] = {
    "discounts": (0.97, 0.995),
    "basis": 2,
    "evidence": 1.0,
    "members": ("backbone", "profile", "regression", "head"),
    "backbone_prior": 0.5,
    "gate_discounts": (0.99,),
    "cautions": (20.0,),
    "tau_d_factor": 1.0,
}
SE = 4.0  # Monte Carlo tolerance in standard errors


@lru_cache
def series(seed: int = 0, rows: int = ROWS) -> Floats:
    """Two seasonal channels of unlike size and noise."""
    rng = np.random.default_rng(seed)
    time = np.arange(rows)[:, None]
    noise = rng.normal(size=(rows, CHANNELS)) * [0.4, 1.5]
    noise[1:] += 0.7 * noise[:-1]
    return np.asarray([5.0, -40.0] + [1.0, 6.0] * np.sin(2 * np.pi * (time - [0, 2]) / SEASON) + noise)


@lru_cache
def forecaster() -> Ridge:
    """A heavy penalty leaves the head something to correct. Trained on the first 200 rows only."""
    return Ridge.fit(series()[:200], CONTEXT, HORIZON, penalty=1.0)


def fitted(source: Floats | None = None, **options: Any) -> Calibrator:
    """A calibrator: of the usual source, the one that was fitted with these options before."""
    return _fitted_once(**options) if source is None else _fitted(source, **options)


def _fitted(source: Floats, **options: Any) -> Calibrator:
    arguments = {"context": CONTEXT, "horizon": HORIZON, "season": SEASON, **OPTIONS} | options
    return Calibrator.fit(forecaster(), source, **arguments)


@lru_cache(typed=True)
def _fitted_once(**options: Any) -> Calibrator:
    return _fitted(series(), **options)


def moved_stream(cal: Calibrator, rows: int = 70) -> Stream:
    """A stream on shifted rows, so that heads and beliefs are well away from their start."""
    stream = cal.stream(forecaster())
    for row in series(7, rows) * [1.5, 1.2] + [1.0, -5.0]:
        stream.step(row)
    return stream


PRIOR = np.asarray([0.5, *[0.5 / 4] * 4])  # backbone, profile, regression, two heads
FIRST_HEAD = 3


def source_head(cal: Calibrator) -> SourceHead:
    [head] = [member for member in cal.source.members if isinstance(member, SourceHead)]
    return head


def source_regression(cal: Calibrator) -> WindowRegression:
    [regression] = [member for member in cal.source.members if isinstance(member, WindowRegression)]
    return regression


def heads_of(cal: Calibrator) -> Heads:
    """The members that move, online; they come last."""
    heads = cal.online.mixture.members[FIRST_HEAD]
    assert isinstance(heads, Heads)
    assert len(cal.online.mixture.members) == FIRST_HEAD + 1
    return heads


def certifier_of(cal: Calibrator) -> Certifier:
    assert cal.online.certifier is not None
    return cal.online.certifier


def reader_of(cal: Calibrator) -> Reader:
    return certifier_of(cal).reader


def whitened(windows: CertificateWindows) -> Floats:
    """What the heads see of windows, (N, n, F)."""
    return np.asarray(windows.seen[FIRST_HEAD])


@dataclass(frozen=True)
class Law:
    """The law of the heads, the members that move."""

    posterior: Posterior

    @property
    def mean(self) -> Floats:
        return np.asarray(self.posterior.mean)

    @property
    def covariance(self) -> Floats:
        return np.asarray(self.posterior.covariance)

    @property
    def states(self) -> States:
        """As the mixture has them: the others never move."""
        return (*[None] * FIRST_HEAD, self.posterior)

    def leverage(self, phi: Floats) -> Floats:
        """phi^T P phi of the heads, (N, M, n)."""
        return np.asarray(np.einsum("nwf,nmfg,nwg->nmw", phi, self.covariance, phi))

    def copy(self) -> Law:
        return Law(replace(self.posterior, mean=np.array(self.mean), root=np.array(self.posterior.root)))

    def with_root(self, root: Floats) -> Law:
        return Law(replace(self.posterior, root=root))


def starting_law(cal: Calibrator) -> tuple[Law, Floats]:
    """The source's word, by hand and as the posterior has it, and the belief before any outcome."""
    heads = heads_of(cal).start(cal.source.base_variance)
    for n, m in np.ndindex(CHANNELS, 2):
        np.testing.assert_array_equal(heads.mean[n, m], source_head(cal).weights[n])
        np.testing.assert_array_equal(heads.covariance[n, m], np.eye(cal.source.features.size))
    return Law(heads), np.tile(PRIOR, (CHANNELS, 1))


@dataclass
class Looked:
    """Windows read by plain loops: base, outcomes and the members' forecasts, standardised."""

    phi: Floats  # (N, n, F)
    outcomes: Floats  # (N, n, H)
    still: Floats  # backbone, profile and regression: (N, 3, n, H)


def look(cal: Calibrator, values: Floats, origins: list[int]) -> Looked:
    phi, outcomes, still = [], [], []
    for origin in origins:
        window = values[origin - CONTEXT + 1 : origin + 1]
        base = (forecaster()(window[None])[0] - cal.centre) / cal.scale
        scaled = (window - cal.centre) / cal.scale
        # two whole seasons of six rows: lead h has the phase of rows h and h + 6 of the window
        profile = np.stack([(scaled[lead % SEASON] + scaled[lead % SEASON + SEASON]) / 2 for lead in range(HORIZON)])
        raw = cal.source.features.view(scaled.T[:, None], base.T[:, None]).features[:, 0]
        phi.append(np.einsum("nf,nfg->ng", raw, source_head(cal).whitening))
        outcomes.append(((values[origin + 1 : origin + 1 + HORIZON] - cal.centre) / cal.scale).T)
        of_window = raw[:, : cal.source.features.of_window]
        regression = profile.T + np.einsum("ng,ngh->nh", of_window, source_regression(cal).weights)
        still.append(np.stack([base.T, profile.T, regression], axis=1))
    return Looked(np.stack(phi, 1), np.stack(outcomes, 1), np.stack(still, 2))


def certificate_origins(rows: int = ROWS, split: int = SPLIT, stride: int = HORIZON) -> list[int]:
    """Every stride-th origin whose window starts after the split and whose outcome ends before the source does."""
    first = split + CONTEXT - 1
    return [t for t in range(rows) if t >= first and t + HORIZON < rows and (t - first) % stride == 0]


def member_forecasts(looked: Looked, law: Law) -> Floats:
    """Mean forecast of every member, (N, K, n, H)."""
    heads = looked.still[:, :1] + np.einsum("nmhf,nwf->nmwh", law.mean, looked.phi)
    return np.concatenate([looked.still, heads], axis=1)


def twin(cal: Calibrator, looked: Looked, law: Law, belief: Floats) -> tuple[Floats, Floats]:
    """Gibbs risk and expected gap of each window, (n,), in plain loops over lanes, members and leads."""
    forecasts = member_forecasts(looked, law)
    noise = cal.settings.posterior_scale * np.asarray(source_head(cal).noise)
    lanes, members, windows, leads = forecasts.shape
    risk, gap = np.zeros(windows), np.zeros(windows)
    for w in range(windows):
        for n in range(lanes):
            variance = np.zeros((members, leads))
            for m in range(2):
                q = looked.phi[n, w] @ law.covariance[n, m] @ looked.phi[n, w]
                variance[FIRST_HEAD + m] = noise[n] * q
            for h in range(leads):
                f, v, b = forecasts[n, :, w, h], variance[:, h], belief[n]
                first, second = b @ f, b @ (f**2 + v)
                y = looked.outcomes[n, w, h]
                risk[w] += second - 2 * y * first + y**2
                gap[w] += 2 * (second - first**2)
    return risk / (lanes * leads), gap / (lanes * leads)


def weight_space(cal: Calibrator, looked: Looked, law: Law, belief: Floats, draws: int, seed: int) -> Floats:
    """Forecasts (draws, N, n, H): draw a member per lane, then its head's weights, then evaluate it."""
    rng = np.random.default_rng(seed)
    lanes, members = belief.shape
    leads, windows = HORIZON, looked.phi.shape[1]
    out = np.empty((draws, lanes, windows, leads))
    for n in range(lanes):
        chosen = rng.choice(members, size=draws, p=belief[n])
        for still in range(FIRST_HEAD):
            out[chosen == still, n] = looked.still[n, still]
        for m in range(2):
            here = np.flatnonzero(chosen == FIRST_HEAD + m)
            for h in range(leads):
                spread = source_head(cal).noise[n, h] * cal.settings.posterior_scale * law.covariance[n, m]
                weights = rng.multivariate_normal(law.mean[n, m, h], spread, size=len(here), method="cholesky")
                out[here, n, :, h] = looked.still[n, 0, :, h] + weights @ looked.phi[n].T
    return out


def read(reader: Reader, windows: CertificateWindows, law: Law, belief: Floats) -> tuple[Floats, Floats]:
    """The reader's risk (n,) and gaps (n, pairs) of a series on windows with outcomes."""
    squared, statistics = reader.look(windows, law.states)
    return np.asarray(reader.risk(squared, belief)[0]), np.asarray(gaps(statistics, reader.pairs(belief))[0])


def law_of(stream: Stream) -> tuple[Law, Floats]:
    """The heads as they are, and the weights a forecast would be issued with."""
    online = stream._state.online
    *others, heads = online.members
    assert others == [None] * FIRST_HEAD
    assert isinstance(heads, Posterior)
    gate = stream._cohort.cal.online.gate
    return Law(heads), np.asarray(gate.opinion(online.gate, None).weights)


def present_certificate(stream: Stream, row: Floats) -> Certificate:
    forecast = stream.step(row)
    assert forecast is not None
    assert forecast.certificate is not None
    return forecast.certificate


def first_certificate(cal: Calibrator) -> tuple[Certificate, Law, Floats]:
    """The first certificate of a stream, when every window has just been read, with the law it was read under."""
    stream = cal.stream(forecaster())
    for row in series(7, CONTEXT - 1):
        stream.step(row)
    certificate = present_certificate(stream, series(7, CONTEXT)[-1])
    return certificate, *law_of(stream)


# ---------------------------------------------------------------------------------------------- Kullback-Leibler


@pytest.mark.parametrize(("mean", "p", "noise"), [(0.0, 1.0, 1.0), (0.7, 0.3, 2.0), (-2.0, 1.8, 0.5), (0.1, 0.01, 4.0)])
def test_kl_in_one_dimension_against_numeric_integration(mean: float, p: float, noise: float) -> None:
    q, prior = stats.norm(mean, math.sqrt(noise * p)), stats.norm(0.0, math.sqrt(noise))
    reach = 12 * math.sqrt(noise * p)
    expected, _ = integrate.quad(
        lambda w: q.pdf(w) * (q.logpdf(w) - prior.logpdf(w)), mean - reach, mean + reach, epsabs=1e-12
    )
    found = gaussian_kl(np.full((1, 1, 1, 1), mean), np.full((1, 1, 1, 1), math.sqrt(p)), np.full((1, 1), noise))
    assert float(found[0, 0]) == pytest.approx(expected, abs=1e-9)


def test_kl_in_many_dimensions_against_the_dense_formula() -> None:
    rng = np.random.default_rng(1)
    lanes, heads, leads, size = 2, 3, 4, 5
    mean = rng.normal(size=(lanes, heads, leads, size))
    square = rng.normal(size=(lanes, heads, size, size))
    covariance = square @ np.swapaxes(square, -1, -2) / size + 0.1 * np.eye(size)
    noise = rng.uniform(0.2, 3.0, size=(lanes, leads))
    turn = np.linalg.qr(rng.normal(size=(size, size)))[0]  # any root will do, not only a triangular one
    found = gaussian_kl(mean, np.linalg.cholesky(covariance) @ turn, noise)
    for n, m in np.ndindex(lanes, heads):
        prior = np.diag(np.repeat(noise[n], size))
        law = np.kron(np.diag(noise[n]), covariance[n, m])  # leads are independent blocks
        w = mean[n, m].ravel()
        inverse = np.linalg.inv(prior)
        ratio = np.linalg.slogdet(prior)[1] - np.linalg.slogdet(law)[1]
        expected = 0.5 * (np.trace(inverse @ law) + w @ inverse @ w - len(w) + ratio)
        assert float(found[n, m]) == pytest.approx(float(expected), rel=1e-10)


def plain_shift(cal: Calibrator, law: Law, belief: Floats) -> float:
    """KL of the mixture to the source's word, lane by lane and head by head."""
    expected = 0.0
    for n in range(CHANNELS):
        expected += sum(float(b * np.log(b / p)) for b, p in zip(belief[n], PRIOR, strict=True) if b > 0)
        for m in range(2):
            one = (slice(n, n + 1), slice(m, m + 1))
            moved = law.mean[one] - source_head(cal).weights[n]
            kl = gaussian_kl(moved, law.posterior.root[one], source_head(cal).noise[n : n + 1])
            expected += belief[n, FIRST_HEAD + m] * float(kl[0, 0])
    return expected


def test_posterior_shift_is_the_belief_weighted_kl_of_a_series() -> None:
    cal = fitted()
    law, belief = law_of(moved_stream(cal))
    expected = plain_shift(cal, law, belief)
    assert float(reader_of(cal).posterior_shift(law.states, belief)[0]) == pytest.approx(expected, rel=1e-10)
    assert expected > 1.0
    start, prior = starting_law(cal)
    assert float(reader_of(cal).posterior_shift(start.states, prior)[0]) == pytest.approx(0.0, abs=1e-12)


# --------------------------------------------------------------------------------------- risk and disagreement


@pytest.mark.parametrize("scale", [1.0, 5.0])
def test_gibbs_risk_and_expected_gap_against_draws_in_weight_space(scale: float) -> None:
    cal = fitted(posterior_scale=scale)
    law, belief = law_of(moved_stream(cal))
    assert np.all(belief > 1e-3)  # every member takes part
    origins = certificate_origins()[:6]
    looked = look(cal, series(), origins)
    risk, gaps = read(reader_of(cal), cal.source.windows.part(0, 6), law, belief)
    assert risk.shape == (6,)
    assert gaps.shape == (6, 1)
    one = weight_space(cal, looked, law, belief, 20_000, seed=11)
    other = weight_space(cal, looked, law, belief, 20_000, seed=12)
    losses = np.mean((looked.outcomes - one) ** 2, axis=(1, 3))  # (draws, n)
    distances = np.mean((one - other) ** 2, axis=(1, 3))
    for found, drawn in ((risk, losses), (gaps[:, 0], distances)):
        error = drawn.std(axis=0) / math.sqrt(len(drawn))
        assert np.all(error < 0.02 * drawn.mean(axis=0))  # the comparison has teeth
        np.testing.assert_array_less(np.abs(found - drawn.mean(axis=0)), SE * error)


def test_gibbs_risk_and_expected_gap_against_plain_loops() -> None:
    cal = fitted(posterior_scale=2.0)
    law, belief = law_of(moved_stream(cal))
    looked = look(cal, series(), certificate_origins())
    expected_risk, expected_gap = twin(cal, looked, law, belief)
    risk, gaps = read(reader_of(cal), cal.source.windows, law, belief)
    np.testing.assert_allclose(risk, expected_risk, rtol=1e-9)
    np.testing.assert_allclose(gaps[:, 0], expected_gap, rtol=1e-9)


def test_gaps_need_differences_only() -> None:
    cal = fitted()
    law, belief = law_of(moved_stream(cal))
    looked = look(cal, series(), certificate_origins())
    forecasts = member_forecasts(looked, law)  # (N, K, n, H)
    none = np.zeros((CHANNELS, FIRST_HEAD, forecasts.shape[2]))
    leverage = np.concatenate([none, law.leverage(looked.phi)], axis=1)
    moved = forecasts + np.random.default_rng(0).normal(size=(CHANNELS, 1, forecasts.shape[2], HORIZON))
    reader = reader_of(cal)
    one, other = (gaps(pair_statistics(f, leverage, CHANNELS), reader.pairs(belief)) for f in (forecasts, moved))
    np.testing.assert_allclose(one, other, rtol=1e-9)


def test_gaps_pair_by_pair_are_those_of_all_products() -> None:
    """The first way is that of compiled code."""
    forecasts = np.random.default_rng(0).normal(size=(5, 4, HORIZON))
    made = lane_statistics(forecasts, np.zeros((5, 4)), differences(forecasts))[:, :6]
    np.testing.assert_allclose(_by_pair(forecasts), made, rtol=1e-9)
    np.testing.assert_allclose(made[:, 4], np.mean((forecasts[:, 1] - forecasts[:, 3]) ** 2, axis=-1), rtol=1e-9)


def plainly_bounded(gap: Floats, tau: float, mode: str) -> Floats:
    x = gap / tau**2
    return {"clipped": np.minimum(x, 1), "normalised": x / (1 + x), "unclipped": x}[mode]


@pytest.mark.parametrize("mode", ["clipped", "normalised", "unclipped"])
def test_drawn_disagreement_has_the_mean_of_weight_space(
    mode: Literal["clipped", "normalised", "unclipped"],
) -> None:
    """Members are drawn, the heads' noise enters by its expectation: without bias unclipped, nearly so when bounded."""
    cal = fitted(draws=5, disagreement=mode)
    law, belief = law_of(moved_stream(cal))
    windows = 4
    looked = look(cal, series(), certificate_origins()[:windows])
    rng = np.random.default_rng(21)
    statistics = reader_of(cal).look(cal.source.windows.part(0, windows), law.states)[1]
    readings = []
    for _ in range(4000):
        reader = replace(reader_of(cal), uniforms=rng.uniform(size=(2, CHANNELS)))
        certifier = replace(certifier_of(cal), reader=reader)
        readings.append(certifier._disagreement(statistics, reader.pairs(belief))[0])
    found = np.asarray(readings)  # (replicates, n)
    one = weight_space(cal, looked, law, belief, 30_000, seed=31)
    other = weight_space(cal, looked, law, belief, 30_000, seed=32)
    expected = plainly_bounded(np.mean((one - other) ** 2, axis=(1, 3)), cal.source.scales.tau_d, mode)
    error = np.sqrt(found.var(axis=0) / len(found) + expected.var(axis=0) / len(expected))
    bias = 0.0 if mode == "unclipped" else 0.03  # H C = 10 values here; the bias falls with their number
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - expected.mean(axis=0)), SE * error + bias)


def drawn_twin(cal: Calibrator, looked: Looked, law: Law, belief: Floats) -> Floats:
    """Gaps (n, pairs) of all pairs of drawn members, the noise of two independent heads by its expectation."""
    forecasts = member_forecasts(looked, law)
    windows, draws = looked.phi.shape[1], len(reader_of(cal).uniforms)
    gaps = []
    for a, b in combinations(range(draws), 2):
        gap = np.zeros(windows)
        for n, w in np.ndindex(CHANNELS, windows):
            numbers = reader_of(cal).uniforms[[a, b], n]
            members = np.searchsorted(np.cumsum(belief[n]), numbers, side="right")
            gap[w] += np.mean((forecasts[n, members[0], w] - forecasts[n, members[1], w]) ** 2)
            for member in members:
                if member >= FIRST_HEAD:
                    q = looked.phi[n, w] @ law.covariance[n, member - FIRST_HEAD] @ looked.phi[n, w]
                    gap[w] += q * np.mean(source_head(cal).noise[n])
        gaps.append(gap / CHANNELS)
    return np.stack(gaps, axis=-1)


def test_drawn_gaps_are_all_pairs_of_the_drawn_members() -> None:
    cal = fitted(draws=4)
    law, belief = law_of(moved_stream(cal))
    looked = look(cal, series(), certificate_origins())
    found = read(reader_of(cal), cal.source.windows, law, belief)[1]
    expected = drawn_twin(cal, looked, law, belief)
    assert expected.max() > 0
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-14)


def test_bounded_modes() -> None:
    gap = np.asarray([0.0, 1.0, 4.0, 8.0])
    np.testing.assert_allclose(bounded(gap, 4.0, "clipped"), [0, 0.25, 1, 1])
    np.testing.assert_allclose(bounded(gap, 4.0, "normalised"), [0, 0.2, 0.5, 2 / 3])
    np.testing.assert_allclose(bounded(gap, 4.0, "unclipped"), [0, 0.25, 1, 2])


# -------------------------------------------------------------------------------------------- missing outcomes


def reading(cal: Calibrator, looked: Looked, outcomes: Floats, law: Law, belief: Floats) -> Floats:
    """Risk (n,) of the certificate windows when their outcomes (N, n, H) have holes."""
    windows = [((series()[t - CONTEXT + 1 : t + 1] - cal.centre) / cal.scale).T for t in certificate_origins()]
    view = cal.source.features.view(np.stack(windows, axis=1), looked.still[:, 0])
    with_holes = CertificateWindows.of(cal.online.mixture, view, outcomes, CHANNELS)
    return read(reader_of(cal), with_holes, law, belief)[0]


def test_missing_cells_have_no_weight_in_the_squared_error() -> None:
    cal = fitted()
    law, belief = law_of(moved_stream(cal))
    law = law.with_root(np.zeros_like(law.covariance))  # no variance: the risk is squared error alone
    looked = look(cal, series(), certificate_origins())
    holes = looked.outcomes.copy()
    rng = np.random.default_rng(2)
    for n, w in np.ndindex(holes.shape[:2]):
        holes[n, w, rng.choice(HORIZON, size=2, replace=False)] = np.nan
    found = reading(cal, looked, holes, law, belief)
    forecasts = member_forecasts(looked, law)
    squared = np.einsum("nk,nkwh->nwh", belief, (holes[:, None] - forecasts) ** 2)
    np.testing.assert_allclose(found, np.nanmean(squared, axis=(0, 2)), rtol=1e-9)


def test_missing_cells_have_no_weight_in_the_gibbs_risk() -> None:
    """The mean over the known cells of E(y - h)^2, posterior variance of those cells and no others included."""
    cal = fitted(posterior_scale=20.0)
    law, belief = law_of(moved_stream(cal))
    looked = look(cal, series(), certificate_origins())
    holes = looked.outcomes.copy()
    holes[:, :, 1:] = np.nan  # only lead 1, the least noisy, is known
    found = reading(cal, looked, holes, law, belief)
    squared = (holes[:, None] - member_forecasts(looked, law)) ** 2
    variance = 20.0 * law.leverage(looked.phi)[..., None] * source_head(cal).noise[:, None, None]  # (N, M, n, H)
    squared[:, FIRST_HEAD:] += variance
    np.testing.assert_allclose(found, np.nanmean(np.einsum("nk,nkwh->nwh", belief, squared), axis=(0, 2)), rtol=1e-9)


def test_a_channel_without_outcome_does_not_dilute_the_risk() -> None:
    cal = fitted()
    law, belief = law_of(moved_stream(cal))
    law = law.with_root(np.zeros_like(law.covariance))
    looked = look(cal, series(), certificate_origins())
    holes = looked.outcomes.copy()
    holes[1] = np.nan
    found = reading(cal, looked, holes, law, belief)
    forecasts = member_forecasts(looked, law)
    squared = np.einsum("nk,nkwh->nwh", belief, (holes[:, None] - forecasts) ** 2)
    np.testing.assert_allclose(found, np.mean(squared[0], axis=-1), rtol=1e-9)


def test_a_window_without_outcome_is_no_evidence_of_a_small_risk() -> None:
    """Source risk is a mean over windows that have an outcome; those that have none are not losses of nought."""
    gap = series().copy()
    gap[432:] = np.nan  # nothing is known at the end of the certificate part
    cal, whole = fitted(gap), fitted()
    certificate, law, belief = first_certificate(cal)
    risk, _ = read(reader_of(whole), whole.source.windows, law, belief)
    losses = np.minimum(risk / cal.source.scales.tau_y**2, 1.0)
    known = [i for i, t in enumerate(certificate_origins()) if t + HORIZON < 432]
    partly = [i for i, t in enumerate(certificate_origins()) if t + 1 < 432 <= t + HORIZON]
    assert not partly  # the split of the test is clean
    assert certificate.source_risk == pytest.approx(float(losses[known].mean()), rel=1e-6)


# ------------------------------------------------------------------------------------------------------ scales


@pytest.mark.parametrize(("rows", "factor"), [(ROWS, 1.0), (ROWS, 3.0), (1000, 1.0)])
def test_scales_are_the_quantiles_they_should_be(rows: int, factor: float) -> None:
    values = series(0, rows)
    cal = fitted(values, tau_d_factor=factor)
    split = rows * 3 // 4
    count = split - CONTEXT - HORIZON + 1
    every = [CONTEXT - 1 + i for i in range(count)]
    assert (count > SPREAD) == (rows == 1000)
    spread = [every[int(i * (count - 1) / (SPREAD - 1))] for i in range(SPREAD)] if count > SPREAD else every
    start, belief = starting_law(cal)
    risk, gap = twin(cal, look(cal, values, spread), start, belief)
    scales = cal.source.scales
    assert scales.tau_y == pytest.approx(2 * math.sqrt(np.quantile(risk, 0.9)), rel=1e-9)
    assert scales.tau_d == pytest.approx(factor * math.sqrt(np.median(gap)), rel=1e-9)


def test_tau_d_does_not_depend_on_the_draws() -> None:
    assert fitted(draws=5).source.scales.tau_d == fitted().source.scales.tau_d


@pytest.mark.parametrize("draws", [2, 5])
def test_tau_d_with_draws_is_no_artefact_of_the_numbers_drawn(draws: int) -> None:
    """One channel: however few the drawn pairs, the scale is a size of gaps that do occur, not nought."""
    source = series()[:, :1]
    ridge = Ridge.fit(source[:200], CONTEXT, HORIZON, penalty=1.0)
    options: dict[str, Any] = {"context": CONTEXT, "horizon": HORIZON, "season": SEASON, **OPTIONS}
    with np.errstate(all="ignore"):
        cal = Calibrator.fit(ridge, source, draws=draws, **options)
    closed = Calibrator.fit(ridge, source, **options)
    assert cal.source.scales.tau_d > 0.01 * closed.source.scales.tau_d


def test_a_constant_source_has_finite_positive_scales() -> None:
    def flat(windows: Any) -> Floats:
        return np.asarray(windows)[:, -1:].repeat(HORIZON, axis=1)

    cal = Calibrator.fit(flat, np.full((300, 1), 3.0), context=CONTEXT, horizon=HORIZON, season=None)
    scales = cal.source.scales
    assert 0 < scales.tau_y < math.inf
    assert 0 < scales.tau_d < math.inf


# ------------------------------------------------------------------------------------- kept out of all learning


@pytest.mark.parametrize("season", [SEASON, "auto", None])
def test_certificate_rows_teach_nothing(season: int | Literal["auto"] | None) -> None:
    changed = series().copy()
    changed[SPLIT:] = 1e3 * np.random.default_rng(9).normal(size=changed[SPLIT:].shape)
    changed[-30:] = np.nan
    first, second = (
        Calibrator.fit(forecaster(), rows, context=CONTEXT, horizon=HORIZON, season=season, **OPTIONS)
        for rows in (series(), changed)
    )
    assert first.season == second.season
    assert first.source.scales.tau_y == second.source.scales.tau_y
    assert first.source.scales.tau_d == second.source.scales.tau_d
    pairs = [
        (first.centre, second.centre),
        (first.scale, second.scale),
    ]
    heads = source_head(first), source_head(second)
    pairs += [(getattr(heads[0], name), getattr(heads[1], name)) for name in ("whitening", "weights", "noise")]
    pairs.append((first.source.base_variance, second.source.base_variance))
    pairs.append((source_regression(first).weights, source_regression(second).weights))
    for one, other in pairs:
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first.source.windows.seen[-1], second.source.windows.seen[-1])  # what the heads see


def test_the_last_learning_row_does_teach() -> None:
    """The same comparison one row earlier: the test above can fail."""
    changed = series().copy()
    changed[SPLIT - 1] += 50.0
    first, second = fitted(), fitted(changed)
    assert not np.array_equal(source_head(first).weights, source_head(second).weights)
    assert not np.array_equal(first.centre, second.centre)


def test_certificate_windows_lie_outcome_and_all_after_the_split() -> None:
    cal = fitted()
    looked = look(cal, series(), certificate_origins())
    windows = cal.source.windows
    np.testing.assert_allclose(whitened(windows), looked.phi, rtol=1e-9, atol=1e-12)
    still = windows.residual[:, None] - np.stack(windows.seen[:FIRST_HEAD], axis=1)  # those that never move
    np.testing.assert_allclose(still, looked.outcomes[:, None] - looked.still, rtol=1e-9, atol=1e-12)
    source = looked.still[:, 0] + np.einsum("nwf,nhf->nwh", looked.phi, source_head(cal).weights)
    start, _ = starting_law(cal)
    corrections = cal.online.mixture.speak(start.states, windows.seen).corrections
    for m in range(2):  # every head starts as the source head
        error = windows.residual - corrections[:, FIRST_HEAD + m]
        np.testing.assert_allclose(error, looked.outcomes - source, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(windows.weight, 1 / HORIZON)


# ------------------------------------------------------------------------------------------- terms of a reading


def plain_variances(losses: Floats) -> list[float]:
    """v_i in force before each window."""
    mean, variance, out = 0.5, 0.25, []
    for index, loss in enumerate(losses):
        out.append(variance)
        rate = max(1 / (index + 2), 0.05)
        variance += rate * ((float(loss) - mean) ** 2 - variance)
        mean += rate * (float(loss) - mean)
    return out


def plain_gamma(kind: str, losses: Floats, factor: float, delta: float) -> tuple[float, float]:
    """Gamma and its log term, by hand."""
    m = len(losses)
    if kind == "betting":
        return betting_twin(losses, math.log(1 / delta)) - float(losses.mean()), math.log(1 / delta)
    kappa = math.log(2 * math.sqrt(m) / delta)
    variances = plain_variances(losses)
    c = 1 / 3 if kind == "freedman" else math.sqrt(factor * max(variances))
    v = factor * sum(variances)
    return (math.sqrt(kappa / (2 * m)) if kind == "iid" else math.sqrt(2 * v * kappa) / m + c * kappa / m), kappa


@pytest.mark.parametrize("kind", ["betting", "iid", "freedman", "subgamma"])
@pytest.mark.parametrize("factor", [1.0, 4.0])
@pytest.mark.parametrize("mode", ["clipped", "normalised", "unclipped"])
def test_every_term_of_the_first_certificate(kind: str, factor: float, mode: Any) -> None:
    cal = fitted(kind=kind, variance_factor=factor, disagreement=mode, delta=0.1, gate="open")
    certificate, law, weights = first_certificate(cal)
    assert np.all(weights[:, 1:] > 0)  # an open gate: there is something to disagree on
    looked = look(cal, series(), certificate_origins())
    risk, gap = twin(cal, looked, law, weights)
    scales = cal.source.scales
    losses = np.minimum(risk / scales.tau_y**2, 1)
    disagreements = plainly_bounded(gap, scales.tau_d, mode)
    gamma, log_term = plain_gamma(kind, losses, factor, 0.1)
    expected = {
        "source_risk": losses.mean(),
        "source_disagreement": disagreements.mean(),
        "log_term": log_term,
        "gamma": gamma,
        "windows": len(certificate_origins()),
        "delta": 0.1,
        "kl": 0.0,
        "tau_y": float(scales.tau_y[0]),
        "tau_d": float(scales.tau_d[0]),
    }
    for name, value in expected.items():
        assert getattr(certificate, name) == pytest.approx(float(value), rel=1e-9), name
    assert certificate.kind == kind
    assert certificate.draws == 0
    assert (certificate.stride, certificate.horizon) == (HORIZON, HORIZON)


def test_a_closed_gate_is_certified_as_the_bare_forecaster() -> None:
    """Before any outcome the bare forecast is issued: it is its risk that is read, and it cannot disagree with itself.

    One row later the mixture is issued, and certified.
    """
    cal = fitted()
    stream = cal.stream(forecaster())
    for row in series(7, CONTEXT - 1):
        stream.step(row)
    first, second = series(7, CONTEXT + 1)[-2:]
    closed = present_certificate(stream, first)
    law = law_of(stream)[0].copy()  # the windows are not read again so soon
    opened = present_certificate(stream, second)
    looked = look(cal, series(), certificate_origins())
    errors = looked.outcomes - looked.still[:, 0]
    losses = np.minimum(np.mean(errors**2, axis=(0, 2)) / cal.source.scales.tau_y**2, 1)
    assert closed.source_risk == pytest.approx(float(losses.mean()), rel=1e-9)
    assert (closed.source_disagreement, closed.target_disagreement) == (0.0, 0.0)
    _, weights = law_of(stream)
    _, gap = twin(cal, looked, law, weights)
    assert np.all(weights[:, 0] < 1)
    assert opened.source_disagreement == pytest.approx(float(np.minimum(gap / closed.tau_d**2, 1).mean()), rel=1e-9)


def only(looked: Looked, window: int) -> Looked:
    here = slice(window, window + 1)
    return Looked(looked.phi[:, here], looked.outcomes[:, here], looked.still[:, :, here])


@pytest.mark.parametrize(("mode", "uniform"), [("clipped", False), ("normalised", True), ("unclipped", False)])
def test_readings_are_renewed_in_turn_and_the_ring_looks_back(
    mode: Literal["clipped", "normalised", "unclipped"], uniform: bool
) -> None:
    """Beside a twin that keeps, for each certificate and ring window, the heads it was last read with.

    Every `reread` steps as many certificate windows are read again. All terms are weighed by what was issued at the
    newest reading, target windows seen before it and since alike; early on readings come sooner, without new windows.
    """
    reread, ring = 4, 7
    cal = fitted(reread=reread, ring=ring, disagreement=mode, posterior_scale=3.0, uniform=uniform)
    values = series(7, 75) * [1.5, 1.2] + [1.0, -5.0]
    stream = cal.stream(forecaster())
    windows = [only(look(cal, series(), certificate_origins()), i) for i in range(len(certificate_origins()))]
    scales, m = cal.source.scales, len(windows)
    heads: list[Law] = []
    target: list[tuple[Looked, Law]] = []
    position, readings, losses, shift, read_under = 0, 0, np.zeros(m), 0.0, np.zeros((0, 0))
    for row, value in enumerate(values):
        before = np.array(law_of(stream)[0].posterior.root)
        forecast = stream.step(value)
        if forecast is None:
            continue
        law, weights = law_of(stream)
        copied = law.copy()
        if len(target) % reread == 0 or len(target) in (1, 2):
            last = position if len(target) % reread else min(position + reread, m) if target else m
            heads = [copied] * m if not target else heads
            for i in range(position, last):
                heads[i] = copied
            position, readings = last % m, readings + 1
            read_under = np.array(weights)
            shift = plain_shift(cal, copied, read_under)
            risks = [twin(cal, windows[i], heads[i], read_under)[0][0] for i in range(m)]
            losses = np.minimum(np.asarray(risks) / scales.tau_y**2, 1)
        padded = np.concatenate([values[: row + 1], np.zeros((HORIZON, CHANNELS))])  # outcomes do not enter the gap
        # the present window is read with the covariance in force before it was taken in
        in_force = copied.with_root(before / np.sqrt([0.97, 0.995])[:, None, None])
        target.append((look(cal, padded, [row]), in_force))
        sides = [list(zip(windows, heads, strict=True)), target[-ring:]]
        source, present = (
            plainly_bounded(
                np.asarray([twin(cal, *pair, read_under)[1][0] for pair in side]), scales.tau_d, mode
            ).mean()
            for side in sides
        )
        certificate = forecast.certificate
        assert certificate is not None
        assert certificate.source_risk == pytest.approx(losses.mean(), rel=1e-8)
        assert certificate.posterior_shift == pytest.approx(shift, rel=1e-8, abs=1e-12)
        assert certificate.source_disagreement == pytest.approx(source, rel=1e-8, abs=1e-15)
        assert certificate.target_disagreement == pytest.approx(present, rel=1e-8, abs=1e-15)
        change = certificate.target_disagreement - certificate.source_disagreement
        assert certificate.disagreement_change == change
        assert certificate.disagreement == max(change, 0.0)
        spent = 0.05 / (readings * (readings + 1)) if uniform else 0.05
        assert certificate.delta == pytest.approx(spent)
        assert certificate.uniform == uniform
        assert certificate.log_term == pytest.approx(math.log(1 / spent))
        assert certificate.gamma == pytest.approx(plain_gamma("betting", losses, 1.0, spent)[0], rel=1e-8)
    assert len(target) == len(values) - CONTEXT + 1
    assert len({id(h) for h in heads}) > 1
    assert len(target) % reread != 1  # the last step was between two readings, and the weights have moved on since
    assert np.abs(weights - read_under).max() > 1e-3


@pytest.mark.parametrize(
    ("kind", "words"),
    [("freedman", "variance is an estimate"), ("subgamma", "variance is an estimate"), ("iid", "of each other")],
)
def test_each_kind_says_what_it_assumes(kind: str, words: str) -> None:
    plain, other = (first_certificate(fitted(kind=name))[0].assumptions for name in ("betting", kind))
    [more] = set(other) - set(plain)
    assert words in more
    assert set(plain) < set(other)


def test_the_certificate_says_how_often_it_holds() -> None:
    each, all_at_once = (first_certificate(fitted(uniform=uniform, delta=0.1))[0] for uniform in (False, True))
    assert each.confidence.startswith("Each reading of the source holds with probability 0.9;")
    assert all_at_once.confidence.startswith("This reading of the source holds with probability 0.95, and all")


def test_terms_add_up() -> None:
    certificate, _, _ = first_certificate(fitted(gate="open"))
    terms = certificate.terms()
    assert terms["value"] == certificate.value
    assert terms["value"] == terms["source_risk"] + terms["gamma"] + 0.5 * terms["disagreement"]
    assert terms["disagreement"] == max(terms["target_disagreement"] - terms["source_disagreement"], 0.0)
    assert 0 <= terms["source_risk"] <= 1
    assert {"kl", "log_term", "windows", "delta", "uniform", "tau_y", "tau_d", "draws", "kind"} <= set(terms)
    assert "source" not in terms  # what it keeps of the windows is no term
    assert "lambda_rho" in certificate.omitted


# -------------------------------------------------------------------------------------------------- tail risk


@pytest.mark.parametrize("kind", ["betting", "freedman", "iid"])
@pytest.mark.parametrize("tau", [0.3, 0.9, 2.0, 20.0])
def test_tail_risk_reads_the_source_at_its_own_size(kind: str, tau: float) -> None:
    cal = fitted(kind=kind, variance_factor=2.0)
    certificate, law, weights = first_certificate(cal)
    risk, _ = twin(cal, look(cal, series(), certificate_origins()), law, weights)
    losses = np.minimum(risk / tau**2, 1)
    expected = losses.mean() + plain_gamma(kind, losses, 2.0, 0.05)[0] + certificate.disagreement / 2
    assert certificate.tail_risk(tau).probability == pytest.approx(min(1.0, float(expected)), rel=1e-9)
    at_tau_y = certificate.tail_risk(certificate.tau_y).probability
    assert at_tau_y == pytest.approx(min(certificate.value, 1.0), rel=1e-12)


def test_tail_risk_falls_with_tau_and_speaks() -> None:
    certificate, _, _ = first_certificate(fitted())
    taus = np.geomspace(0.05, 20.0, 60)
    bounds = [certificate.tail_risk(float(tau)).probability for tau in taus]
    assert np.all(np.diff(bounds) <= 0.01)  # a guess may do better for larger losses, by a hair
    assert bounds[0] == 1.0
    assert bounds[-1] < certificate.tail_risk(certificate.tau_y).probability - certificate.source_risk / 2
    assert all(0 <= p <= 1 for p in bounds)
    sentence = str(certificate.tail_risk(1.25))
    assert "1.25" in sentence
    assert "confidence 0.95" in sentence
    assert f"{certificate.tail_risk(1.25).probability:.3f}" in sentence
    for bad in (0.0, -1.0, math.nan, math.inf, 1e-300):
        with pytest.raises(OptionError, match="tau"):
            certificate.tail_risk(bad)
    assert certificate.tail_risk(1e-90).probability == 1.0
    assert 0 < certificate.tail_risk(1e200).probability < 0.5  # no loss at all, but few windows


def clumps(rough: bool, rows: int, seed: int) -> Floats:
    """Signs of size 1 in a rough stretch and of size 0.1 in a calm one; what comes depends on the row before alone.

    A stretch ends with probability 1/1000 a row, be it rough or calm, so a row says all that can be said of the next.
    """
    rng = np.random.default_rng(seed)
    ends = rng.uniform(size=rows) < 1e-3
    state = (np.cumsum(ends) + rough) % 2
    return np.asarray(np.where(state == 1, 1.0, 0.1) * rng.choice([-1.0, 1.0], size=rows))[:, None]


def test_inputs_that_map_to_outcomes_as_ever_are_not_enough_for_the_tail_risk() -> None:
    """Source and stream follow one and the same law of the next row given this one; only where they begin differs.

    The gate is closed for ever, so nothing disagrees and nothing warns. Yet every error of the stream is large, which
    the source shows in few windows: the bound on the frequency is broken by a change of inputs alone. Hence the
    sentence asks that risk minus half the disagreement be as it was, and says nothing of how inputs map to outcomes.
    """
    source, stream = clumps(False, 4000, 7), clumps(True, 300, 1)
    assert np.all(np.abs(stream) == 1.0)  # its first stretch has not ended
    rough = np.mean(np.abs(source[3000:]) == 1.0)
    assert 0 < rough < 0.8
    cal = Calibrator.fit(
        lambda windows: np.zeros((len(windows), HORIZON, 1)),
        source,
        context=CONTEXT,
        horizon=HORIZON,
        season=None,
        backbone_prior=1.0,
    )
    run = backtest(cal, lambda windows: np.zeros((len(windows), HORIZON, 1)), stream)
    assert run.last_certificate is not None
    tau = 1.0 / float(cal.scale[0])
    errors = np.sqrt(np.mean((run.mean - run.outcome) ** 2, axis=(1, 2)))[:-HORIZON] / cal.scale[0]
    bound = run.last_certificate.tail_risk(tau * (1 - 1e-9))
    assert np.mean(errors >= bound.threshold) == 1.0 > bound.probability
    assert run.last_certificate.disagreement == 0.0
    assert "if risk minus half the disagreement is as it was on the source" in str(bound)
    assert "map to outcomes as they always did" in run.last_certificate.omitted


# ----------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize("stride", [1, 3, HORIZON, 11])
def test_stride_sets_the_windows(stride: int) -> None:
    cal = fitted(stride=stride)
    origins = certificate_origins(stride=stride)
    assert cal.stride == stride
    assert whitened(cal.source.windows).shape[1] == len(origins)
    certificate = first_certificate(cal)[0]
    assert certificate.windows == len(origins)
    assert any("not a bound" in words for words in certificate.assumptions) == (stride < HORIZON)
    np.testing.assert_allclose(whitened(cal.source.windows), look(cal, series(), origins).phi, rtol=1e-9, atol=1e-12)


def test_factors_change_what_they_name_and_nothing_else() -> None:
    plain = fitted().source.scales
    assert fitted(tau_d_factor=2.5).source.scales.tau_d == pytest.approx(2.5 * plain.tau_d, rel=1e-12)
    assert fitted(tau_d_factor=2.5).source.scales.tau_y == plain.tau_y
    assert fitted(variance_factor=9.0).source.scales == plain
    base, wide = (first_certificate(fitted(kind="freedman", variance_factor=factor))[0] for factor in (1.0, 9.0))
    linear = base.log_term / 3 / base.windows
    assert wide.gamma - linear == pytest.approx(3 * (base.gamma - linear), rel=1e-12)
    assert wide.source_risk == base.source_risk
    assert fitted(posterior_scale=10.0).source.scales.tau_d > plain.tau_d


def test_certificate_share_sets_the_split() -> None:
    cal = fitted(certificate_share=0.5)
    np.testing.assert_allclose(cal.centre, series()[: ROWS // 2].mean(axis=0))
    assert len(cal.source.windows) == len(certificate_origins(split=ROWS // 2))


@pytest.mark.parametrize("unseen", [120, 0.25])
def test_unseen_rows_become_the_certificate_windows(unseen: int | float) -> None:
    told, untold = fitted(unseen=unseen), fitted()
    assert untold.in_sample
    assert not told.in_sample
    first, second = whitened(told.source.windows), whitened(untold.source.windows)
    np.testing.assert_array_equal(first, second)  # 120 rows are a quarter
    with_mark, without = first_certificate(untold)[0], first_certificate(told)[0]
    assert with_mark.in_sample
    assert not without.in_sample
    assert len(with_mark.assumptions) == len(without.assumptions) + 1
    assert "optimistic" in str(with_mark.tail_risk(1.0))
    assert "optimistic" not in str(without.tail_risk(1.0))
    assert with_mark.value == without.value


def test_unseen_overrides_the_share() -> None:
    cal = fitted(unseen=200, certificate_share=0.5)
    np.testing.assert_allclose(cal.centre, series()[: ROWS - 200].mean(axis=0))
    assert len(cal.source.windows) == len(certificate_origins(split=ROWS - 200))


@pytest.mark.parametrize("unseen", [0, -3, 1.0, 1.5, 0.0, True])
def test_unfit_unseen_is_refused(unseen: int | float) -> None:
    with pytest.raises(OptionError, match="unseen"):
        fitted(unseen=unseen)


def test_no_certificate_when_switched_off() -> None:
    cal = fitted(certificate=False)
    stream = cal.stream(forecaster())
    issued = [stream.step(row) for row in series(7, CONTEXT + 2)]
    assert all(f.certificate is None for f in issued if f is not None)


@pytest.mark.parametrize(("profile", "others"), [(True, [0.12] * 5), (False, [0.15] * 4)])
def test_reader_prior_is_the_belief_before_any_outcome(profile: bool, others: list[float]) -> None:
    """Of every speed, where the gate does not wait for outcomes; one that waits is closed."""
    speeds: dict[str, Any] = {"gate_discounts": (0.99, 0.9), "cautions": (20.0, 5.0)}
    options = {"backbone_prior": 0.4, "discounts": (0.9, 0.99, 0.999), "profile": profile, **speeds}
    for online, expected in ((False, [0.4, *others]), (True, [1.0, *[0.0] * len(others)])):
        cal = fitted(online=online, **options)
        np.testing.assert_allclose(reader_of(cal).mixture.prior, [0.4, *others])
        opinion = cal.online.gate.opinion(cal.stream(forecaster())._state.online.gate)
        np.testing.assert_allclose(opinion.weights, [expected] * CHANNELS)
        np.testing.assert_allclose(opinion.by_speed, [[expected] * 2] * CHANNELS)
