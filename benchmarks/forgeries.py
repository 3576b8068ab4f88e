"""Damage to saved files: accidents that change bytes, and forgeries that carry the checksum that belongs to them."""

from __future__ import annotations

import hashlib
import json
import random
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

Accident: TypeAlias = Callable[[random.Random, bytes], bytes]
BLANK, DIGEST_AT = b"0" * 64, len(b'12345678{"__metadata__":{"sha256":"')
NUMBERS: tuple[Any, ...] = (-1, -5, 2**63, 10**40, 0.5, -2.5, 1e300, float("nan"), float("inf"))
THINGS: tuple[Any, ...] = ("abc", "", True, None, [], {}, [[]], {"array": 0}, {"is": "bogus"})
RAW = "\x00raw"  # marks a place where text that JSON cannot express is put


@dataclass
class Opened:
    """A file taken apart: what its text says, how its arrays are described, and their bytes."""

    said: dict[str, Any]
    entries: dict[str, Any]
    body: bytes
    raw: str = ""  # stands wherever the text says RAW

    @classmethod
    def of(cls, content: bytes) -> Opened:
        """Take a whole file apart."""
        end = 8 + int.from_bytes(content[:8], "little")
        entries = json.loads(content[8:end])
        said = json.loads(entries.pop("__metadata__")["ompb"])
        return cls(said, entries, content[end:])

    def sealed(self) -> bytes:
        """Put it together again, with a right checksum."""
        text = json.dumps(self.said, separators=(",", ":")).replace(json.dumps(RAW), self.raw)
        metadata = {"sha256": BLANK.decode(), "ompb": text}
        return with_checksum(json.dumps({"__metadata__": metadata, **self.entries}, separators=(",", ":")), self.body)


def with_checksum(header: str, body: bytes) -> bytes:
    """A file of that header, in which the checksum is blank, and that body."""
    padded = header.encode() + b" " * (-len(header) % 8)
    head = len(padded).to_bytes(8, "little") + padded
    digest = hashlib.sha256(head + body).hexdigest().encode()
    return head[:DIGEST_AT] + digest + head[DIGEST_AT + len(BLANK) :] + body


# Accidents: bytes in, bytes out.


