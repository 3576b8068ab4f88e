"""The memory's regressions and its ladder of spans, against brute force over every window."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ompb.core.features import FeatureMap
from ompb.core.members import memory as module
from ompb.core.members.contract import MemberOptions
from ompb.core.members.memory import NAMES, POOLED, RANK, RIDGE, WEIGHT, Memory, fit_span
from ompb.core.members.slides import slid_products
from ompb.core.members.spans import JUDGED, lengths_that_pay, span_lengths
from ompb.types import Floats

CONTEXT, HORIZON, SEASON = 12, 3, 6


def features(horizon: int = HORIZON, season: int | None = SEASON) -> FeatureMap:
    return FeatureMap.build(np.arange(float(horizon)), season, CONTEXT, 4, use_profile=True)


def learned(
    rows: Floats,
    spans: tuple[int, ...],
    horizon: int = HORIZON,
    season: int | None = SEASON,
    outcomes: Floats | None = None,
) -> Memory:
    filled, known = rows[None], (rows if outcomes is None else outcomes)[None]
    seen = features(horizon, season)
    (lengths,) = lengths_that_pay(seen, filled, known, span_lengths(CONTEXT, season, spans))
    learner = Memory.learner(seen, MemberOptions(spans=lengths))
    learner.read(filled, known)
    member = learner.finish()
    assert isinstance(member, Memory)
    return member


def series(seed: int, lanes: int, rows: int, period: float = 40.0) -> Floats:
    """A season, another period too long for a window, and noise that lasts, differently strong in every lane."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(lanes, rows))
    for t in range(1, rows):
        steps[:, t] += 0.8 * steps[:, t - 1]
    time = np.arange(rows)
    strength = rng.uniform(0.5, 2.0, size=(lanes, 2, 1))
    waves = strength[:, 0] * np.sin(2 * np.pi * time / SEASON) + strength[:, 1] * np.sin(2 * np.pi * time / period)
    return np.asarray(waves + 0.5 * steps)


