"""What the commands show on the screen: sentences, progress bars and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

# Columns a table may take: rather a line that wraps than a number cut short.
WIDEST = 400
# No markup: channel and file names are shown as they are, brackets and all.
_screen = Console(markup=False, emoji=False, highlight=False)
_tables = Console(markup=False, emoji=False, highlight=False, width=WIDEST)
_errors = Console(stderr=True, markup=False, emoji=False, highlight=False)


def say(text: str) -> None:
    """One line on the screen, never broken, so that a path in it can be copied."""
    _screen.print(text, soft_wrap=True)


def note(text: str) -> None:
    """One line beside what a command puts out, which may go to a file."""
    _errors.print(text, soft_wrap=True)


def size_of(path: Path) -> str:
    """Of a file, in words."""
    size = path.stat().st_size
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{max(size / 1e3, 0.1):.1f} kB"


@dataclass(frozen=True)
class Bar:
    """A progress bar, moved by calling it with (done, in all)."""

    shown: Progress
    task: TaskID

    def __call__(self, done: int, total: int) -> None:
        """So far."""
        self.shown.update(self.task, completed=done, total=total)

    def say(self, doing: str) -> None:
        """What is being done, beside the bar."""
        self.shown.update(self.task, description=doing)

    def follow(self, doing: str, done: int, total: int) -> None:
        """Both at once."""
        self.shown.update(self.task, description=doing, completed=done, total=total)


@contextmanager
def progress(label: str) -> Iterator[Bar]:
    """A bar that leaves no trace, and stays away from pipes and files."""
    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_errors, transient=True, disable=not _errors.is_terminal) as bar:
        task = bar.add_task(label, total=None)
        yield Bar(bar, task)


def show_table(title: str, headings: Iterable[str], lines: Iterable[tuple[str, ...]], strong: str = "") -> None:
    """A table whose first column is text and the rest numbers; the line called ``strong`` stands out."""
    look: dict[str, Any] = {"box": SIMPLE_HEAD, "show_edge": False, "pad_edge": False, "padding": (0, 0, 0, 1)}
    table = Table(**look)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="right" if place else "left", no_wrap=not place)
    for line in lines:
        table.add_row(*line, style="bold" if line[0] == strong else None)
    _screen.print(f"\n{title}", style="bold", soft_wrap=True)
    _tables.print(table)
