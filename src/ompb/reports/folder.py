"""A folder of results: what an older run wrote there is replaced as a whole, and nothing else is touched."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from ompb.errors import OptionError
from ompb.floor.files import make_folder
from ompb.floor.names import listed

SUMMARY, REPORT = "summary.json", "report.html"
NEWEST, SERIES, FORECASTS, FORECASTS_CSV = "newest.csv", "series.csv", "forecasts.parquet", "forecasts.csv"
RESULTS = (SUMMARY, REPORT, NEWEST, SERIES, FORECASTS, FORECASTS_CSV)  # all that a run may write
FILES = "files"  # where a summary names those that were written with it


def older_results(folder: Path) -> tuple[str, ...]:
    """Names of the files there that a run wrote, as its summary says; none without a summary of ours."""
    summary = _read(folder / SUMMARY)
    written = summary.get(FILES)
    if not isinstance(written, list) or "ompb" not in (summary.get("versions") or {}):
        return ()
    return tuple(name for name in RESULTS if name in written and (folder / name).is_file())


def require_room(folder: Path, names: Sequence[str]) -> None:
    """Raise if files that no run wrote stand where these results would go."""
    ours = older_results(folder)
    foreign = [name for name in names if name not in ours and (folder / name).exists()]
    if foreign:
        raise OptionError(
            f"{str(folder)!r} holds {listed(foreign)}, of which no run of ompb is known, and would be overwritten; "
            "choose another folder with --out, or move them away."
        )


def make_room(folder: Path, *, csv: bool = False) -> str:
    """Make a folder for results, if need be, before the work begins; what to say of older ones, empty if none."""
    make_folder(folder)
    require_room(folder, [name for name in RESULTS if csv or name != FORECASTS_CSV])
    older = older_results(folder)
    return f"The results of an older run in {folder} are replaced ({listed(older)})." if older else ""


@contextmanager
def room(folder: Path, *, csv: bool = False) -> Iterator[str]:
    """`make_room` around the work that fills it: folders that it made and that are empty go if the work fails."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield make_room(folder, csv=csv)
    except BaseException:
        for path in made:
            with suppress(OSError):  # not there, or no longer empty
                path.rmdir()
        raise


def remove_older(folder: Path, kept: Sequence[str]) -> None:
    """Remove what an older run wrote, but for names that were or will be written anew."""
    for name in older_results(folder):
        if name not in kept:
            (folder / name).unlink()


def _read(path: Path) -> dict[str, Any]:
    """A tree of JSON; empty if the file holds none."""
    try:
        tree = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return tree if isinstance(tree, dict) else {}
