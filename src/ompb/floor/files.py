"""One way to write a file: whole or not at all."""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

from ompb.errors import NoFolderError, OptionError

PathLike: TypeAlias = str | os.PathLike[str]

LEFTOVER = 24 * 3600  # seconds after which a half-written file belongs to nobody any more
_PART = re.compile(r"\.ompb-[0-9a-f]{16}\.part")


@contextmanager
def replacing(path: PathLike, *, parents: bool = False) -> Iterator[Path]:
    """An empty file to write to that takes the place of ``path`` in one move, if nothing goes wrong.

    Whoever reads ``path`` meets the old content or the new one, never a mixture: not while several threads, processes
    or machines write it at once, and not after a crash. A link stays a link, and the file it leads to keeps its mode.
    After an error ``path`` is as it was; errors of the operating system pass as they are. ``parents`` makes the folder
    where there is none, which is a `NoFolderError` otherwise.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     with replacing(Path(folder) / "new" / "note.txt", parents=True) as part:
    ...         _ = part.write_text("whole")
    ...     (Path(folder) / "new" / "note.txt").read_text()
    'whole'
    """
    target = Path(os.path.realpath(path))
    _prepare(target, parents)
    mode = _mode(target)
    # Random, not the process id: containers that share a volume all write as process 1.
    part = target.with_name(f".ompb-{os.urandom(8).hex()}.part")
    # Nobody else reads what may be private; a file that is new gets what the umask leaves.
    os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if mode is None else 0o600))
    try:
        yield part
        _settle(part, mode)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    _sync(target.parent)


def sweep(folder: Path) -> None:
    """Remove what writers that were killed long ago had half written in a folder."""
    with suppress(OSError):  # a folder that cannot be listed, or is not there
        for entry in os.scandir(folder):
            if _PART.fullmatch(entry.name):
                with suppress(OSError):  # another writer was faster, or it is not ours to remove
                    if time.time() - entry.stat().st_mtime > LEFTOVER:
                        os.unlink(entry.path)


def make_folder(folder: Path) -> None:
    """With the folders above it, as far as they are not there. Raises `OptionError` if a file is in the way."""
    for path in (folder, *folder.parents):
        if path.exists() and not path.is_dir():
            raise OptionError(f"{path} is a file, not a folder; name another folder, which is made if need be.")
    folder.mkdir(parents=True, exist_ok=True)


def _prepare(target: Path, parents: bool) -> None:
    folder = target.parent
    if parents:
        make_folder(folder)
    if not folder.is_dir():
        raise NoFolderError(
            f"there is no folder {folder} to write {target.name} in; make it first, or pass another path."
        )
    sweep(folder)


def _mode(target: Path) -> int | None:
    """The permissions of a file, None if it does not exist yet. What is not a file cannot be replaced by one."""
    try:
        found = target.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(found):
        raise OptionError(f"{target} is a folder or a device, not a file; pass the path of a file.")
    return stat.S_IMODE(found)


def _settle(part: Path, mode: int | None) -> None:
    """Bring the content to the disk before the name leads to it."""
    with part.open("rb+") as file:
        if mode is not None:
            part.chmod(mode)
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Bring the move itself to the disk. It is done by now, and not every file system can sync a folder."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
