"""The exact recursion against the batch solution built from exactly the revealed labels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from ompb.core.posterior import REFILL_EVERY, Posterior, Recursion, gaussian_kl, pull, rank_one

Floats = NDArray[np.float64]
LANES, LEADS, SIZE, PATIENCE = 2, 5, 3, 6
DISCOUNTS = np.asarray([0.9, 0.97])


@dataclass
class Twin:
    """Keeps every origin's features and every label, and solves the ridge problem from scratch.

    A label that did not come is the forecast of the batch solution at the time its row was due.
    """

    source: Floats  # (N, H, F)
    phi: dict[int, Floats] = field(default_factory=dict)  # origin -> (N, F)
    labels: dict[tuple[int, int, int], Floats] = field(default_factory=dict)  # (origin, lead, lane) -> (M,)

    def solve(self, lane: int, m: int, lead: int, newest: int) -> Floats:
        """Minimise sum lambda^(newest - lead - k) [(r - phi w)^2 + omega |w - v|^2] + lambda^n |w - v|^2."""
        discount, word = DISCOUNTS[m], self.source[lane, lead - 1]
        first = min(self.phi, default=0)
        passed = max(0, newest - lead - first + 1)
        precision = discount**passed * np.eye(SIZE)
        target = precision @ word
        for k in range(first, newest - lead + 1):
            weight = discount ** (newest - lead - k)
            if k in self.phi:
                phi = self.phi[k][lane]
                precision += weight * np.outer(phi, phi)
                target += weight * phi * self.labels[k, lead, lane][m]
            if (k - first) % REFILL_EVERY == 0:
                precision += weight * (1 - discount**REFILL_EVERY) * np.eye(SIZE)
                target += weight * (1 - discount**REFILL_EVERY) * word
        return np.asarray(np.linalg.solve(precision, target))

    def impute(self, row: int, lane: int) -> None:
        """The labels of a row that did not come."""
        for lead in range(1, LEADS + 1):
            if row - lead in self.phi:
                phi = self.phi[row - lead][lane]
                said = [phi @ self.solve(lane, m, lead, row - 1) for m in range(len(DISCOUNTS))]
                self.labels[row - lead, lead, lane] = np.asarray(said)

    def check(self, posterior: Posterior, newest: int) -> None:
        for lane, m in np.ndindex(LANES, len(DISCOUNTS)):
            for lead in range(1, LEADS + 1):
                expected = self.solve(lane, m, lead, newest)
                np.testing.assert_allclose(posterior.mean[lane, m, lead - 1], expected, rtol=0, atol=1e-8)


@dataclass
class Bench:
    """Drives the recursion and its twin through the same rows."""

    rng: np.random.Generator
    first: int = 3
    row: int = -1
    rules: Recursion = field(init=False)
    posterior: Posterior = field(init=False)
    twin: Twin = field(init=False)
    residuals: dict[int, Floats] = field(default_factory=dict)  # row -> (N, H), the labels it reveals
    missing: dict[int, set[int]] = field(default_factory=dict)  # row -> lanes not yet arrived

    def __post_init__(self) -> None:
        source = self.rng.normal(size=(LANES, LEADS, SIZE))
        self.rules, self.twin = Recursion(source, DISCOUNTS, PATIENCE), Twin(source)
        self.posterior = self.rules.start()

    def step(self, absent: set[int], silent: bool = False) -> None:
        self.row += 1
        self.residuals[self.row] = self.rng.normal(size=(LANES, LEADS))
        self.missing[self.row] = set(absent)
        for lane in absent:
            self.twin.impute(self.row, lane)
        observed = self._observed(self.row, set(range(LANES)) - absent)
        self.posterior = self.rules.absorb(self.posterior, self.row, self.residuals[self.row] * observed, observed)
        if self.row < self.first or silent:
            self.posterior = self.rules.pass_over(self.posterior, self.row)
        else:
            phi = self.rng.normal(size=(LANES, SIZE))
            self.twin.phi[self.row] = phi
            *_, self.posterior = self.rules.take_in(self.posterior, self.row, phi)

    def late(self, row: int, lanes: set[int]) -> None:
        self.missing[row] -= lanes
        observed = self._observed(row, lanes)
        residual = self.residuals[row] * observed
        self.posterior = self.rules.absorb_late(self.posterior, row, self.row, residual, observed)

    def _observed(self, row: int, lanes: set[int]) -> Floats:
        observed = np.zeros((LANES, LEADS))
        for lane in lanes:
            for lead in range(1, LEADS + 1):
                if row - lead in self.twin.phi:
                    observed[lane, lead - 1] = 1.0
                    label = np.full(len(DISCOUNTS), self.residuals[row][lane, lead - 1])
                    self.twin.labels[row - lead, lead, lane] = label
        return observed


def test_every_label_on_time() -> None:
    bench = Bench(np.random.default_rng(0))
    for _ in range(3 * REFILL_EVERY):
        bench.step(set())
        bench.twin.check(bench.posterior, bench.row)


@pytest.mark.parametrize("seed", range(8))
def test_random_missing_cells_and_late_rows_in_any_order(seed: int) -> None:
    """Late labels are exact; those that never come count as the head's own forecast."""
    rng = np.random.default_rng(seed)
    bench = Bench(rng)
    late = 0
    for _ in range(REFILL_EVERY + 40):
        bench.step({lane for lane in range(LANES) if rng.random() < 0.25})
        waiting = [(row, lane) for row, lanes in bench.missing.items() for lane in lanes if bench.row - row <= PATIENCE]
        rng.shuffle(waiting)
        for row, lane in waiting:
            if rng.random() < 0.15:
                bench.late(int(row), {int(lane)})
                late += 1
        if bench.row % 7 == 0:
            bench.twin.check(bench.posterior, bench.row)
    assert late > 5
    assert any(bench.missing.values())


