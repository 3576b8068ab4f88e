"""What the studies of many series show together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ompb.backtest import BARE, OMPB
from ompb.studies.result import Study
from ompb.studies.scores import PhaseScores, mean_scores

FEW = 3  # series that are shown as the best, and as the worst


@dataclass(frozen=True, slots=True)
class SeriesScores:
    """One series in a line; errors are in its own source standard deviations, NaN where nothing is known."""

    id: Any
    rows: int  # of the target
    forecasts: int
    mae_bare: float
    mae_ompb: float
    coverage80: float
    coverage95: float
    certificate: float | None  # mean over the forecasts; None without certificates
    warnings: int  # episodes

    @property
    def ratio(self) -> float:
        """MAE of ompb over that of the bare forecaster: below 1 is better. NaN where there is no error to compare."""
        return self.mae_ompb / self.mae_bare if self.mae_bare > 0 else float("nan")


@dataclass(frozen=True, eq=False, repr=False)
class Studies(Mapping[Any, Study]):
    """Studies by the id of their series, each with one phase; at least one."""

    title: str
    each: Mapping[Any, Study]
    left_out: Mapping[Any, str]  # why each series that has no study has none
    facts: Mapping[str, str] = field(default_factory=dict)  # what else the reader should know: sources, forecasters
    notes: tuple[str, ...] = ()  # what the reader should be told; first how much there is

    def __getitem__(self, one: Any) -> Study:
        return self.each[one]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def __repr__(self) -> str:
        return f"Studies({self.title!r}: {len(self)} series, {len(self.left_out)} left out)"

    @property
    def first(self) -> Study:
        """One that stands for all in what they share: settings, sizes, clock."""
        return next(iter(self.each.values()))

    @cached_property
    def scored(self) -> dict[Any, dict[str, PhaseScores]]:
        """Scores by series and forecaster."""
        return {
            one: {line.name: line for lines in study.scores().values() for line in lines}
            for one, study in self.each.items()
        }

    def scores(self) -> list[PhaseScores]:
        """Means over the series, each of which weighs alike, of the forecasters that all of them have."""
        every = [name for name in self.names if len(self.having(name)) == len(self)]
        return [self.mean(name) for name in every]

    @property
    def names(self) -> list[str]:
        """Of the forecasters: the bare one first, the references that any series has, ours last."""
        most_first = sorted(self.scored.values(), key=len, reverse=True)
        return [*dict.fromkeys(name for lines in most_first for name in lines if name != OMPB), OMPB]

    def having(self, name: str) -> list[Any]:
        """The series that have such a forecaster: a seasonal profile needs a season."""
        return [one for one, lines in self.scored.items() if name in lines]

    def mean(self, name: str, among: str | None = None) -> PhaseScores:
        """Mean scores of a forecaster over the series that have it and, if given, that one as well."""
        return mean_scores([self.scored[one][name] for one in self.having(among or name)])

    @cached_property
    def lines(self) -> list[SeriesScores]:
        """A line for each series."""
        found = []
        for one, study in self.each.items():
            bare, ours = self.scored[one][BARE], self.scored[one][OMPB]
            found.append(
                SeriesScores(
                    id=one,
                    rows=sum(phase.stop - phase.first for phase in study.phases),
                    forecasts=len(study.run.origins),
                    mae_bare=bare.mae,
                    mae_ompb=ours.mae,
                    coverage80=float("nan") if ours.coverage80 is None else ours.coverage80,
                    coverage95=float("nan") if ours.coverage95 is None else ours.coverage95,
                    certificate=ours.certificate,
                    warnings=len(study.run.warnings),
                )
            )
        return found

    @cached_property
    def ranked(self) -> list[SeriesScores]:
        """The series with a ratio, the best first."""
        return sorted((line for line in self.lines if line.ratio == line.ratio), key=lambda line: line.ratio)

    @property
    def best(self) -> list[SeriesScores]:
        """The few series that gained most, the best first."""
        return self.ranked[: min(FEW, (len(self.ranked) + 1) // 2)]

    @property
    def worst(self) -> list[SeriesScores]:
        """The few others that gained least, the worst first."""
        return self.ranked[len(self.best) :][: -FEW - 1 : -1]
