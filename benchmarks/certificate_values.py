"""What the certificate says on the benchmark's streams, and how often a loss was above it.

    OMP_NUM_THREADS=1 python benchmarks/certificate_values.py --data DIR [--out results/certificate.md]

A ridge forecaster is fitted to the first three quarters of a source, the rest of which it has not seen (`unseen`).
Gamma is shown beside that of Freedman's inequality on the same windows, holding at all readings at once.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ompb import Calibrator, Ridge, backtest
from ompb.datasets.benchmark import load
from ompb.diagnosis import diagnose

UNSEEN = 0.25
HORIZONS = {"etth": (24, 96), "weather-stand-in": (24, 96), "ili": (24,)}
HEAD = "| data | H | stream | windows | Gamma, Freedman | Gamma | ratio | median value | median source risk | above |"


def lines(folder: Path | None) -> Iterator[str]:
    """One line for each data set, horizon and stream."""
    for name, horizons in HORIZONS.items():
        data = load(name, folder)
        seen = data.source[: int((1 - UNSEEN) * len(data.source))]
        for horizon in horizons:
            ridge = Ridge.fit(seen, data.context, horizon)
            sizes: dict[str, Any] = {"context": data.context, "horizon": horizon, "season": data.season}
            for split in data.streams:
                rows = data.stream(split, horizon)
                gammas = {}
                for kind, uniform in (("freedman", True), ("betting", False)):
                    calibrator = Calibrator.fit(
                        ridge, data.source, unseen=len(data.source) - len(seen), kind=kind, uniform=uniform, **sizes
                    )
                    run = backtest(calibrator, ridge, rows)
                    gammas[kind] = float(np.median(run.certificate["gamma"]))
                value, risk = (float(np.median(run.certificate[term])) for term in ("value", "source_risk"))
                before, now = gammas["freedman"], gammas["betting"]
                numbers = f"{before:.3f} | {now:.3f} | {now / before:.2f} | {value:.3f} | {risk:.3f}"
                windows, above = len(calibrator.source.windows), diagnose(run).share_above
                yield f"| {name} | {horizon} | {split} | {windows} | {numbers} | {above:.1%} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the data files; by default the one OMPB_DATA names")
    parser.add_argument("--out", type=Path, default=Path("results/certificate.md"))
    args = parser.parse_args()
    page = ["# The certificate on the benchmark's streams", "", *__doc__.strip().splitlines()[4:], ""]
    page += [
        "*Above* is the share of forecasts whose realised proxy loss lay above the value. It bounds their mean only if",
        "risk minus half the disagreement is as it was on the source.",
        "",
    ]
    page += [HEAD, "| --- | ---: | --- |" + " ---: |" * 7]
    for line in lines(args.data):
        print(line, flush=True)
        page.append(line)
    args.out.write_text("\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
