"""The file format: a zip of plain ``.npy`` arrays and one JSON header. No pickle, so a file cannot run code.

A value class becomes a tree of its fields; arrays leave the tree for members of their own. Reading follows the type
hints of the class asked for, so a file can only become what it was written as.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import json
import os
import types
import typing
import zipfile
import zlib
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from ompb.errors import FormatError, VersionError

VERSION = 1
HEADER = "header.json"
_Value = TypeVar("_Value")


def write(path: str | os.PathLike[str], kind: str, value: Any) -> None:
    """Write a value class, whole or not at all: an existing file is replaced in one move."""
    arrays: list[np.ndarray[Any, Any]] = []
    header = {"format": "ompb", "version": VERSION, "kind": kind, "tree": _encode(value, arrays)}
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as zipped:
            _member(zipped, HEADER, json.dumps(header, indent=1).encode())
            for number, array in enumerate(arrays):
                buffer = io.BytesIO()
                np.lib.format.write_array(buffer, array, allow_pickle=False)
                _member(zipped, f"{number}.npy", buffer.getvalue())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def fingerprint(value: Any) -> str:
    """The same for value classes that would be written alike, and for no others."""
    arrays: list[np.ndarray[Any, Any]] = []
    digest = hashlib.sha256(json.dumps(_encode(value, arrays)).encode())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def read(path: str | os.PathLike[str], kind: str, cls: type[_Value]) -> _Value:
    """Read a value class back, bit for bit. Raises `FormatError`; the file is never changed."""
    try:
        with zipfile.ZipFile(path) as zipped:
            header = json.loads(zipped.read(HEADER))
            _check(header, kind, path)
            return typing.cast(_Value, _decode(cls, header["tree"], zipped))
    except FileNotFoundError as error:
        raise FormatError(f"there is no file {path}; check the path, or save one first.") from error
    except (zipfile.BadZipFile, zlib.error, OSError, KeyError, TypeError, ValueError, EOFError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path} is not a readable ompb file ({error}); write it again with save().") from error


def _check(header: Any, kind: str, path: str | os.PathLike[str]) -> None:
    if header["format"] != "ompb":
        raise FormatError(f"{path} is not an ompb file; files written by save() are accepted.")
    if header["version"] > VERSION:
        raise VersionError(
            f"{path} has format version {header['version']}; this installation reads up to {VERSION}. Upgrade ompb."
        )
    if header["kind"] != kind:
        raise FormatError(f"{path} holds a {header['kind']}, not a {kind}; load it with the class that wrote it.")


def _member(zipped: zipfile.ZipFile, name: str, content: bytes) -> None:
    # A fixed date makes equal states equal files.
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    zipped.writestr(entry, content, zipfile.ZIP_DEFLATED, 1)


def _encode(value: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _encode(getattr(value, field.name), arrays) for field in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        arrays.append(value)
        return {"npy": len(arrays) - 1}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple):
        return [_encode(item, arrays) for item in value]
    return value


def _decode(hint: Any, node: Any, zipped: zipfile.ZipFile) -> Any:
    if isinstance(node, dict) and node.keys() == {"npy"}:
        with zipped.open(f"{node['npy']}.npy") as member:
            return np.lib.format.read_array(member, allow_pickle=False)
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) is typing.Union:
        options = [option for option in typing.get_args(hint) if option is not type(None)]
        return None if node is None else _decode(options[0], node, zipped)
    if typing.get_origin(hint) is tuple:
        return tuple(_decode(typing.get_args(hint)[0], item, zipped) for item in node)
    if dataclasses.is_dataclass(hint):
        hints = typing.get_type_hints(hint)
        fields = dataclasses.fields(hint)
        return hint(**{field.name: _decode(hints[field.name], node[field.name], zipped) for field in fields})  # type: ignore[operator]
    return node
