"""What a cell is told of its stream: whether it goes on where the source ends, and the base forecasts' own error."""

from pathlib import Path

import pytest
from small_etth import HORIZON, write_small_etth

from ompb.bench import methods
from ompb.bench.backbones import RunContext
from ompb.bench.contract import Prediction, Snapshot, Task, as_prediction
from ompb.bench.methods import method
from ompb.bench.runner import Grid, run
from ompb.bench.store import BARE, Store, collect
from ompb.errors import OptionError
from ompb.floor.registry import Registry

made: list[bool] = []


class Level:
    """The base forecast and, where the stream goes on, 1 more."""

    def __init__(self, task: Task) -> None:
        made.append(task.continues)
        self.settings = {"trainable": 7 if task.continues else 0}

    def step(self, snapshot: Snapshot) -> Prediction:
        return Prediction(snapshot.base + bool(self.settings["trainable"]))


@pytest.mark.parametrize("by_stream", [True, False])
def test_who_reads_whether_a_stream_goes_on_is_made_for_each(
    by_stream: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(methods, "_METHODS", Registry("method", "ompb.methods"))
    method("level", by_stream=by_stream)(Level)
    method("still")(Still)
    made.clear()
    folder = write_small_etth(tmp_path)
    cells = Grid.of(["etth"], ["ridge"], [HORIZON], methods=["level", "still"], folder=folder).cells
    store = Store(tmp_path / "store")
    report = run(cells, RunContext(store, folder))
    assert not report.failed
    assert made == ([True, False] if by_stream else [True])
    found = {(one.cell.split, one.cell.method): one for one in collect(store)}
    assert found["id", "level"].facts["trainable"] == 7
    assert found["ood", "level"].facts["trainable"] == (0 if by_stream else 7)
    for split in ("id", "ood"):
        bare = found[split, "still"].metrics["mae"]
        assert [found[split, name].metrics[BARE] for name in ("level", "still")] == pytest.approx([bare, bare])


@pytest.mark.parametrize(
    ("answer", "words"),
    [([[1.0]], r"returned \[\[1\.0\]\]"), (None, "None"), (Prediction([1.0]), r"mean is \[1")],  # type: ignore[arg-type]
)
def test_what_is_no_prediction_is_named(answer: object, words: str) -> None:
    with pytest.raises(OptionError, match=rf"{words}.*whose mean is an array \(H, C\)"):
        as_prediction(answer)


class Still:
    """The base forecast."""

    settings: dict[str, int] = {}  # noqa: RUF012

    def __init__(self, task: Task) -> None:
        pass

    def step(self, snapshot: Snapshot) -> Prediction:
        return Prediction(snapshot.base)
