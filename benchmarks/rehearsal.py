"""Rehearses the constants of the gate and the choice of members on sources; writes what each would have done.

    OMP_NUM_THREADS=1 python benchmarks/rehearsal.py --data DIR

No target stream of the benchmark is read. `rehearsal_streams` plays the end of each source as a stream, as it is and
disturbed, and records what every voice says. Here the gate itself, that of the package, runs over these records, many
streams side by side, under the settings as they are and under each change of one of them.

The score of settings is the mean over streams of g + 2 max(g, 0), g = ln(MAE / MAE of the bare forecaster), every data
set counting alike: harm counts three times. A forecaster that *knows* was fitted to the stream itself, and should not
be harmed. A change is worth making if it gains `WORTH`, 0.01: what is less is of the streams that were made up, not of
the world.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import pickle
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from ompb import Settings
from ompb.core.evidence import CALM, Evidence
from ompb.core.gate import Gate
from ompb.floor.files import replacing
from ompb.types import Floats
from rehearsal_streams import KNOWS, Record, records, series

HARM = math.log(1.01)
WORTH = 0.01
MADE = (
    "Made by `python benchmarks/rehearsal.py --data DIR`; the series, and where they are from, are listed in "
    "[the experiment](../docs/experiment.md#sources-of-the-rehearsal)."
)
PERSISTENT = (*Settings().members, "persistence")
CHANGES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "without memory": {"members": ("backbone", "profile", "regression", "head", "running bias")},
    "without running bias": {"members": ("backbone", "profile", "regression", "head", "memory")},
    "with persistence": {"members": PERSISTENT},
    "no novelty": {"novelty": 0.0},
    "novelty 2": {"novelty": 2.0},
    "novelty fades over 10 rows": {"novelty_fade": 10.0},
    "backbone_prior 0.4": {"backbone_prior": 0.4},
    "backbone_prior 0.6": {"backbone_prior": 0.6},
    "slow gate alone": {"gate_discounts": (0.997,), "cautions": (200.0,)},
    "fast gate alone": {"gate_discounts": (0.98,), "cautions": (20.0,)},
    "slow gate 0.999": {"gate_discounts": (0.999, 0.98)},
    "fast gate 0.95": {"gate_discounts": (0.997, 0.95)},
    "a third speed 0.9": {"gate_discounts": (0.997, 0.98, 0.9), "cautions": (200.0, 20.0, 10.0)},
}


@dataclass(frozen=True)
class Outcome:
    """What settings did: ln(MAE / MAE of the bare forecaster), by stream."""

    log_ratios: dict[tuple[str, str, str], float]  # by data set, forecaster and title

    @property
    def score(self) -> float:
        """Every data set counts alike, and harm three times."""
        sets: dict[str, list[float]] = {}
        for (dataset, _, _), ratio in self.log_ratios.items():
            sets.setdefault(dataset, []).append(ratio + 2 * max(ratio, 0.0))
        return fmean(fmean(ratios) for ratios in sets.values())

    def mean(self, knows: bool) -> float:
        """Of the forecasters that know of the change, or of the others."""
        return fmean(ratio for (_, name, _), ratio in self.log_ratios.items() if (name == KNOWS) is knows)

    def harmed(self, knows: bool) -> int:
        """How many streams are worse than the bare forecaster by more than 1 %."""
        return sum(ratio > HARM for (_, name, _), ratio in self.log_ratios.items() if (name == KNOWS) is knows)


@dataclass(frozen=True, eq=False)
class Group:
    """Records with the same leads and voices, side by side: n origins, N lanes, K voices, J leads."""

    records: list[Record]
    corrections: Any  # (n, N, K, J)
    residual: Any  # (n, N, J); NaN where unknown
    novelty: Floats  # (n, N)

    @classmethod
    def of(cls, alike: list[Record]) -> Group:
        """Shorter streams end earlier."""
        longest = max(len(one.residual) for one in alike)

        def together(name: str, beyond: float) -> Any:
            parts = []
            for one in alike:
                values = getattr(one, name)
                parts.append(
                    np.pad(values, [(0, longest - len(values))] + [(0, 0)] * (values.ndim - 1), constant_values=beyond)
                )
            return np.concatenate(parts, axis=1)

        return cls(alike, together("corrections", 0.0), together("residual", np.nan), together("novelty", 0.0))

    def played(self, settings: Settings) -> Any:
        """What would have been issued, as corrections (n, N, J)."""
        gate, evidence = self._rules(settings)
        origins, lanes, voices, leads = self.corrections.shape
        said = np.zeros((origins, lanes, voices + gate.speeds, leads), np.float32)
        said[:, :, :voices] = self.corrections
        issued = np.zeros((origins, lanes, leads), np.float32)
        state, episode = gate.start(lanes), evidence.start(self.residual[0])
        for place in range(origins):
            if place:
                heard, losses = self._labels(said, place, gate.leads)
                state = gate.learn(state, heard, losses)
                episode = evidence.learn(episode, heard)
            against, episode = evidence.issue(episode, place, self.novelty[place])
            opinion = gate.opinion(state, against)
            corrections = self.corrections[place].astype(np.float64)
            said[place, :, voices:] = opinion.by_speed @ corrections
            issued[place] = (opinion.weights[:, None] @ corrections)[:, 0]
        return issued

    def log_ratios(self, settings: Settings) -> Iterator[tuple[tuple[str, str, str], float]]:
        """ln(MAE / MAE of the bare forecaster) of every stream."""
        issued = self.played(settings)
        last = 0
        for one in self.records:
            first, last = last, last + one.residual.shape[1]
            residual = self.residual[:, first:last]
            known = np.isfinite(residual)
            ours, bare = (
                float(np.sum(np.where(known, np.abs(residual - by), 0.0) * self._spacing))
                for by in (issued[:, first:last], 0.0)
            )
            yield (one.dataset, one.forecaster, one.title), math.log(ours / bare)

    @property
    def _leads(self) -> Floats:
        return self.records[0].leads

    @property
    def _spacing(self) -> Floats:
        """How many leads each of those on record stands for."""
        return np.gradient(self._leads)

    def _rules(self, settings: Settings) -> tuple[Gate, Evidence]:
        """The gate and the evidence; voices of members that are not asked for get no prior."""
        names = self.records[0].names
        asked = [name for name in names if any(name.startswith(member) for member in settings.members)]
        rest = (1 - settings.backbone_prior) / (len(asked) - 1)
        bare = names.index("backbone")
        prior = np.asarray([rest * (name in asked) for name in names])
        prior[bare] = settings.backbone_prior
        gate = Gate(prior, bare, self._spacing / self._leads, 1, settings.gate_options())
        return gate, Evidence(self.records[0].season or CALM, settings.evidence_options())

    def _labels(self, said: Any, place: int, leads: Floats) -> tuple[Floats, Floats]:
        """Whether the newest row was heard of (N,), and the losses (N, K + Z) of what was said of it."""
        totals, counted = np.zeros(said.shape[1:3]), np.zeros(said.shape[1])
        for column, lead in enumerate(self._leads.astype(int)):
            if lead <= place:
                residual = self.residual[place - lead, :, column]
                known = np.isfinite(residual)
                error = np.where(known, residual, 0.0)[:, None] - said[place - lead, :, :, column]
                totals += leads[column] * known[:, None] * error**2
                counted += leads[column] * known
        return (counted > 0).astype(np.float64), totals / np.where(counted > 0, counted, 1.0)[:, None]


def recorded(folder: Path, data: Path, name: str) -> Path:
    """The file with the records of one series, made if it is not there."""
    file = folder / f"{name}.pickle"
    if not file.exists():
        one = next(one for one in series(data) if one.name == name)
        made = list(records(one, Settings(members=PERSISTENT)))
        with replacing(file, parents=True) as part, part.open("wb") as opened:
            pickle.dump(made, opened, protocol=5)
        print(f"{name}: {len(made)} streams", flush=True)
    return file


def groups(files: list[Path]) -> list[Group]:
    """Of all records."""
    alike: dict[Any, list[Record]] = {}
    for file in files:
        for one in pickle.loads(file.read_bytes()):  # our own, just made
            alike.setdefault((tuple(one.leads), one.names), []).append(one)
    return [Group.of(some) for some in alike.values()]


def outcomes(every: list[Group], changes: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Outcome]]:
    """Of the settings as they are, each with one change."""
    for name, change in changes.items():
        settings = dataclasses.replace(Settings(), **change)
        found = Outcome(dict(pair for group in every for pair in group.log_ratios(settings)))
        print(f"{found.score:+.4f} {name}", flush=True)
        yield name, found


def page(found: Mapping[str, Outcome]) -> str:
    """What each change would have done, and the settings as they are, stream by stream."""
    now = next(iter(found.values()))
    best = min(found, key=lambda name: found[name].score)
    gain = now.score - found[best].score
    lines = ["# Settings, rehearsed on sources", "", MADE, "", *__doc__.strip().splitlines()[4:], ""]
    verdict = "is worth making" if gain > WORTH else "is not worth making, so the settings stay as they are"
    lines += [f"{len(now.log_ratios)} streams. The best change, *{best}*, gains {gain:.4f}, which {verdict}.", ""]
    lines += ["| settings | score | ln MAE ratio | harmed | ln MAE ratio of those who know | harmed |"]
    lines += ["| --- | ---: | ---: | ---: | ---: | ---: |"]
    for name, one in found.items():
        terms = (f"{one.mean(knows):+.4f} | {one.harmed(knows)}" for knows in (False, True))
        lines.append(f"| {name} | {one.score:+.4f} | {' | '.join(terms)} |")
    lines += ["", "MAE relative to the bare forecaster, with the settings as they are:", "", "| stream | ratio |"]
    lines += ["| --- | ---: |"]
    lines += [f"| {title} | {math.exp(ratio):.3f} |" for (_, _, title), ratio in now.log_ratios.items()]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the data files, rehearsal/ among them")
    parser.add_argument("--store", type=Path, default=Path("results/store/rehearsal"), help="where records are kept")
    parser.add_argument("--out", type=Path, default=Path("results/rehearsal.md"))
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    with ProcessPoolExecutor(args.jobs, get_context("spawn")) as pool:
        files = list(pool.map(partial(recorded, args.store, args.data), [one.name for one in series(args.data)]))
    found = dict(outcomes(groups(files), CHANGES))
    args.out.write_text(page(found), encoding="utf-8")
    print(f"see {args.out}")


if __name__ == "__main__":
    main()
