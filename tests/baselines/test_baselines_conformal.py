"""ACI and DtACI against scalar loops, their coverage theorem, and the definition of their quantiles."""

import math
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from ompb.baselines.conformal import (
    Aci,
    AciSettings,
    Calibration,
    Dtaci,
    DtaciSettings,
    learning_rate,
    replaced,
)
from ompb.bench.contract import SCORED_LEVELS, Method, Snapshot, Task, snapshots
from ompb.bench.methods import make
from ompb.bench.protocols import Clock
from ompb.errors import OptionError, TooShortError
from ompb.testing.method import task_of
from ompb.types import Floats

CONTEXT, HORIZON, CHANNELS, WINDOW = 4, 3, 2, 20
PROTOCOLS = ("honest", "full", "one-step", "delay=2", "delay=7")


def made_task(protocol: str = "honest", seed: int = 0) -> Task:
    rng = np.random.default_rng(seed)
    source = rng.normal(size=(60, CHANNELS))
    base = 0.1 * rng.normal(size=(60 - CONTEXT - HORIZON + 1, HORIZON, CHANNELS))
    return task_of(source, base, CONTEXT, protocol=protocol)


def stream(steps: int, holes: bool = True, jump: float = 4.0) -> tuple[Floats, Floats]:
    """Rows whose spread jumps, and base forecasts."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(CONTEXT - 1 + steps + HORIZON, CHANNELS))
    rows[len(rows) // 2 :] *= jump
    if holes:
        rows[rng.uniform(size=rows.shape) < 0.1] = np.nan
    return rows, 0.1 * rng.normal(size=(steps, HORIZON, CHANNELS))


def snapshots_of(rows: Floats, base: Floats, protocol: str) -> Iterator[Snapshot]:
    return snapshots(rows, np.nan_to_num(rows), base, Clock(protocol, HORIZON, CONTEXT - 1), CONTEXT)


def source_scores(task: Task, lead: int, channel: int, window: int) -> list[float]:
    """Oldest first."""
    count = len(task.source_base)
    scores = [abs(task.source[CONTEXT + k + lead, channel] - task.source_base[k, lead, channel]) for k in range(count)]
    return [float(score) for score in scores[-window:]]


def scalar_quantile(scores: list[float], share: float) -> float:
    if share <= 1e-10:
        return -math.inf
    for candidate in sorted(scores):
        if sum(score <= candidate for score in scores) >= len(scores) * share - 1e-9:
            return candidate
    return math.inf


def delays(protocol: str, lead: int) -> int:
    """Steps from an origin to the moment that its lead (from 0) is shown."""
    return {"honest": lead + 1, "full": HORIZON, "one-step": 1, "delay=2": 2, "delay=7": 7}[protocol]


def scalar_aci(
    task: Task, rows: Floats, base: Floats, cell: tuple[int, int], level: float, options: AciSettings
) -> tuple[list[float], list[float]]:
    """Half widths and alphas, one lead, channel and level, by the book."""
    lead, channel = cell
    scores = source_scores(task, lead, channel, options.window)
    alpha = 1 - level
    halves: list[float] = []
    alphas: list[float] = []
    for step in range(len(base)):
        due = step - delays(task.protocol, lead)
        if due >= 0:
            score = abs(rows[CONTEXT + due + lead, channel] - base[due, lead, channel])
            if not math.isnan(score):
                alpha += options.step * (1 - level - (score > halves[due]))
                scores = [*scores[1:], score]
        halves.append(scalar_quantile(scores, 1 - alpha))
        alphas.append(alpha)
    return halves, alphas


def half_widths(method: Method, rows: Floats, base: Floats, protocol: str) -> Floats:
    """(steps, levels, H, C), as issued; the mean must be the base forecast."""
    found = []
    for snapshot in snapshots_of(rows, base, protocol):
        prediction = method.step(snapshot)
        np.testing.assert_array_equal(prediction.mean, snapshot.base)
        assert prediction.sd is None
        assert prediction.intervals is not None
        assert tuple(prediction.intervals) == SCORED_LEVELS
        ends = [prediction.intervals[level] for level in SCORED_LEVELS]
        lower, upper = ([snapshot.base - low for low, _ in ends], [high - snapshot.base for _, high in ends])
        np.testing.assert_allclose(lower, upper, atol=1e-9)
        found.append(upper)
    return np.asarray(found)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_aci_equals_a_scalar_loop(protocol: str) -> None:
    task, options = made_task(protocol), AciSettings(step=0.05, window=WINDOW)
    rows, base = stream(90)
    method = Aci.start(task, options)
    found = half_widths(method, rows, base, protocol)
    for lead, channel in np.ndindex(HORIZON, CHANNELS):
        largest = largest_scores(task, rows, base, (lead, channel), options.window)
        for place, level in enumerate(SCORED_LEVELS):
            halves, alphas = scalar_aci(task, rows, base, (lead, channel), level, options)
            shown = np.clip(halves, 0.0, largest)
            np.testing.assert_allclose(found[:, place, lead, channel], shown, atol=1e-12)
            assert method.alpha[lead, channel, place] == pytest.approx(alphas[-1], abs=1e-12)


def largest_scores(task: Task, rows: Floats, base: Floats, cell: tuple[int, int], window: int) -> list[float]:
    """The largest score in the window at every step."""
    lead, channel = cell
    scores, largest = source_scores(task, lead, channel, window), []
    for step in range(len(base)):
        due = step - delays(task.protocol, lead)
        score = abs(rows[CONTEXT + due + lead, channel] - base[due, lead, channel]) if due >= 0 else math.nan
        if not math.isnan(score):
            scores = [*scores[1:], score]
        largest.append(max(scores))
    return largest


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_dtaci_equals_a_scalar_loop(protocol: str) -> None:
    task, options = made_task(protocol), DtaciSettings(steps=(0.01, 0.1), interval=50, window=WINDOW, whole_line=True)
    rows, base = stream(60)
    method = Dtaci.start(task, options)
    found = half_widths(method, rows, base, protocol)
    for lead, channel in ((0, 0), (1, 1), (2, 0)):
        for place in (0, 4, 8, 9):
            level = SCORED_LEVELS[place]
            halves, weights = scalar_dtaci(task, rows, base, (lead, channel), level, options)
            np.testing.assert_allclose(found[:, place, lead, channel], np.maximum(halves, 0.0), atol=1e-12)
            np.testing.assert_allclose(method.weights[lead, channel, place], weights, atol=1e-10)


def scalar_dtaci(
    task: Task, rows: Floats, base: Floats, cell: tuple[int, int], level: float, options: DtaciSettings
) -> tuple[list[float], list[float]]:
    """Half widths and last weights, one lead, channel and level, by the book: weights need not sum to one."""
    (lead, channel), target = cell, 1 - level
    scores, experts = source_scores(task, lead, channel, options.window), len(options.steps)
    moment = (1 - target) ** 2 * target**3 + target**2 * (1 - target) ** 3
    eta = math.sqrt(3 / options.interval) * math.sqrt((math.log(2 * experts * options.interval) + 1) / moment)
    sigma = 1 / (2 * options.interval)
    alphas, weights, halves = [target] * experts, [1.0] * experts, []
    issued: list[tuple[list[float], list[float]]] = []  # window and alphas
    for step in range(len(base)):
        due = step - delays(task.protocol, lead)
        score = abs(rows[CONTEXT + due + lead, channel] - base[due, lead, channel]) if due >= 0 else math.nan
        if not math.isnan(score):
            window, chosen = issued[due]
            beta = sup_covered(window, score)
            raw = []
            for i in range(experts):
                pinball = target * (beta - chosen[i]) - min(0.0, beta - chosen[i])
                raw.append(weights[i] * math.exp(-eta * pinball))
                missed = score > scalar_quantile(window, 1 - chosen[i])
                alphas[i] += options.steps[i] * (target - missed)
            weights = [(1 - sigma) * w + sum(raw) * sigma / experts for w in raw]
            scores = [*scores[1:], score]
        issued.append((list(scores), list(alphas)))
        mean = sum(w * a for w, a in zip(weights, alphas, strict=True)) / sum(weights)
        halves.append(scalar_quantile(scores, 1 - mean))
    return halves, [w / sum(weights) for w in weights]


def sup_covered(window: list[float], score: float) -> float:
    """The supremum of the levels at which the score is covered: between two steps of the quantile, by trial."""
    steps = [k / len(window) for k in range(len(window) + 1)]
    covered = [step for step in steps if step > 0 and score <= scalar_quantile(window, 1 - (step - 1e-6))]
    return max(covered, default=0.0)


@pytest.mark.parametrize("protocol", ["honest", "full", "one-step"])
def test_aci_keeps_its_promise_against_an_adversary(protocol: str) -> None:
    """|share outside - alpha| <= (max(alpha, 1 - alpha) + delay * gamma) / (labels * gamma), whatever the data."""
    steps, gamma = 1500, 0.02
    rows, base = stream(steps, holes=False)
    grows = np.exp(np.linspace(0, 8, len(rows)))[:, None]
    rows = np.where(np.arange(len(rows))[:, None] % 200 < 120, rows * grows, 0.01 * rows)  # worst: ever new records
    found = half_widths(
        Aci.start(made_task(protocol), AciSettings(step=gamma, window=WINDOW, whole_line=True)), rows, base, protocol
    )
    for lead in range(HORIZON):
        labels = steps - delays(protocol, lead)
        scores = np.abs(rows[CONTEXT + lead : CONTEXT + lead + labels] - base[:labels, lead])  # (labels, C)
        outside = (scores[:, None] > found[:labels, :, lead]).mean(axis=0)  # (levels, C)
        for place, level in enumerate(SCORED_LEVELS):
            bound = (max(level, 1 - level) + delays(protocol, lead) * gamma) / (labels * gamma)
            assert np.abs(outside[place] - (1 - level)).max() <= bound + 1e-9


def test_dtaci_covers_what_it_promises_through_a_shift() -> None:
    rows, base = stream(2000, holes=False)
    found = half_widths(Dtaci.start(made_task(), DtaciSettings(window=200)), rows, base, "honest")
    for lead in range(HORIZON):
        scores = np.abs(rows[CONTEXT + lead : CONTEXT + lead + 2000] - base[:, lead])
        inside = (scores[:, None] <= found[:, :, lead]).mean(axis=0)  # (levels, C)
        np.testing.assert_allclose(inside, np.asarray(SCORED_LEVELS)[:, None].repeat(CHANNELS, axis=1), atol=0.03)


def test_dtaci_trusts_the_large_step_after_a_jump_more_than_in_peace() -> None:
    """Weight of the larger half of the step sizes, level 0.9, mean over cells."""
    rows, base = stream(600, holes=False, jump=40.0)
    weights = []
    method = Dtaci.start(made_task(), DtaciSettings(window=200))
    for snapshot in snapshots_of(rows, base, "honest"):
        method.step(snapshot)
        weights.append(method.weights[:, :, SCORED_LEVELS.index(0.9), 4:].sum(axis=-1).mean())
    assert np.mean(weights[305:340]) > 1.2 * np.mean(weights[200:290])


def test_learning_rate_by_the_second_moment_of_the_loss() -> None:
    target = 0.1
    beta = (np.arange(200_000) + 0.5) / 200_000
    loss = target * (beta - target) - np.minimum(0, beta - target)
    expected = math.sqrt((math.log(2 * 8 * 500) + 1) / (500 * (loss**2).mean()))
    assert learning_rate(np.asarray([target]), 500, 8)[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("aci", [True, False])
def test_what_is_issued_is_finite_and_learning_is_the_same(aci: bool) -> None:
    rows, base = stream(200)
    rows = rows * np.exp(np.linspace(0, 6, len(rows)))[:, None]  # always new records: alpha_t falls below 0
    widths = []
    for whole_line in (False, True):
        method: Method = (
            Aci.start(made_task(), AciSettings(step=0.05, window=WINDOW, whole_line=whole_line))
            if aci
            else Dtaci.start(made_task(), DtaciSettings(window=WINDOW, whole_line=whole_line))
        )
        widths.append(half_widths(method, rows, base, "honest"))
    finite, whole = widths
    assert np.isinf(whole).any()
    assert np.isfinite(finite).all()
    np.testing.assert_array_equal(finite[np.isfinite(whole)], whole[np.isfinite(whole)])


def test_replacing_keeps_order() -> None:
    rng = np.random.default_rng(2)
    values = rng.integers(0, 6, size=(200, 5)).astype(float)  # ties
    old, new = values[np.arange(200), rng.integers(0, 5, 200)], rng.integers(0, 6, 200).astype(float)
    found = replaced(np.sort(values, axis=1), old, new)
    for row, gone, come, after in zip(values, old, new, found, strict=True):
        left = row.tolist()
        left.remove(gone)
        assert sorted([*left, come]) == after.tolist()
    assert replaced(np.asarray([[3.0]]), np.asarray([3.0]), np.asarray([1.0])).tolist() == [[1.0]]


@pytest.mark.parametrize("name", ["aci", "dtaci"])
def test_memory_does_not_grow(name: str) -> None:
    made = make(name, made_task())
    assert isinstance(made, Aci | Dtaci)
    rows, base = stream(80)
    half_widths(made, rows, base, "honest")
    assert made.issued.ring is not None
    assert len(made.issued.ring) == HORIZON


def test_a_source_with_holes_gives_its_complete_outcomes() -> None:
    task = made_task()
    task.source[50, 0] = np.nan  # inside three outcomes
    calibration = Calibration.start(task, WINDOW)
    assert calibration.window == WINDOW - HORIZON
    assert np.isfinite(calibration.ordered).all()
    task.source[:] = np.nan
    with pytest.raises(TooShortError, match="complete"):
        Calibration.start(task, WINDOW)


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(OptionError, match="window"):
        AciSettings(window=0)
    with pytest.raises(OptionError, match="step"):
        AciSettings(step=0.0)
    with pytest.raises(OptionError, match="steps"):
        DtaciSettings(steps=())
    with pytest.raises(OptionError, match="interval"):
        DtaciSettings(interval=0)


def test_it_needs_no_torch() -> None:
    code = "import sys, ompb.baselines.conformal; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