@pytest.mark.parametrize("seed", range(3))
def test_origins_without_a_forecast_fade_the_past_and_add_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bench = Bench(rng)
    for _ in range(REFILL_EVERY + 40):
        bench.step({0} if rng.random() < 0.2 else set(), silent=rng.random() < 0.7)
        for row in [r for r, lanes in bench.missing.items() if lanes and 0 < bench.row - r <= PATIENCE]:
            if rng.random() < 0.3:
                bench.late(row, {0})
        if bench.row % 7 == 0 and bench.twin.phi:
            bench.twin.check(bench.posterior, bench.row)


def test_late_labels_make_up_for_their_holes() -> None:
    """Up to the last moment, in any order, several at once: as if they had come on time, to the last digits."""
    on_time, late = Bench(np.random.default_rng(1)), Bench(np.random.default_rng(1))
    for number in range(REFILL_EVERY + 20):
        on_time.step(set())
        late.step({0, 1} if number % 5 == 3 else set())
        for row in [r for r, lanes in late.missing.items() if lanes and late.row - r == PATIENCE]:
            late.late(row, {0, 1})
    for row in sorted((r for r, lanes in late.missing.items() if lanes), reverse=True):
        late.late(row, {0, 1})
    assert not any(late.missing.values())
    np.testing.assert_allclose(late.posterior.mean, on_time.posterior.mean, rtol=0, atol=1e-13)
    np.testing.assert_array_equal(late.posterior.covariance, on_time.posterior.covariance)


@pytest.mark.parametrize("discounts", [(0.9, 1.0), (0.8, 0.999)])
@pytest.mark.parametrize("seed", range(3))
def test_late_labels_of_leads_beyond_some_refills_are_as_if_in_time(discounts: tuple[float, ...], seed: int) -> None:
    """Leads longer than two refills apart, labels late by nearly as much, and origins without a forecast."""
    rng = np.random.default_rng(seed)
    leads, patience, rows = 2 * REFILL_EVERY + 9, 50, 5 * REFILL_EVERY
    rules = Recursion(rng.normal(size=(2, leads, SIZE)), np.asarray(discounts), patience)
    on_time, late = rules.start(), rules.start()
    due: dict[int, list[tuple[int, Floats]]] = {}
    for row in range(rows):
        residual, comes = rng.normal(size=(2, leads)), rng.random((2, 1)) < 0.8
        spoken = np.asarray([float(row - lead >= 4) for lead in range(1, leads + 1)]) * np.ones((2, 1))
        on_time = rules.absorb(on_time, row, residual * spoken, spoken)
        late = rules.absorb(late, row, residual * spoken * comes, spoken * comes)
        phi = rng.normal(size=(2, SIZE))
        if row < 4 or rng.random() < 0.1:
            on_time, late = rules.pass_over(on_time, row), rules.pass_over(late, row)
        else:
            *_, on_time = rules.take_in(on_time, row, phi)
            *_, late = rules.take_in(late, row, phi)
        if not comes.all():
            observed = spoken * ~comes
            when = min(row + int(rng.integers(0, patience + 1)), rows - 1)
            due.setdefault(when, []).append((row, residual * observed))
        for older, labels in due.pop(row, []):
            late = rules.absorb_late(late, older, row, labels, np.asarray(labels != 0, dtype=float))
    np.testing.assert_allclose(late.mean, on_time.mean, rtol=0, atol=1e-10)


def test_a_late_row_without_labels_changes_nothing() -> None:
    bench = Bench(np.random.default_rng(4))
    for number in range(20):
        bench.step({0, 1} if number == 17 else set())
    none = np.zeros((LANES, LEADS))
    after = bench.rules.absorb_late(bench.posterior, 17, bench.row, none, none)
    np.testing.assert_array_equal(after.mean, bench.posterior.mean)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_late_label_of_absurd_inputs_stays_finite(dtype: str) -> None:
    rules = Recursion(np.zeros((1, 2, SIZE), dtype=dtype), DISCOUNTS.astype(dtype), 4)
    state = rules.start()
    none, label = np.zeros((1, 2), dtype=dtype), np.ones((1, 2), dtype=dtype)
    for row in range(12):
        state = rules.absorb(state, row, none, none if row == 9 else label)
        *_, state = rules.take_in(state, row, np.full((1, SIZE), 1e12 if row % 3 else 1.0, dtype=dtype))
    state = rules.absorb_late(state, 9, 11, label, label)
    assert np.isfinite(state.mean).all()
    assert (np.abs(state.mean) < 10).all()


