"""What many studies show together, against each of them."""

from dataclasses import replace

import numpy as np
import pytest
from small_study import eight


def test_scores_are_means_over_series() -> None:
    found = eight()
    each = {seed: found[seed].scores()["target"] for seed in found}
    for place, line in enumerate(found.scores()):
        assert line.name == each[0][place].name
        assert line.mae == pytest.approx(np.mean([lines[place].mae for lines in each.values()]))
    assert found.scores()[-1].coverage80 == pytest.approx(np.mean([lines[-1].coverage80 for lines in each.values()]))
    assert found.scores()[0].coverage80 is None


def test_lines_are_those_of_each_study() -> None:
    found = eight()
    for line in found.lines:
        bare, ours = (found[line.id].scores()["target"][place] for place in (0, -1))
        assert (line.mae_bare, line.mae_ompb, line.certificate) == (bare.mae, ours.mae, ours.certificate)
        assert line.ratio == ours.mae / bare.mae
        assert (line.rows, line.forecasts) == (100, 100)
        assert line.warnings == len(found[line.id].run.warnings)


def test_the_best_and_the_worst_are_apart() -> None:
    found = eight()
    ratios = sorted(line.ratio for line in found.lines)
    assert [line.ratio for line in found.best] == ratios[:3]
    assert [line.ratio for line in found.worst] == ratios[:-4:-1]
    for count, best, worst in ((1, 1, 0), (2, 1, 1), (3, 2, 1), (5, 3, 2)):
        few = replace(found, each={seed: found[seed] for seed in range(count)})
        assert (len(few.best), len(few.worst)) == (best, worst)
        assert not {line.id for line in few.best} & {line.id for line in few.worst}


def test_a_reference_that_some_lack_is_not_averaged_over_all() -> None:
    found = eight()
    without = replace(found[0], references={"last value": found[0].references["last value"]})
    mixed = replace(found, each={**found.each, 0: without})
    assert [line.name for line in mixed.scores()] == ["bare forecaster", "last value", "ompb"]
    assert mixed.names == [line.name for line in found.scores()]
    assert mixed.having("running bias") == [1, 2, 3, 4, 5, 6, 7]
    assert mixed.mean("ompb", among="running bias").mae == pytest.approx(
        np.mean([line.mae_ompb for line in found.lines[1:]])
    )


def test_no_error_to_compare_with_is_no_ratio() -> None:
    found = eight()
    line = replace(found.lines[0], mae_bare=0.0)
    assert np.isnan(line.ratio)
    unknown = replace(found[0], run=replace(found[0].run, outcome=found[0].run.outcome * np.nan))
    some = replace(found, each={**found.each, 0: unknown})
    assert len(some.ranked) == 7
    assert some.scores()[0].mae == pytest.approx(np.mean([line.mae_bare for line in found.lines[1:]]))
