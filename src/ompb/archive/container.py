"""A text and some arrays as the bytes of one safetensors file that carries its own checksum.

::

    8 bytes       n, the length of the header, little-endian
    n bytes       {"__metadata__": {"sha256": "...", "ompb": text}, "0": {"dtype", "shape", "data_offsets"}, ...}
    all the rest  the arrays, little-endian and in C order, those with the widest items first: each is aligned

The checksum stands at a fixed place and covers every byte of the file, itself taken as zeros: nothing is parsed before
it has been verified. Nothing is compressed, so a file cannot unfold into more than its own length.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from ompb.errors import FormatError

Array: TypeAlias = np.ndarray[Any, Any]
Spec: TypeAlias = tuple[str, tuple[int, ...]]  # word for the dtype, shape

LENGTH = 8  # bytes of the header's length; header and arrays begin at multiples of it
OPENING = b'{"__metadata__":{"sha256":"'
BLANK = b"0" * 64  # where the checksum stands while it is computed
DIGEST = slice(LENGTH + len(OPENING), LENGTH + len(OPENING) + len(BLANK))
LONGEST_HEADER = 100_000_000  # what the safetensors library allows, too
LARGEST_SIZE, MOST_AXES = 2**63 - 1, 64  # of an array in NumPy
WORDS = {"float64": "F64", "float32": "F32", "int64": "I64", "bool": "BOOL"}
DTYPES: dict[str, np.dtype[Any]] = {
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "I64": np.dtype("<i8"),
    "BOOL": np.dtype("?"),
}


def pack(text: str, arrays: Sequence[Array]) -> tuple[bytes, list[memoryview]]:
    """The header of a file and the arrays behind it, which are not copied. Equal texts and arrays give equal bytes."""
    specs = _specs(arrays)
    head = _header(text, specs)
    body = [_flat(arrays[number], DTYPES[specs[number][0]]) for number in _order(specs)]
    return head[: DIGEST.start] + _digest(head, body) + head[DIGEST.stop :], body


def lengths(text: str, arrays: Sequence[Array]) -> tuple[int, int]:
    """Bytes that header and arrays take in a file."""
    specs = _specs(arrays)
    return len(_header(text, specs)), _size(specs)


def check_opening(start: bytes, length: int) -> None:
    """Refuse, by its first bytes, a file of that length that cannot be one of ours."""
    longest = min(length - LENGTH, LONGEST_HEADER)
    if len(start) < DIGEST.stop or not start[LENGTH:].startswith(OPENING):
        raise FormatError("it does not begin like one")
    if not DIGEST.stop - LENGTH < _header_length(start) <= longest:
        raise FormatError(f"its header claims {_header_length(start)} bytes; at most {longest} are possible")


def unpack(content: bytes) -> tuple[str, list[Array]]:
    """Text and arrays of a file. Raises `FormatError` unless every byte is as `pack` made it."""
    check_opening(content[: DIGEST.stop], len(content))
    end = LENGTH + _header_length(content)
    body = memoryview(content)[end:]
    blanked = content[: DIGEST.start] + BLANK + content[DIGEST.stop : end]
    if _digest(blanked, [body]) != content[DIGEST]:
        raise FormatError("its checksum does not match: it is damaged or was cut short")
    entries = parse(blanked[LENGTH:])
    text = entries.pop("__metadata__").get("ompb")
    if not isinstance(text, str):
        raise FormatError("its metadata lack the text that says what it holds")
    return text, list(_arrays(entries, body))


def parse(text: str | bytes) -> Any:
    """JSON without NaN, infinities and repeated keys. Raises `FormatError`."""
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"its header is not the JSON it should be ({error})") from error


def _header(text: str, specs: Sequence[Spec]) -> bytes:
    """Length and header with a blank checksum. Raises `FormatError` if it would be too long to be read."""
    metadata = {"sha256": BLANK.decode(), "ompb": text}
    entries = {
        str(number): {"dtype": word, "shape": shape, "data_offsets": span}
        for number, ((word, shape), span) in enumerate(zip(specs, _spans(specs), strict=True))
    }
    content = json.dumps({"__metadata__": metadata, **entries}, separators=(",", ":")).encode()
    content += b" " * (-len(content) % LENGTH)
    if len(content) > LONGEST_HEADER:
        raise FormatError(f"the header would have {len(content)} bytes; at most {LONGEST_HEADER} can be read.")
    return len(content).to_bytes(LENGTH, "little") + content


def _flat(array: Array, dtype: np.dtype[Any]) -> memoryview:
    """Its bytes, little-endian and in C order."""
    return np.ascontiguousarray(array, dtype).reshape(-1).view(np.uint8).data


def _digest(head: bytes, body: Iterable[memoryview]) -> bytes:
    """SHA-256, in hexadecimal, of a file whose checksum is blank in ``head``."""
    hashed = hashlib.sha256(head)
    for piece in body:
        hashed.update(piece)
    return hashed.hexdigest().encode()


def _arrays(entries: dict[str, Any], body: memoryview) -> Iterator[Array]:
    if list(entries) != [str(number) for number in range(len(entries))]:
        raise FormatError("its arrays are not numbered from 0")
    specs = [_spec(entry) for entry in entries.values()]
    spans = _spans(specs)
    if [entry["data_offsets"] for entry in entries.values()] != spans or _size(specs) != len(body):
        raise FormatError("its arrays do not lie one behind the other from the first byte to the last")
    for (word, shape), (start, stop) in zip(specs, spans, strict=True):
        values = np.frombuffer(body[start:stop], DTYPES[word])
        if word == "BOOL" and (values.view(np.uint8) > 1).any():
            raise FormatError("a truth value is neither 0 nor 1")
        try:
            yield values.reshape(shape).copy()
        except ValueError as error:  # more axes than NumPy has, or sizes that it cannot multiply
            raise FormatError(f"there is no array of shape {shape} ({error})") from error


def _spec(entry: Any) -> Spec:
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise FormatError("an array is described by other words than dtype, shape and data_offsets")
    word, shape = entry["dtype"], entry["shape"]
    if not isinstance(word, str) or word not in DTYPES:
        raise FormatError(f"an array has the dtype {word!r:.40}; accepted: {', '.join(DTYPES)}")
    if not isinstance(shape, list) or len(shape) > MOST_AXES or not all(_is_size(size) for size in shape):
        raise FormatError(f"an array has the shape {shape!r:.40}; accepted: at most {MOST_AXES} whole numbers from 0")
    return word, tuple(shape)


def _is_size(size: Any) -> bool:
    return type(size) is int and 0 <= size <= LARGEST_SIZE


def _specs(arrays: Iterable[Array]) -> list[Spec]:
    return [(WORDS[array.dtype.name], array.shape) for array in arrays]


def _order(specs: Sequence[Spec]) -> list[int]:
    return sorted(range(len(specs)), key=lambda number: -DTYPES[specs[number][0]].itemsize)


def _spans(specs: Sequence[Spec]) -> list[list[int]]:
    """First byte and end of each array."""
    spans, start = [[0, 0] for _ in specs], 0
    for number in _order(specs):
        spans[number] = [start, start + _size([specs[number]])]
        start = spans[number][1]
    return spans


def _size(specs: Iterable[Spec]) -> int:
    return sum(DTYPES[word].itemsize * math.prod(shape) for word, shape in specs)


def _header_length(content: bytes) -> int:
    return int.from_bytes(content[:LENGTH], "little")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key is there twice")
    return found


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number")