def test_shared_covariance_is_the_inverse_of_the_summed_precision() -> None:
    bench = Bench(np.random.default_rng(2))
    for _ in range(40):
        bench.step(set())
    origins = sorted(bench.twin.phi)
    for m, discount in enumerate(DISCOUNTS):
        precision = discount ** len(origins) * np.eye(SIZE)
        for k in origins:
            weight = discount ** (origins[-1] - k)
            phi = bench.twin.phi[k][1]
            precision += weight * np.outer(phi, phi)
            if (k - origins[0]) % REFILL_EVERY == 0:
                precision += weight * (1 - discount**REFILL_EVERY) * np.eye(SIZE)
        np.testing.assert_allclose(bench.posterior.covariance[1, m], np.linalg.inv(precision), atol=1e-10)


def test_no_wind_up_without_excitation() -> None:
    """1e5 equal inputs, then a step: the covariance stays within its bound and the answer stays finite."""
    rules = Recursion(np.zeros((1, 2, SIZE)), DISCOUNTS, 0)
    state = rules.start()
    phi, observed = np.asarray([[1.0, 0.7, -0.4]]), np.ones((1, 2))
    for row in range(100_000):
        if row > 1:
            state = rules.absorb(state, row, np.full((1, 2), 0.5), observed)
        *_, state = rules.take_in(state, row, phi)
    bound = 1 / DISCOUNTS**REFILL_EVERY
    largest = np.linalg.eigvalsh(state.covariance[0]).max(axis=-1)
    assert (largest <= bound * (1 + 1e-9)).all()
    before = rules.correction(state, np.ones((1, 1, SIZE)))
    *_, state = rules.take_in(state, 100_000, np.ones((1, SIZE)))
    state = rules.absorb(state, 100_001, np.full((1, 2), 10.0), observed)
    after = rules.correction(state, np.ones((1, 1, SIZE)))
    assert np.isfinite(after).all()
    assert (np.abs(after) <= 10.0).all()
    assert (after[..., 0] > before[..., 0]).all()


@pytest.mark.parametrize("discounts", [(0.999,), (0.9, 1.0), (0.8,)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("seed", range(4))
def test_covariance_stays_positive_definite_whatever_comes_in(
    discounts: tuple[float, ...], dtype: str, seed: int
) -> None:
    """Inputs up to a million standard deviations, in few directions or many, between usual ones."""
    rng = np.random.default_rng(seed)
    size = 12
    rules = Recursion(np.zeros((1, 2, size), dtype=dtype), np.asarray(discounts, dtype=dtype), 0)
    state = rules.start()
    for row in range(400):
        phi = rng.normal(size=(1, size)) * (10.0 ** rng.uniform(-6, 6) if rng.random() < 0.4 else 1.0)
        if rng.random() < 0.3:
            phi = np.round(phi / np.abs(phi).max()) * 1e6
        _, leverage, state = rules.take_in(state, row, phi.astype(dtype))
        assert (leverage >= 0).all()
        assert np.isfinite(state.root).all()
        assert np.linalg.svd(state.root, compute_uv=False).min() > 0  # of the root: P = S S^T is positive definite
        assert np.isfinite(gaussian_kl(state.mean, state.root, np.ones((1, 2)))).all()


def test_rank_one_is_sherman_morrison() -> None:
    rng = np.random.default_rng(3)
    root, phi = rng.normal(size=(SIZE, SIZE)) + 2 * np.eye(SIZE), rng.normal(size=SIZE)
    covariance = root @ root.T
    leverage, gain, updated = rank_one(root, phi)
    expected = np.linalg.inv(np.linalg.inv(covariance) + np.outer(phi, phi))
    np.testing.assert_allclose(updated @ updated.T, expected, atol=1e-12)
    np.testing.assert_allclose(gain, expected @ phi, atol=1e-12)
    np.testing.assert_allclose(leverage, phi @ covariance @ phi, atol=1e-12)


@pytest.mark.parametrize("leads", [5, 64, 150])
def test_the_source_is_put_back_at_the_same_leads_whether_the_clock_is_a_number_or_an_array(leads: int) -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(leads)
    mean, source = rng.normal(size=(3, 2, leads, 4)), rng.normal(size=(3, leads, 4))
    pulls = 0.1 * rng.normal(size=(3, 2, (leads - 1) // REFILL_EVERY + 1, 16))
    for since in range(REFILL_EVERY):
        by_number, by_array = mean.copy(), torch.tensor(mean)
        pull(by_number, source, pulls, since)
        pull(by_array, *map(torch.tensor, (source, pulls, since)))
        np.testing.assert_allclose(by_array, by_number, rtol=1e-14, atol=1e-14)
        moved = np.flatnonzero((by_number != mean).any(axis=(0, 1, 3)))
        assert moved.tolist() == list(range(since, leads, REFILL_EVERY))
