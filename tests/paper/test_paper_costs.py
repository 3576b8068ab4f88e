from pathlib import Path

import pytest
from made_up import line, runs

from ompb.bench.store import Store
from ompb.errors import FormatError
from ompb.paper import main
from ompb.paper.analysis import Analysis, Runs, Scope
from ompb.paper.catalogue import find
from ompb.paper.costs import Cost, Costs
from ompb.paper.grid import Spot

WHERE = "etth", "gpt4ts", 96
COSTS = Costs({(WHERE, "ompb"): Cost(2.0, 1.25), (WHERE, "retrain"): Cost(1000.0, 40.0)}, "abc", "torch=1 numpy=2")


def etth() -> Analysis:
    return find(next(iter(main.TABLES)))


def test_what_is_written_is_read(tmp_path: Path) -> None:
    COSTS.write(tmp_path / "deep" / "row-cost.csv")
    assert Costs.read(tmp_path / "deep" / "row-cost.csv") == COSTS
    assert Costs.read(tmp_path / "none.csv") == Costs()
    assert COSTS.notes()[0].startswith("Times a row and memory: `benchmarks/row_cost.py`")
    assert Costs().notes() == ("Times a row and memory are blank: there is no row-cost.csv among the results.",)


def test_a_cost_is_that_of_any_weights_and_split() -> None:
    assert COSTS.of(Spot("etth", "gpt4ts[gpt2-partial]", 96, "id").sizes, "ompb") == Cost(2.0, 1.25)
    assert COSTS.of(Spot("etth", "gpt4ts[gpt2-partial]", 24, "id").sizes, "ompb") is None


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "dataset,backbone,horizon,method\netth,tcn,x,ompb\n"])
def test_what_is_no_table_of_costs_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "row-cost.csv").write_text(text)
    with pytest.raises(FormatError, match=r"row_cost\.py"):
        Costs.read(tmp_path / "row-cost.csv")


def test_the_main_table_tells_what_training_anew_costs() -> None:
    """1000 ms a row against 2."""
    price = etth().reduce(Runs(Store(Path("nowhere")), (), COSTS), Scope()).sections[-1]
    assert line(price, "gpt4ts", "96", "retrain") == ("1000", "500", "40")
    assert line(price, "gpt4ts", "96", "ompb") == ("2", "1", "1.25")
    assert etth().reduce(runs([]), Scope()).sections == ()
