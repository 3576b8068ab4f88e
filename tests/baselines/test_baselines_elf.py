"""ELF against batch ridge, an explicit DFT and plain loops."""

import cmath
import math
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("torch")  # for the world only

from baseline_world import CONTEXT, HORIZON, SEASON, World, predictions

from ompb.baselines.elf import Elf, ElfSettings, FourierRidge, LinearForecaster, Weigher, low_band, seasonal_naive
from ompb.bench.contract import Pair, Snapshot, Task
from ompb.errors import OptionError
from ompb.testing.method import task_of
from ompb.types import Floats

RNG = np.random.default_rng(5)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    return World.make(tmp_path_factory.mktemp("world"))


def task(context: int, horizon: int, channels: int = 2, season: int | None = None) -> Task:
    return task_of(np.zeros((0, channels)), np.zeros((0, horizon, channels)), context, season=season)


def complex_normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) + 1j * RNG.normal(size=shape)


def test_updates_equal_one_batch_ridge() -> None:
    inputs, outputs = complex_normal(2, 30, 5), complex_normal(2, 30, 3)
    ridge = FourierRidge.start(2, 5, 3, 20.0)
    for part in (slice(0, 1), slice(1, 12), slice(12, 30)):  # fewer rows than unknowns, and more
        ridge.learn(inputs[:, part], outputs[:, part])
    for channel in range(2):
        x, y = inputs[channel], outputs[channel]
        batch = np.linalg.solve(x.conj().T @ x + 20.0 * np.eye(5), x.conj().T @ y)
        np.testing.assert_allclose(ridge.weights[channel], batch, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(("context", "share"), [(12, 0.9), (11, 0.5), (96, 0.9), (7, 1.0)])
def test_spectra_are_the_low_band_of_an_explicit_transform(context: int, share: float) -> None:
    window = RNG.normal(size=(context, 2))
    made = LinearForecaster.start(task(context, 4), ElfSettings(band=share))
    kept = [k for k in range(context) if k / context <= share / 2 or k / context >= 1 - share / 2]
    assert low_band(context, share).tolist() == kept
    for channel in range(2):
        levelled = [window[n, channel] - window[-1, channel] for n in range(context)]
        by_hand = [
            sum(x * cmath.exp(-2j * math.pi * k * n / context) for n, x in enumerate(levelled)) / math.sqrt(context)
            for k in kept
        ]
        np.testing.assert_allclose(made.spectra(window[None])[0, :, channel], by_hand, atol=1e-9)


def test_it_forecasts_a_band_limited_wave_it_has_learnt() -> None:
    context, horizon = 24, 12
    rows = np.stack([np.sin(2 * np.pi * np.arange(300) / 12), np.cos(2 * np.pi * np.arange(300) / 6)], axis=1) + 7.0
    made = LinearForecaster.start(task(context, horizon), ElfSettings(ridge=1e-6))
    pairs = [pair(rows, origin, context, horizon) for origin in range(context - 1, 200)]
    made.learn(pairs)
    test = pair(rows, 250, context, horizon)
    np.testing.assert_allclose(made.forecast(test.window), test.outcome, atol=1e-4)


def pair(rows: Floats, origin: int, context: int, horizon: int) -> Pair:
    outcome = rows[origin + 1 : origin + 1 + horizon]
    return Pair(origin, rows[origin + 1 - context : origin + 1], np.zeros_like(outcome), outcome)


def test_a_hole_takes_the_pair_out_of_its_channel_only() -> None:
    rows = RNG.normal(size=(40, 2))
    pairs = [pair(rows, origin, 8, 4) for origin in range(7, 30)]
    holed = rows.copy()
    holed[20, 1] = np.nan  # inside the outcomes of origins 16 to 19
    with_hole = [Pair(p.origin, p.window, p.base, holed[p.origin + 1 : p.origin + 5]) for p in pairs]
    whole, without, found = (LinearForecaster.start(task(8, 4), ElfSettings()) for _ in range(3))
    whole.learn(pairs)
    without.learn([p for p in pairs if not 16 <= p.origin <= 19])
    found.learn(with_hole)
    np.testing.assert_allclose(found.ridge.weights[0], whole.ridge.weights[0], atol=1e-12)
    np.testing.assert_allclose(found.ridge.weights[1], without.ridge.weights[1], atol=1e-12)


def test_weights_follow_the_exponential_formula() -> None:
    weigher = Weigher.start(3, ElfSettings(rate=0.5, recent=2))
    blocks = RNG.uniform(0, 3, size=(6, 4, 3))
    for block in blocks:
        weigher.learn(block)
    for channel in range(3):
        totals, newest = blocks[:, :, channel].sum(axis=0), blocks[-2:, :, channel].sum(axis=0)
        e = [math.exp(-0.5 * loss) for loss in (*totals, *newest[:2])]
        assert weigher.slow[channel] == pytest.approx(e[0] / (e[0] + e[1]))
        assert weigher.fast[channel] == pytest.approx(e[4] / (e[4] + e[5]))
        assert weigher.fast_share[channel] == pytest.approx(e[2] / (e[2] + e[3]))


def test_huge_losses_leave_weights_finite() -> None:
    weigher = Weigher.start(1, ElfSettings())
    weigher.learn(np.asarray([[1e9], [0.0], [1e9], [0.0]]))
    np.testing.assert_array_equal([weigher.fast, weigher.slow, weigher.fast_share], 0.0)


def test_seasonal_naive_repeats_the_newest_season() -> None:
    window = np.arange(10.0)[:, None]
    assert seasonal_naive(window, 7, 3).ravel().tolist() == [7, 8, 9, 7, 8, 9, 7]
    assert seasonal_naive(window, 3, None).ravel().tolist() == [9, 9, 9]
    assert seasonal_naive(window, 3, 11).ravel().tolist() == [9, 9, 9]  # no whole season in the window


@pytest.mark.parametrize("protocol", ["honest", "full", "one-step"])
def test_the_method_equals_a_plain_replay_of_its_definition(protocol: str, world: World) -> None:
    every, options = 7, ElfSettings(every=7, recent=2)
    shown = list(world.snapshots(protocol))
    found = predictions(Elf.start(world.task(protocol), options), iter(shown))
    delay = 1 if protocol == "one-step" else HORIZON
    issued: list[Floats] = []  # (4, H, C)
    blocks: list[Floats] = []
    seen, matured = 0, 0
    for step, snapshot in enumerate(shown):
        if step % every == 0 and step >= delay:
            matured = step - delay + 1
            truth = [world.stream[shown[k].origin + 1 : shown[k].origin + 1 + HORIZON] for k in range(seen, matured)]
            blocks.append(((np.stack(issued[seen:matured]) - np.stack(truth)[:, None]) ** 2).mean(axis=(0, 2)))
            seen = matured
        linear = batch_linear(world, shown[:matured], snapshot, options)
        slow, fast = weight(blocks, 0, 1), weight(blocks[-2:], 0, 1)
        mixtures = [w * snapshot.base + (1 - w) * linear for w in (fast, slow)]
        share = weight(blocks, 2, 3)
        issued.append(np.stack([snapshot.base, linear, *mixtures]))
        np.testing.assert_allclose(found[step].mean, share * mixtures[0] + (1 - share) * mixtures[1], atol=1e-8)


def weight(blocks: list[Floats], one: int, other: int) -> Floats:
    first, second = (np.exp(-0.5 * sum((block[i] for block in blocks), np.zeros(2))) for i in (one, other))
    return np.asarray(first / (first + second))


def batch_linear(world: World, learnt: list[Snapshot], snapshot: Snapshot, options: ElfSettings) -> Floats:
    """Batch ridge on everything that has matured."""
    if not learnt:
        return seasonal_naive(snapshot.window, HORIZON, SEASON)
    kept, bins = low_band(CONTEXT, options.band), 2  # 0 and 1 of 4 rows: k / 4 <= 0.45
    columns = []
    for channel in range(2):
        windows = np.stack([m.window[:, channel] for m in learnt])
        outcomes = np.stack([world.stream[m.origin + 1 : m.origin + 1 + HORIZON, channel] for m in learnt])
        x = np.fft.fft(windows - windows[:, -1:], norm="ortho")[:, kept]
        y = np.fft.rfft(outcomes - windows[:, -1:], norm="ortho")[:, :bins]
        w = np.linalg.solve(x.conj().T @ x + options.ridge * np.eye(len(kept)), x.conj().T @ y)
        window = snapshot.window[:, channel]
        spectrum = np.fft.fft(window - window[-1], norm="ortho")[kept] @ w
        columns.append(window[-1] + np.fft.irfft(spectrum, n=HORIZON, norm="ortho"))
    return np.stack(columns, axis=1)


def test_it_keeps_no_more_than_what_is_not_yet_learnt(world: World) -> None:
    made = Elf.start(world.task(), ElfSettings(every=7))
    predictions(made, world.snapshots())
    assert len(made.issued) == HORIZON
    assert len(made.fresh) == len(made.squares) < 7


@pytest.mark.parametrize(
    "wrong", [{"band": 0.0}, {"band": 1.1}, {"ridge": 0.0}, {"every": 0}, {"rate": -1.0}, {"recent": 0}]
)
def test_settings_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(OptionError, match=next(iter(wrong))):
        ElfSettings(**wrong)  # type: ignore[arg-type]


def test_it_needs_no_torch() -> None:
    code = "import sys, ompb.baselines.elf; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
