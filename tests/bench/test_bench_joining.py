"""Which networks cells stand on, told by the error of their base forecasts."""

from pathlib import Path

import pytest

from ompb.bench.joining import Joining, bare_errors, strangers
from ompb.bench.store import BARE, Cell, Result, Store, exported
from ompb.errors import OptionError
from ompb.paper.running import export_all


def result(method: str, mae: float, bare: float | None = None, split: str = "ood") -> Result:
    cell = Cell("etth", "tcn", 24, split, "honest", method, 0)
    metrics = {"mae": mae} if bare is None else {"mae": mae, BARE: bare}
    return Result(cell, metrics, {}, {}, {}, "cpu", None, {})


EARLIER = [result("original", 2.2152), result("ompb", 0.5218), result("elf", 0.6)]


def test_the_bare_forecaster_tells_its_error_and_others_that_of_their_base() -> None:
    (ground,) = bare_errors(EARLIER)
    assert bare_errors(EARLIER)[ground] == 2.2152
    assert bare_errors([result("ompb", 0.5, bare=2.4), result("original", 2.2)]) == {ground: 2.2}
    assert bare_errors([result("ompb", 0.5, bare=2.4)]) == {ground: 2.4}
    assert bare_errors([result("ompb", 0.5)]) == {}


def test_a_network_trained_again_on_such_a_machine_is_no_stranger() -> None:
    same, other = result("ompb", 0.5, bare=2.2153), result("elf", 0.6, bare=2.4345)
    assert strangers([same, other, result("last", 1.0)], bare_errors(EARLIER)) == [other]
    assert strangers([result("elf", 0.6, bare=2.4345, split="id")], bare_errors(EARLIER)) == []


def test_new_cells_may_stand_on_another_network_and_none_may_be_replaced_by_it() -> None:
    fresh = Joining.of([result("gd", 1.0, bare=2.4345)], EARLIER)
    fresh.require_same_networks()
    assert (len(fresh.replaced), len(fresh.strangers)) == (0, 1)
    Joining.of([result("elf", 0.61, bare=2.2152)], EARLIER).require_same_networks()
    with pytest.raises(OptionError, match=r"2 cells would replace cells on other networks.*2\.434 here.*--other-netw"):
        Joining.of([result("original", 2.4345), result("elf", 0.6, bare=2.4345)], EARLIER).require_same_networks()


def test_a_cell_is_held_against_the_one_it_replaces() -> None:
    """What stands on a network of its own beside the bare forecaster's may come again, and gives way to no other."""
    apart = [*EARLIER, result("retrain", 0.9, bare=2.4345)]
    assert Joining.of(apart, apart).moved == ()
    Joining.of(apart, apart).require_same_networks()
    with pytest.raises(OptionError, match=r"1 cell would replace cells on other networks.* retrain "):
        Joining.of([result("retrain", 0.8, bare=2.2152)], apart).require_same_networks()


def test_an_export_that_would_mix_networks_writes_nothing_unless_told_to(tmp_path: Path) -> None:
    first, second, scores = Store(tmp_path / "first"), Store(tmp_path / "second"), tmp_path / "scores"
    for one in EARLIER:
        first.write(one)
    export_all(first, scores, [])
    second.write(result("original", 2.4345, bare=2.4345))
    before = (scores / "etth.csv").read_text()
    with pytest.raises(OptionError, match="other networks"):
        export_all(second, scores, [], add=True)
    assert (scores / "etth.csv").read_text() == before
    done = export_all(second, scores, [], add=True, other_networks=True)
    assert (done.cells, len(done.joining.replaced)) == (3, 1)
    assert {one.cell.method: one.metrics["mae"] for one in exported(scores)}["original"] == 2.4345
