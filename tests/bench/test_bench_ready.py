"""What many cells lack is told once, before the first of them."""

from dataclasses import replace
from pathlib import Path

import pytest
from small_etth import HORIZON, write_small_etth

from ompb.bench.backbones import RunContext
from ompb.bench.executors import InTurn
from ompb.bench.ready import require_devices, require_weights
from ompb.bench.runner import Grid, LeftOut, Report, run
from ompb.bench.store import Cell, Store
from ompb.errors import OptionError

CELL = Cell("etth", "ridge", HORIZON, "id", "honest", "last", 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_small_etth(tmp_path_factory.mktemp("data"))


@pytest.mark.parametrize(("device", "train_on"), [("cuda:99", None), ("cpu", "cuda:99")])
def test_a_device_that_is_not_there_stops_a_run_before_its_first_cell(
    device: str, train_on: str | None, tmp_path: Path, folder: Path
) -> None:
    pytest.importorskip("torch")
    lacking = RunContext(Store(tmp_path), folder, device, train_on=train_on)
    with pytest.raises(OptionError, match="'cuda:99' is not available"):
        run([CELL], lacking)
    assert not list(tmp_path.iterdir())
    assert run([], lacking).asked == 0  # nothing needs it


def test_elsewhere_other_devices_may_be(tmp_path: Path, folder: Path) -> None:
    pytest.importorskip("torch")

    class Elsewhere(InTurn):
        is_here = False

    lacking = RunContext(Store(tmp_path), folder, device="cuda:99")
    assert run([CELL], lacking, executor=Elsewhere()).new == [CELL]  # a ridge and the newest row need no device


def test_the_cpu_is_always_there() -> None:
    require_devices(RunContext(Store(Path("nowhere"))))


@pytest.mark.parametrize("backbone", ["gpt4ts", "gpt4ts[gpt2-partial]", "gpt4ts[gpt2-partial]@5"])
def test_weights_that_are_not_there_stop_a_run_before_its_first_cell(
    backbone: str, tmp_path: Path, folder: Path
) -> None:
    pytest.importorskip("torch")
    lacking = RunContext(Store(tmp_path / "store"), folder, gpt2_checkpoint=str(tmp_path))
    with pytest.raises(OptionError, match=r"weights of gpt4ts.* has no config.json.*--gpt2-checkpoint"):
        run([CELL, replace(CELL, backbone=backbone)], lacking)
    assert not (tmp_path / "store").exists()
    require_weights([replace(CELL, backbone=name) for name in ("ridge", "tcn", "gpt4ts[random]")], lacking)


def test_weights_in_a_file_are_at_hand(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    file = tmp_path / "gpt2.safetensors"
    file.touch()  # what is in it is seen when it is read
    cells = [replace(CELL, backbone="gpt4ts[gpt2-partial]")]
    require_weights(cells, RunContext(Store(tmp_path), gpt2_checkpoint=str(file)))


def test_one_reason_one_sentence() -> None:
    others = [replace(CELL, method=name) for name in ("gd", "er", "ompb")]
    reasons = [LeftOut("gd", "no network"), LeftOut("er", "no network"), LeftOut("ompb", "rows only")]
    grid = Grid((CELL,), dict(zip(others, reasons, strict=True)))
    assert grid.told() == ["gd, er left out: no network.", "ompb left out: rows only."]
    cells = [replace(CELL, seed=seed) for seed in range(5)]
    report = Report(0, 5, failed={cell: "too short." if cell.seed else "no row." for cell in cells})
    one, *rest = map(str, cells)
    assert report.told() == [f"{one} failed: no row.", f"{rest[0]}, {rest[1]} and 2 more failed: too short."]
