"""What an analysis is: a name, the cells it needs, and what it makes of them once they have run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ompb.bench.findings import Finding
from ompb.bench.store import Cell, Result, Steps, Store, collect
from ompb.paper.costs import Costs


@dataclass(frozen=True, slots=True)
class Scope:
    """How much of an analysis to run: all of it, or a TCN at 24 rows on ETTh, one seed, in minutes on a CPU."""

    quick: bool = False
    gpt4ts: str = "gpt4ts[gpt2-partial]"  # the GPT4TS that is at hand, as results name it


@dataclass(frozen=True)
class Runs:
    """Finished cells, what was kept of their steps, and what a row costs, where that was measured."""

    store: Store
    results: tuple[Result, ...]
    costs: Costs = field(default_factory=Costs)

    @classmethod
    def of(cls, store: Store, costs: Costs | None = None) -> Runs:
        """Everything in a store."""
        return cls(store, tuple(collect(store)), costs or Costs())

    def stepped(self) -> Runs:
        """Those whose single steps were kept."""
        return replace(self, results=tuple(result for result in self.results if self.store.has_steps(result.cell)))

    def found(self, cells: Sequence[Cell]) -> list[Result]:
        """The results of these cells that are there, in their order."""
        by_cell = {result.cell: result for result in self.results}
        return [by_cell[cell] for cell in cells if cell in by_cell]

    def steps(self, cell: Cell) -> Steps | None:
        """What was kept of a cell step by step."""
        return self.store.steps(cell)


Cells: TypeAlias = Callable[[Scope], list[Cell]]
Reduce: TypeAlias = Callable[[Runs, Scope], Finding]


@dataclass(frozen=True, slots=True)
class Analysis:
    """One of them. ``reduce`` makes what it can of the cells that are there and says what is missing."""

    name: str  # as commands name it
    title: str
    printed: tuple[str, ...]  # the paper's tables and figures it stands beside
    cells: Cells
    reduce: Reduce
    per_step: bool = False  # whether it reads what is kept step by step
    draws_steps: bool = False  # whether it does so for its figures alone: then its tables are of cells

    @property
    def needs_steps(self) -> bool:
        """Whether a cell without its single steps says nothing to it."""
        return self.per_step and not self.draws_steps
