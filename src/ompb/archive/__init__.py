"""The file format: a safetensors file of plain arrays, whose header holds a tree of everything else.

A value class becomes a tree of its fields (`ompb.archive.tree`), tree and arrays become one file
(`ompb.archive.container`). A file cannot run code, and nothing in it is believed before its checksum has been verified
and the type hints of the class asked for have been held against it: it becomes what it was written as, bit for bit, or
a `FormatError`.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from ompb.archive.container import DIGEST, check_opening, lengths, pack, parse, unpack
from ompb.archive.tree import check_alike, decode, encode
from ompb.errors import FormatError, VersionError
from ompb.floor.files import PathLike, replacing

__all__ = ["VERSION", "fingerprint", "read", "write"]

VERSION = 5
ALLOWANCE, GROWTH = 4096, 16  # bytes by which, and times by which, a header may be longer than that of a like value
LOADERS = {"calibrator": "ompb.Calibrator.load()", "stream": "ompb.Stream.load()", "fleet": "ompb.Fleet.load()"}
_KIND = re.compile(rb'\\"kind\\":\\"(\w{1,40})\\"')  # as `_text` stands in a header
_Value = TypeVar("_Value")


def write(path: PathLike, kind: str, value: Any, *, of: str = "") -> None:
    """Write a value class, whole or not at all: an existing file is replaced in one move.

    ``of`` is the fingerprint of what the value belongs to and means nothing without. Nobody may change the value's
    arrays meanwhile. Raises `FormatError`, before anything is written, for a value that could not be read again.
    """
    tree, arrays = encode(value)
    try:
        decode(type(value), tree, arrays)
    except FormatError as error:
        raise FormatError(f"this {kind} cannot be saved: {error}. The file {path} is as it was.") from error
    head, body = pack(_text(kind, of, tree), arrays)
    with replacing(path) as part, part.open("wb") as file:
        file.writelines([head, *body])


def read(
    path: PathLike,
    kind: str,
    cls: type[_Value],
    *,
    of: str | Callable[[_Value], str] = "",
    like: _Value | None = None,
    at_most: int | None = None,
) -> _Value:
    """Read a value class back, bit for bit. Raises `FormatError`; the file is never changed.

    Args:
        path: a file that `write` made.
        kind: the word it was written under.
        cls: its class, whose type hints the file is held against.
        of: the fingerprint it was written with, or what says it once the value is known.
        like: a value of the same classes, lengths, shapes and dtypes throughout. It also bounds the file's length.
        at_most: bytes; a longer file is refused before it is read.
    """
    limits = [limit for limit in (at_most, None if like is None else _longest(kind, like)) if limit is not None]
    longest = min(limits, default=None)
    with _reading(path):
        claimed = None if longest is None else _claimed_kind(path, longest)
    if claimed is not None:
        _require_kind(claimed, kind, path)
    with _reading(path):
        text, arrays = unpack(_content(path, longest))
        opened = parse(text)
    _require_format(opened, kind, path)
    if isinstance(of, str):
        _require_owner(opened["of"], of, path)
    with _reading(path):
        value = decode(cls, opened["tree"], arrays)
        if like is not None:
            check_alike(value, like)
    if not isinstance(of, str):
        _require_owner(opened["of"], of(value), path)
    return value


def fingerprint(value: Any) -> str:
    """The same for value classes that would be written alike, and for no others: the checksum of such a file."""
    tree, arrays = encode(value)
    return pack(_text("", "", tree), arrays)[0][DIGEST].decode()


def _text(kind: str, of: str, tree: Any) -> str:
    entries = {"format": "ompb", "version": VERSION, "kind": kind, "of": of, "tree": tree}
    return json.dumps(entries, separators=(",", ":"))


def _longest(kind: str, like: Any) -> int:
    """Bytes of a file of a value like this one: a number of it takes two characters or more, and can take 25."""
    tree, arrays = encode(like)
    head, body = lengths(_text(kind, "", tree), arrays)
    return ALLOWANCE + GROWTH * head + body


@contextmanager
def _reading(path: PathLike) -> Iterator[None]:
    """Whatever a file does to its reader is a `FormatError` that names it."""
    try:
        yield
    except FileNotFoundError as error:
        raise FormatError(f"there is no file {path}; check the path, or save one first.") from error
    except (OSError, ValueError, MemoryError, RecursionError) as error:
        raise FormatError(f"{path} is not a readable ompb file ({error}); write it again with save().") from error


def _claimed_kind(path: PathLike, longest: int) -> str | None:
    """What a file that is too long to be read says it holds, which nobody has verified; None if it does not say so."""
    with open(path, "rb", opener=_open_at_once) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_size <= longest:
            return None
        said = _KIND.search(file.read(ALLOWANCE))
    return None if said is None else said[1].decode()


def _content(path: PathLike, at_most: int | None) -> bytes:
    """All bytes of a file, of which only the first are read if it is too long or not one of ours."""
    with open(path, "rb", opener=_open_at_once) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise FormatError("it is a folder, a device or a pipe")
        if at_most is not None and found.st_size > at_most:
            raise FormatError(
                f"it has {found.st_size} bytes, more than the {at_most} that such a file can have; it may belong to "
                "another calibrator"
            )
        check_opening(file.read(DIGEST.stop), found.st_size)
        file.seek(0)
        return file.read(found.st_size)  # no more, though it may be growing


def _open_at_once(path: str, flags: int) -> int:
    """Open without waiting for somebody to write, as opening a pipe does."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _require_format(opened: Any, kind: str, path: PathLike) -> None:
    """Refuse a file by its text unless format, version and kind are those asked for."""
    if not isinstance(opened, dict) or opened.get("format") != "ompb":
        raise FormatError(f"{path} is not an ompb file; files written by save() are accepted.")
    version = opened.get("version")
    if type(version) is not int or version < 1:
        raise FormatError(f"{path} has format version {version!r:.40}, which never was; write it again with save().")
    if version > VERSION:
        raise VersionError(
            f"{path} has format version {version}; this installation reads up to {VERSION}. Upgrade ompb."
        )
    if version < VERSION:
        raise FormatError(f"{path} was written by an earlier, unreleased version: fit and save again.")
    _require_kind(str(opened.get("kind")), kind, path)
    if opened.keys() != {"format", "version", "kind", "of", "tree"}:
        raise FormatError(f"{path} says more or less of itself than a file of version {VERSION}; write it again.")


def _require_owner(held: Any, of: str, path: PathLike) -> None:
    if held != of:
        raise FormatError(f"{path} belongs to another calibrator; load it with the one it was started from.")


def _require_kind(held: str, kind: str, path: PathLike) -> None:
    if held != kind:
        loader = LOADERS.get(held, "the class that wrote it")
        raise FormatError(f"{path} holds a {held:.40}, not a {kind}; load it with {loader}.")
