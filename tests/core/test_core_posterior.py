"""The exact recursion against the batch solution built from exactly the revealed labels."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from numpy.typing import NDArray

from ompb.core.posterior import EVERY, Posterior, rank_one

Floats = NDArray[np.float64]
LANES, LEADS, SIZE, PATIENCE = 2, 5, 3, 6
DISCOUNTS = np.asarray([0.9, 0.97])


@dataclass
class Twin:
    """Keeps every origin's features and every revealed label, and solves the ridge problem from scratch."""

    phi: dict[int, Floats] = field(default_factory=dict)  # origin -> (N, F)
    labels: dict[tuple[int, int, int], float] = field(default_factory=dict)  # (origin, lead, lane) -> residual

    def solve(self, lane: int, discount: float, lead: int, newest: int, source: Floats) -> Floats:
        """Minimise sum lambda^(newest - lead - k) [m (r - phi w)^2 + omega |w - v|^2] + lambda^n |w - v|^2."""
        first = min(self.phi, default=0)
        origins = [k for k in self.phi if k <= newest - lead]
        precision = discount ** len(origins) * np.eye(SIZE)
        target = precision @ source
        for k in origins:
            weight = discount ** (newest - lead - k)
            if (k, lead, lane) in self.labels:
                phi = self.phi[k][lane]
                precision += weight * np.outer(phi, phi)
                target += weight * phi * self.labels[k, lead, lane]
            if (k - first) % EVERY == 0:
                precision += weight * (1 - discount**EVERY) * np.eye(SIZE)
                target += weight * (1 - discount**EVERY) * source
        return np.asarray(np.linalg.solve(precision, target))

    def check(self, posterior: Posterior, newest: int) -> None:
        for lane in range(LANES):
            for m, discount in enumerate(DISCOUNTS):
                for lead in range(1, LEADS + 1):
                    expected = self.solve(lane, discount, lead, newest, posterior.source[lane, lead - 1])
                    np.testing.assert_allclose(posterior.mean[lane, m, lead - 1], expected, rtol=0, atol=1e-8)


@dataclass
class Bench:
    """Drives a posterior and its twin through the same rows."""

    rng: np.random.Generator
    first: int = 3
    row: int = -1
    posterior: Posterior = field(init=False)
    twin: Twin = field(default_factory=Twin)
    residuals: dict[int, Floats] = field(default_factory=dict)  # row -> (N, H), the labels it reveals
    missing: dict[int, set[int]] = field(default_factory=dict)  # row -> lanes not yet arrived

    def __post_init__(self) -> None:
        self.posterior = Posterior.start(self.rng.normal(size=(LANES, LEADS, SIZE)), DISCOUNTS, PATIENCE)

    def spoken(self, row: int) -> NDArray[np.bool_]:
        return np.asarray([row - h in self.twin.phi for h in range(1, LEADS + 1)])

    def step(self, absent: set[int]) -> None:
        self.row += 1
        self.residuals[self.row] = self.rng.normal(size=(LANES, LEADS))
        self.missing[self.row] = set(absent)
        heard = self._heard(self.row, set(range(LANES)) - absent)
        self.posterior.absorb(self.row, self.residuals[self.row] * heard, heard)
        if self.row >= self.first:
            phi = self.rng.normal(size=(LANES, SIZE))
            self.twin.phi[self.row] = phi
            self.posterior.take_in(self.row, phi)

    def late(self, row: int, lane: int) -> None:
        self.missing[row].discard(lane)
        heard = self._heard(row, {lane})
        self.posterior.absorb_late(row, self.row, self.residuals[row] * heard, heard)

    def _heard(self, row: int, lanes: set[int]) -> Floats:
        heard = np.zeros((LANES, LEADS))
        for lane in lanes:
            heard[lane] = self.spoken(row)
            for h in range(1, LEADS + 1):
                if row - h in self.twin.phi:
                    self.twin.labels[row - h, h, lane] = self.residuals[row][lane, h - 1]
        return heard


def test_every_label_on_time() -> None:
    bench = Bench(np.random.default_rng(0))
    for _ in range(3 * EVERY):
        bench.step(set())
        bench.twin.check(bench.posterior, bench.row)
    assert bench.posterior.irregular.shape[0] == 0


@pytest.mark.parametrize("seed", range(8))
def test_random_missing_cells_and_late_rows_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bench = Bench(rng)
    for _ in range(2 * EVERY + 12):
        bench.step({lane for lane in range(LANES) if rng.random() < 0.25})
        waiting = [(row, lane) for row, lanes in bench.missing.items() for lane in lanes if bench.row - row <= PATIENCE]
        rng.shuffle(waiting)
        for row, lane in waiting:
            if rng.random() < 0.15:
                bench.late(int(row), int(lane))
        bench.twin.check(bench.posterior, bench.row)
    assert bench.posterior.irregular.shape[0] > 0


def test_filled_holes_return_to_the_shared_covariance() -> None:
    bench = Bench(np.random.default_rng(1))
    for _ in range(20):
        bench.step(set())
    bench.step({0})
    bench.step({0, 1})
    assert bench.posterior.irregular.tolist() == [0, 1]
    bench.late(21, 0)
    bench.late(20, 0)
    assert bench.posterior.irregular.tolist() == [1]
    bench.late(21, 1)
    assert bench.posterior.irregular.shape[0] == 0
    for _ in range(10):
        bench.step(set())
        bench.twin.check(bench.posterior, bench.row)


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
            if (k - origins[0]) % EVERY == 0:
                precision += weight * (1 - discount**EVERY) * np.eye(SIZE)
        np.testing.assert_allclose(bench.posterior.covariance[1, m], np.linalg.inv(precision), atol=1e-10)


def test_no_wind_up_without_excitation() -> None:
    """1e5 equal inputs, then a step: the covariance stays within its bound and the answer stays finite."""
    posterior = Posterior.start(np.zeros((1, 2, SIZE)), DISCOUNTS, 0)
    phi, heard = np.asarray([[1.0, 0.7, -0.4]]), np.ones((1, 2))
    for row in range(100_000):
        if row > 1:
            posterior.absorb(row, np.full((1, 2), 0.5), heard)
        posterior.take_in(row, phi)
    bound = 1 / DISCOUNTS**EVERY
    largest = np.linalg.eigvalsh(posterior.covariance[0]).max(axis=-1)
    assert (largest <= bound * (1 + 1e-9)).all()
    before = posterior.correction(np.ones((1, 1, SIZE)))
    posterior.take_in(100_000, np.ones((1, SIZE)))
    posterior.absorb(100_001, np.full((1, 2), 10.0), heard)
    after = posterior.correction(np.ones((1, 1, SIZE)))
    assert np.isfinite(after).all()
    assert (np.abs(after) <= 10.0).all()
    assert (after[..., 0] > before[..., 0]).all()
    np.testing.assert_array_equal(posterior.covariance, np.swapaxes(posterior.covariance, -1, -2))


def test_rank_one_is_sherman_morrison() -> None:
    rng = np.random.default_rng(3)
    root = rng.normal(size=(SIZE, SIZE))
    covariance, phi, weight = root @ root.T + np.eye(SIZE), rng.normal(size=SIZE), 0.37
    u = covariance @ phi
    gain, updated = rank_one(covariance, u, np.asarray(phi @ u), weight)
    expected = np.linalg.inv(np.linalg.inv(covariance) + weight * np.outer(phi, phi))
    np.testing.assert_allclose(updated, expected, atol=1e-12)
    np.testing.assert_allclose(gain, weight * expected @ phi, atol=1e-12)
