"""benchmarks/methods_cost.py still runs, at a tiny size."""

from pathlib import Path

import pytest

from ompb.bench.methods import method_names

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
TINY = {"horizon": 2, "context": 24, "channels": 1, "source-rows": 70, "warm-up": 4, "steps": 4}


@pytest.mark.parametrize(("backbone", "protocol"), [("tcn", "honest"), ("ridge", "one-step")])
def test_every_method_has_a_line_or_a_reason(
    backbone: str, protocol: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from methods_cost import main

    chosen = {**TINY, "backbone": backbone, "protocol": protocol, "out": tmp_path / "table.md"}
    main([f"--{name}={value}" for name, value in chosen.items()])
    notes, table = capsys.readouterr().out.split("\n\n")
    costs = {line.split()[0]: float(line.split()[3]) for line in table.splitlines()[1:]}
    assert list(costs.values()) == sorted(costs.values())
    assert costs["ompb"] == 1
    reasons = {line.split(", ")[0].removeprefix("Left out: ") for line in notes.splitlines() if "Left out" in line}
    assert costs.keys() | reasons == set(method_names())
    written = (tmp_path / "table.md").read_text()
    assert all(f"\n| {name} | " in written for name in costs)
    assert "Made by `python benchmarks/methods_cost.py --horizon 2 --context 24 --channels 1 --backbone " in written