def cut(rows: Floats, length: int, horizon: int, season: int | None) -> tuple[Floats, Floats, Floats]:
    """Every window less its level, its level and the rows ahead of it less the level, one by one."""
    xs, levels, ys = [], [], []
    for start in range(len(rows) - length - horizon + 1):
        window = rows[start : start + length]
        level = window[-1] if season is None else window[-(CONTEXT // season * season) :].mean()
        xs.append(window - level)
        levels.append(level)
        ys.append(rows[start + length : start + length + horizon] - level)
    return np.asarray(xs), np.asarray(levels), np.asarray(ys)


def ridge_solution(rows: Floats, length: int, horizon: int, season: int | None) -> tuple[Floats, Floats]:
    """W = (sum x x^T + (3e-3 tr/M + 50) I)^-1 sum x (y - l)^T over all windows of all lanes, and what is inverted."""
    gram, cross = np.zeros((length, length)), np.zeros((length, horizon))
    for lane in rows:
        x, _, y = cut(lane, length, horizon, season)
        gram += x.T @ x
        cross += x.T @ y
    ridged = gram + (3e-3 * np.trace(gram) / length + 50.0) * np.eye(length)
    return np.linalg.solve(ridged, cross), ridged


@pytest.mark.parametrize(
    ("lanes", "rows", "length", "ahead"), [(1, 5, 3, 2), (1, 6, 1, 1), (3, 40, 7, 5), (2, 90, 24, 4)]
)
def test_products_of_all_windows(lanes: int, rows: int, length: int, ahead: int) -> None:
    values = np.random.default_rng(0).normal(3.0, size=(lanes, rows))
    expected = np.zeros((lanes, length, length + ahead))
    for lane in range(lanes):
        for start in range(rows - length - ahead + 1):
            whole = values[lane, start : start + length + ahead]
            expected[lane] += np.outer(whole[:length], whole)
    np.testing.assert_allclose(slid_products(values, length, ahead), expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("season", [SEASON, None, 5])
@pytest.mark.parametrize("span", [1, 3])
def test_the_pooled_memory_is_the_ridge_solution(span: int, season: int | None) -> None:
    """Exactly, as there are no more leads than `RANK`."""
    assert (RIDGE, WEIGHT) == (3e-3, 50.0)
    assert HORIZON <= RANK
    rows = series(0, 3, 200)
    spans = learned(rows, (1, span) if span > 1 else (1,), season=season).spans
    found = spans[-1]
    solution, _ = ridge_solution(rows, found.rows, HORIZON, season)
    for n, lane in enumerate(rows):
        x, levels, _ = cut(lane, found.rows, HORIZON, season)
        windows = x + levels[:, None]
        said = found.forecasts(np.broadcast_to(windows, (3, *windows.shape)))[n, :, :HORIZON]
        np.testing.assert_allclose(said, levels[:, None] + x @ solution, rtol=1e-8, atol=1e-9)


def test_with_more_leads_than_its_rank_it_is_the_nearest_to_the_ridge_solution() -> None:
    """In the forecasts: by the singular values of C^T W, S = C C^T (Eckart and Young)."""
    horizon = RANK + 8
    rows = series(1, 2, 300)
    (span,) = learned(rows, (1,), horizon).spans
    assert span.pooled.shape == (1, min(RANK, CONTEXT) + 1, horizon)
    solution, ridged = ridge_solution(rows, CONTEXT, horizon, SEASON)
    root = np.linalg.cholesky(ridged)
    left, values, right = np.linalg.svd(root.T @ solution, full_matrices=False)
    nearest = np.linalg.solve(root.T, (left[:, :RANK] * values[:RANK]) @ right[:RANK])
    x, levels, _ = cut(rows[0], CONTEXT, horizon, SEASON)
    said = span.forecasts(np.stack([x + levels[:, None]] * 2))[0, :, :horizon]
    np.testing.assert_allclose(said, levels[:, None] + x @ nearest, rtol=1e-7, atol=1e-8)


def test_a_long_window_with_many_leads_keeps_what_matters_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same with a rank that leaves something out."""
    monkeypatch.setattr(module, "RANK", 4)
    rows = series(2, 2, 300)
    span = learned(rows, (1, 2), 10).spans[-1]
    solution, ridged = ridge_solution(rows, span.rows, 10, SEASON)
    root = np.linalg.cholesky(ridged)
    left, values, right = np.linalg.svd(root.T @ solution, full_matrices=False)
    assert values[4] > 1e-3 * values[0]  # something is left out
    nearest = np.linalg.solve(root.T, (left[:, :4] * values[:4]) @ right[:4])
    x, levels, _ = cut(rows[1], span.rows, 10, SEASON)
    said = span.forecasts(np.stack([x + levels[:, None]] * 2))[1, :, :10]
    np.testing.assert_allclose(said, levels[:, None] + x @ nearest, rtol=1e-7, atol=1e-8)


def test_in_the_channels_own_the_pooled_one_counts_as_so_many_windows() -> None:
    """The least of sum (y - l - phi V)^2 + POOLED mean |phi (V - pooled)|^2, a mean over all lanes, ridge included."""
    rows = series(3, 3, 150)
    (span,) = learned(rows, (1,)).spans
    _, ridged = ridge_solution(rows, CONTEXT, HORIZON, SEASON)
    parts = [cut(lane, CONTEXT, HORIZON, SEASON) for lane in rows]
    windows = sum(len(x) for x, _, _ in parts)
    subspace = np.linalg.lstsq(np.concatenate([x for x, _, _ in parts]), np.concatenate(seen_by(span, parts)))[0]  # U
    per_window = subspace.T @ ridged @ subspace / windows
    prior = math.sqrt(POOLED) * np.linalg.cholesky(per_window).T
    pooled = span.pooled[0, :-1]
    for n, ((_, _, y), phi) in enumerate(zip(parts, seen_by(span, parts), strict=True)):
        inputs, targets = np.concatenate([phi, prior]), np.concatenate([y, prior @ pooled])
        np.testing.assert_allclose(span.own[n, :-1], np.linalg.lstsq(inputs, targets)[0], rtol=1e-6, atol=1e-8)
        np.testing.assert_array_equal(span.own[n, -1], 1.0)
    assert np.abs(span.own - span.pooled).max() > 1e-2


def seen_by(span: module.Span, parts: list[tuple[Floats, Floats, Floats]]) -> list[Floats]:
    """The features x U of the windows of each lane."""
    return [np.asarray((x + levels[:, None]) @ span.reads[0])[:, :-1] for x, levels, _ in parts]


def test_missing_labels_are_not_learned_and_missing_inputs_are_filled() -> None:
    """V of lead h is the mean over its known labels; what stands in for a missing one has no part in it."""
    rows = series(4, 2, 160)
    known = rows.copy()
    known[0, 40:55] = np.nan
    known[1, [20, 77, 110]] = np.nan
    (span,) = learned(rows, (1,), outcomes=known).spans
    parts = [cut(lane, CONTEXT, HORIZON, SEASON) for lane in rows]
    windows = sum(len(x) for x, _, _ in parts)
    phis = seen_by(span, parts)
    for lead in range(HORIZON):
        total, count = np.zeros(span.pooled.shape[1] - 1), 0
        for n, ((_, _, y), phi) in enumerate(zip(parts, phis, strict=True)):
            for place in range(len(y)):
                if np.isfinite(known[n, place + CONTEXT + lead]):
                    total += phi[place] * y[place, lead]
                    count += 1
        np.testing.assert_allclose(span.pooled[0, :-1, lead], total * windows / count, rtol=1e-8, atol=1e-8)
        assert count < windows


def test_a_level_shift_of_all_rows_moves_the_forecast_by_as_much() -> None:
    rows = series(5, 2, 200)
    memory = learned(rows, (1, 2, 4))
    rng = np.random.default_rng(6)
    newest, base = rng.normal(size=(2, 5, 4 * CONTEXT)), rng.normal(size=(2, 5, HORIZON))
    view = features().view
    still, moved = (memory.see(view(newest + shift, base)) for shift in (0.0, 7.0))
    np.testing.assert_allclose(moved, still + 7.0, atol=1e-9)
    # and the base forecast has no part in it
    np.testing.assert_allclose(memory.see(view(newest, base + 3.0)), still - 3.0, atol=1e-12)


@pytest.mark.parametrize(
    ("seed", "rows", "period"), [(0, 400, 40), (1, 400, 17), (2, 300, 60), (3, 250, 9), (4, 3000, 70), (5, 120, 30)]
)
def test_spans_that_pay_are_successive_records(seed: int, rows: int, period: float) -> None:
    """In the squared error of the pooled ridge on the last fifth, of those that can be fitted on the rest."""
    values, multiples = series(seed, 2, rows, period), (1, 2, 4, 6)
    known = math.ceil((1 - JUDGED) * rows)
    origins = list(range(known - 1, rows - HORIZON))
    origins = origins[:: max(1, math.ceil(len(origins) / 512))]
    records, least = [], math.inf
    for multiple in multiples:
        length = multiple * CONTEXT
        if length + HORIZON > known:
            continue
        solution, _ = ridge_solution(values[:, :known], length, HORIZON, SEASON)
        errors = []
        for lane in values:
            for origin in origins:
                window, level = lane[origin + 1 - length : origin + 1], lane[origin + 1 - CONTEXT : origin + 1].mean()
                said = level + (window - level) @ solution
                errors.append((lane[origin + 1 : origin + 1 + HORIZON] - said) ** 2)
        if np.mean(errors) < least:
            least = np.mean(errors)
            records.append(length)
    assert [span.rows for span in learned(values, multiples).spans] == records


@pytest.mark.parametrize("at_once", [1, 4_000_000])
@pytest.mark.parametrize("channels", [1, 3])
def test_series_learned_together_are_those_learned_alone(
    channels: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit: what each says, and which of its spans pay."""
    monkeypatch.setattr(module, "AT_ONCE", at_once)
    monkeypatch.setattr(module, "BLOCK", 50)
    many = np.stack([series(seed, channels, 300, 60.0) for seed in range(6)])
    missing = np.where(np.random.default_rng(1).uniform(size=many.shape) < 0.02, np.nan, many)
    lengths = span_lengths(CONTEXT, SEASON, (1, 2, 4, 6))
    together = lengths_that_pay(features(), many, missing, lengths)
    assert len(set(together)) > 1
    windows = np.random.default_rng(2).normal(size=(6 * channels, 5, 2 * CONTEXT))
    both = fit_span(features(), many, missing, 2 * CONTEXT)
    said = both.forecasts(windows).reshape(6, channels, 5, -1)
    for one in range(6):
        alone = many[one : one + 1], missing[one : one + 1]
        assert lengths_that_pay(features(), *alone, lengths) == [together[one]]
        span = fit_span(features(), *alone, 2 * CONTEXT)
        np.testing.assert_array_equal(both.reads[one], span.reads[0])
        np.testing.assert_array_equal(both.pooled[one], span.pooled[0])
        np.testing.assert_array_equal(said[one], span.forecasts(windows.reshape(6, channels, 5, -1)[one]))
    assert np.abs(both.reads[0] - both.reads[1]).max() > 1e-3


def test_some_spans_pay_and_some_do_not() -> None:
    """The test above has something to tell apart."""
    found = {len(learned(series(seed, 2, 300, 60.0), (1, 2, 4, 6)).spans) for seed in range(6)}
    assert len(found) > 1


def test_a_source_too_short_to_judge_keeps_the_window() -> None:
    assert [span.rows for span in learned(series(7, 1, CONTEXT + HORIZON), (1, 2, 4)).spans] == [CONTEXT]


def test_each_window_is_read_by_the_longest_span_that_is_known() -> None:
    rows = series(0, 2, 400)
    memory = learned(rows, (1, 2, 4, 6))
    lengths = [span.rows for span in memory.spans]
    assert len(lengths) > 1
    assert memory.reach == lengths[-1]
    rng = np.random.default_rng(8)
    known = (1, CONTEXT, *(length + off for length in lengths for off in (-1, 0, 1)), 10_000)
    newest = rng.normal(size=(2, len(known), memory.reach))
    base = rng.normal(size=(2, len(known), HORIZON))
    together = memory.see(features().view(newest, base, known))
    for place, rows_known in enumerate(known):
        longest = max((length for length in lengths if length <= rows_known), default=lengths[0])
        span = memory.spans[lengths.index(longest)]
        said = span.forecasts(newest[:, place : place + 1])[:, 0] - np.concatenate([base[:, place]] * 2, axis=-1)
        np.testing.assert_allclose(together[:, place], said, atol=1e-12)


def test_its_two_voices_say_what_it_saw() -> None:
    memory = learned(series(9, 2, 200), (1,))
    rng = np.random.default_rng(9)
    newest, base = rng.normal(size=(2, 4, CONTEXT)), rng.normal(size=(2, 4, HORIZON))
    seen = memory.see(features().view(newest, base))
    speech = memory.speak(None, seen)
    assert memory.names == NAMES
    assert speech.leverage is None
    np.testing.assert_array_equal(speech.corrections[:, 0], seen[..., :HORIZON])
    np.testing.assert_array_equal(speech.corrections[:, 1], seen[..., HORIZON:])