def flip(rng: random.Random, content: bytes) -> bytes:
    """One to four bits."""
    damaged = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def flip_in_header(rng: random.Random, content: bytes) -> bytes:
    """One bit where lengths, words and offsets are."""
    damaged = bytearray(content)
    damaged[rng.randrange(8 + int.from_bytes(content[:8], "little"))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def truncate(rng: random.Random, content: bytes) -> bytes:
    """Only the beginning."""
    return content[: rng.randrange(len(content))]


def lengthen(rng: random.Random, content: bytes) -> bytes:
    """Some bytes more at the end."""
    return content + rng.randbytes(rng.randint(1, 64))


def swap(rng: random.Random, content: bytes) -> bytes:
    """Two blocks change places."""
    size = rng.choice((1, 8, 64, 512))
    size = min(size, len(content) // 2)
    first = rng.randrange(len(content) - 2 * size + 1)
    second = rng.randrange(first + size, len(content) - size + 1)
    one, other = content[first : first + size], content[second : second + size]
    return content[:first] + other + content[first + size : second] + one + content[second + size :]


def overwrite(rng: random.Random, content: bytes) -> bytes:
    """A block of zeros or noise, as a disk leaves it."""
    size = min(rng.choice((1, 8, 512, 4096)), len(content))
    first = rng.randrange(len(content) - size + 1)
    block = bytes(size) if rng.random() < 0.5 else rng.randbytes(size)
    return content[:first] + block + content[first + size :]


def claim_length(rng: random.Random, content: bytes) -> bytes:
    """Another length of the header."""
    return rng.choice((0, 1, 2**31, 2**40, 2**63, 2**64 - 1, len(content))).to_bytes(8, "little") + content[8:]


# Forgeries: change what a file says.


def nodes(tree: Any) -> Iterator[tuple[Any, Any]]:
    """Every place of a tree, as the dict or list it is in and its key there."""
    below = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, node in list(below):
        yield tree, key
        yield from nodes(node)


def any_node(rng: random.Random, opened: Opened, *kinds: type) -> tuple[Any, Any]:
    """A random place of the tree that holds one of these; the tree itself if there is none."""
    found = [(holder, key) for holder, key in nodes(opened.said["tree"]) if type(holder[key]) in kinds]
    return rng.choice(found) if found else (opened.said, "tree")


def change_number(rng: random.Random, opened: Opened) -> None:
    """A number becomes negative, huge, broken or no number."""
    holder, key = any_node(rng, opened, int, float)
    holder[key] = rng.choice(NUMBERS)


def change_type(rng: random.Random, opened: Opened) -> None:
    """Something becomes something else."""
    holder, key = rng.choice(list(nodes(opened.said["tree"])))
    holder[key] = rng.choice(THINGS)


def change_word(rng: random.Random, opened: Opened) -> None:
    """A word becomes one that nobody knows."""
    holder, key = any_node(rng, opened, str)
    holder[key] = "bogus"


def drop_field(rng: random.Random, opened: Opened) -> None:
    """A field is missing."""
    holder, key = any_node(rng, opened, dict)
    if holder[key]:
        del holder[key][rng.choice(list(holder[key]))]


def add_field(rng: random.Random, opened: Opened) -> None:
    """A field that the class does not have."""
    holder, key = any_node(rng, opened, dict)
    holder[key]["extra"] = rng.choice(THINGS)


def change_length(rng: random.Random, opened: Opened) -> None:
    """A list loses its last item, or has it twice."""
    holder, key = any_node(rng, opened, list)
    if isinstance(holder[key], list):
        holder[key] = holder[key][:-1] if rng.random() < 0.5 else [*holder[key], *holder[key][-1:]]


def nest(rng: random.Random, opened: Opened) -> None:
    """Lists in lists in lists."""
    holder, key = rng.choice(list(nodes(opened.said)))
    depth = rng.choice((10, 1_000, 100_000))
    holder[key], opened.raw = RAW, "[" * depth + "]" * depth


def write_token(rng: random.Random, opened: Opened) -> None:
    """What Python reads as a number though JSON has no such, or no float can hold it; a key that is there twice."""
    holder, key = rng.choice(list(nodes(opened.said)))
    holder[key] = RAW
    opened.raw = rng.choice(("NaN", "-Infinity", "1e999", "1e30", "9" * 4000, "9" * 5000, '{"a":1,"a":1}', "nothing"))


def change_envelope(rng: random.Random, opened: Opened) -> None:
    """Another format, version or kind."""
    opened.said[rng.choice(list(opened.said))] = rng.choice((*NUMBERS, *THINGS, 0, 1, 99))


def change_shape(rng: random.Random, opened: Opened) -> None:
    """An array of another shape, though perhaps of as many bytes."""
    entry = opened.entries[rng.choice(list(opened.entries))]
    shape = entry["shape"]
    near = [[*shape, 1], shape[1:], shape[::-1], [-size for size in shape], [True, *shape]]
    far = [[10**30], [10**30, 0], [2**62] * 3, [1] * 70, [1] * 1000, [1.5], [[1]], "ab", None]
    entry["shape"] = rng.choice([*near, *far])


def change_dtype(rng: random.Random, opened: Opened) -> None:
    """An array of another dtype, though perhaps of as many bytes."""
    opened.entries[rng.choice(list(opened.entries))]["dtype"] = rng.choice(
        ("F64", "F32", "I64", "BOOL", "F16", "O", "", 5, None, [])
    )


def change_offsets(rng: random.Random, opened: Opened) -> None:
    """Arrays that overlap, leave gaps, or lie outside."""
    entry = opened.entries[rng.choice(list(opened.entries))]
    start, stop = entry["data_offsets"]
    entry["data_offsets"] = rng.choice(
        ([start + 8, stop + 8], [start - 8, stop - 8], [-start, -stop], [stop, start], [0, 2**63], [start], "ab", None)
    )


def change_entries(rng: random.Random, opened: Opened) -> None:
    """An array is missing, is there twice, or is described in other words."""
    name = rng.choice(list(opened.entries))
    entry = opened.entries.pop(name)
    opened.entries |= rng.choice(
        ({}, {"x": entry}, {name: entry, "99": entry}, {name: entry | {"x": 1}}, {name: [entry]})
    )


def change_values(rng: random.Random, opened: Opened) -> None:
    """NaN, infinity, zero or a huge number in an array."""
    if len(opened.body) >= 8:
        at = 8 * rng.randrange(len(opened.body) // 8)
        value = struct.pack("<d", rng.choice((float("nan"), float("inf"), 0.0, -1.0, 1e300, 1e100, -1e-300)))
        opened.body = opened.body[:at] + value + opened.body[at + 8 :]


def cut_body(rng: random.Random, opened: Opened) -> None:
    """Fewer bytes than the arrays need."""
    opened.body = opened.body[: rng.randrange(len(opened.body) + 1)]


ACCIDENTS: tuple[Accident, ...] = (flip, flip, flip_in_header, truncate, lengthen, swap, overwrite, claim_length)
FORGERIES: tuple[Callable[[random.Random, Opened], None], ...] = (
    change_number,
    change_type,
    change_word,
    drop_field,
    add_field,
    change_length,
    nest,
    write_token,
    change_envelope,
    change_shape,
    change_dtype,
    change_offsets,
    change_entries,
    change_values,
    cut_body,
)
