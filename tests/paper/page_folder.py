"""A folder of results that never ran, with every kind of table and figure."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from made_up import result

from ompb.bench.findings import Curve, Figure, Finding, Panel, Section
from ompb.bench.store import Result, Store, export
from ompb.paper.page.html import results_page
from ompb.paper.page.material import Material

SPLITS = ("id", "ood")
X = tuple(float(x) for x in range(40))
FIGURE = Figure(
    name="made up",
    title="Every mark",
    caption="A wave & what lies around it.",
    panels=(
        Panel(
            "lines <and> a band",
            "row",
            "MAE",
            (
                Curve("wave", X, tuple(None if x == 7 else math.sin(x / 5) for x in X)),
                Curve("around", X, tuple(-1.5 for _ in X), "band", tuple(1.5 for _ in X)),
            ),
        ),
        Panel("bars", "", "MAE", tuple(Curve(name, ("tcn", "autoformer"), (1.0, 2.0), "bars") for name in "ab")),
        Panel("points", "x", "y", (Curve("", X, tuple(math.cos(x) for x in X), "points"),)),
    ),
)
MIXED = Section(
    "Numbers and words",
    (),
    ("method", "epochs", "MAE", "won"),
    (
        ("solid", "100", "0.4961 ± 0.0105", "3 of 4"),
        ("solid", "20", "7.9e+24", "9 of 100"),
        ("solid", "5", "diverged", ""),
        ("solid", "val", "0.9600", "5 of 6"),
        ("id", "100", "12.5000 ± 0.3000", "0 of 3"),
        ("id", "20", "-0.5000", "10 of 10"),
        ("id", "", "1e-7", "1 of 2"),
        ("id+tuned", "96", "", "2 of 96"),
        ("elf", "never", "3.0 [a]", "7 of 8"),
    ),
    keys=2,
)
LONG = Section(
    "More than a page",
    (),
    ("thing", "quaint"),
    tuple((f"thing{n}", f"{n / 100:.2f}") for n in range(150)),
    keys=1,
)
FINDING = Finding(
    analysis="made-up",
    title="A made-up analysis",
    text="What `ompb` would do.\n\nA second paragraph.",
    sections=(
        Section(
            "Doubtful numbers",
            ("[a] The paper contradicts itself.",),
            ("method", "ours", "paper", "ratio"),
            tuple((f"m{n}", f"{n / 10:.1f}", "0.5 [a]" if n == 3 else "0.5", f"{n / 5:.3f}") for n in range(12)),
            keys=1,
        ),
        MIXED,
        LONG,
    ),
    figures=(FIGURE,),
)


def cells() -> list[Result]:
    """ETTh and a TCN at the headline's places: ompb and the bare one with three seeds, a rival with one."""
    law = {"coverage80": 0.8, "coverage95": 0.94, "width80": 1.0, "width95": 2.0, "crps": 0.3, "ece": 0.01, "nll": 1.0}
    return [
        result(method, error + 0.01 * seed, horizon=horizon, split=split, seed=seed, protocol=protocol, metrics=more)
        for horizon in (24, 96)
        for split in SPLITS
        for method, error, seeds, protocol, more in (
            ("ompb", 0.5, (0, 1, 2), "honest", law),
            ("original", 1.0, (0, 1, 2), "honest", {}),
            ("bias", 0.45 if (horizon, split) == (96, "ood") else 0.8, (0, 1, 2), "honest", {}),
            ("ompb-paper", 0.7, (0, 1), "honest", {}),
            ("ompb-paper", 0.4, (0,), "one-step", {}),
            ("elf", 0.6, (0,), "honest", {}),
            ("solid", 0.9, (0,), "honest", {}),
        )
        for seed in seeds
    ]


def write_results(folder: Path, results: Iterable[Result], findings: Iterable[Finding] = ()) -> Path:
    """A folder as `Material.read` wants it."""
    store = Store(folder / "store")
    for one in results:
        store.write(one)
    export(store, folder / "scores")
    for finding in findings:
        finding.write(folder / "findings" / f"{finding.analysis}.json")
    return folder


@cache
def committed_page() -> str:
    """The page of the results in this repository; to draw it takes seconds."""
    return results_page(Material.read(Path(__file__).parents[2] / "results"))
