"""Nothing that happens to a file goes unnoticed, and nothing in it costs more than the file is long."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from saved_world import assert_same, forged, load, saved, world

from forgeries import Opened, with_checksum
from fuzz_files import fuzz
from ompb import archive
from ompb.errors import FormatError, VersionError

MEGABYTE = 2**20


def test_every_flipped_bit_is_found(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        path.write_bytes(damaged)
        with pytest.raises(FormatError):
            load(path)


def test_truncations_are_found(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    for length in [*range(0, len(whole), 3), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(FormatError):
            load(path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(FormatError, match="checksum does not match"):
        load(path)


def test_thousands_of_damaged_files(tmp_path: Path) -> None:
    path, twin = saved(tmp_path), tmp_path / "twin"
    twin.write_bytes(path.read_bytes())
    tally = fuzz(
        {
            path: lambda found: archive.fingerprint(load(found)),
            twin: lambda found: archive.fingerprint(load(found, like=world(1))),
        },
        files=2000,
    )
    assert tally.of("wrong") == 0, str(tally)
    assert tally.of("refused") > 1700
    assert tally.of("another") > 0  # some forgeries are right files: the fuzzer does reach the values


def test_the_fuzzer_can_fail(tmp_path: Path) -> None:
    path = saved(tmp_path)
    assert fuzz({path: lambda found: found.read_bytes()[-1]}, files=100).of("wrong") > 0
    assert "UnicodeDecodeError" in str(fuzz({path: lambda found: found.read_bytes()[:7].decode()}, files=100))


def test_what_is_no_file_of_ours(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"there is no file .*; check the path, or save one first"):
        load(tmp_path / "nothing")
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero"), Path("/dev/null"), Path("nul\0byte")):
        with pytest.raises(FormatError, match="is not a readable ompb file"):
            load(path)
    found = tmp_path / "found"
    for content in (b"", b"x", b"hello, world" * 99, bytes(4096), b"\xff" * 4096):
        found.write_bytes(content)
        with pytest.raises(FormatError, match=r"is not a readable ompb file \(it does not begin like one\)"):
            load(found)
        assert found.read_bytes() == content


@pytest.mark.parametrize("length", [0, 8, 91, 2**31, 2**63, 2**64 - 1])
def test_a_header_that_claims_another_length(tmp_path: Path, length: int) -> None:
    path = saved(tmp_path)
    path.write_bytes(length.to_bytes(8, "little") + path.read_bytes()[8:])
    with pytest.raises(FormatError, match=f"its header claims {length} bytes; at most"):
        load(path)


def peak(call: Callable[[], Any]) -> int:
    """Bytes that a refused load has had at most."""
    tracemalloc.start()
    try:
        with pytest.raises(FormatError):
            call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_bounded(tmp_path: Path) -> None:
    path = saved(tmp_path)
    whole = path.read_bytes()
    with path.open("r+b") as file:  # a terabyte that takes no room on the disk
        file.truncate(2**40)
    assert peak(lambda: load(path, at_most=MEGABYTE)) < MEGABYTE
    assert peak(lambda: load(path, like=world())) < MEGABYTE
    path.write_bytes(bytes(8))
    with path.open("r+b") as file:
        file.truncate(2**40)
    assert peak(lambda: load(path)) < MEGABYTE  # it does not begin like one of ours
    assert peak(lambda: load(Path("/dev/zero"))) < MEGABYTE
    for shape in ([10**12], [10**30], [2**62, 2**62, 0], [2**40, 2**40]):
        path.write_bytes(whole)
        assert peak(partial(load, forged(path, describe("2", shape=shape)))) < MEGABYTE


def test_a_limit_is_a_limit(tmp_path: Path) -> None:
    path = saved(tmp_path)
    length = path.stat().st_size
    assert_same(load(path, at_most=length), world())
    with pytest.raises(FormatError, match=f"it has {length} bytes, more than the {length - 1} that such a file can"):
        load(path, at_most=length - 1)


def test_a_file_of_the_first_version(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="written by an earlier, unreleased version: fit and save again"):
        load(forged(saved(tmp_path), say(version=1)))


def test_a_newer_version_is_refused_and_left_untouched(tmp_path: Path) -> None:
    path = forged(saved(tmp_path), say(version=archive.VERSION + 1, more="unknown", tree=[]))
    before = path.read_bytes()
    told = rf"has format version {archive.VERSION + 1}; this installation reads up to {archive.VERSION}\. Upgrade ompb"
    with pytest.raises(VersionError, match=told):
        load(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("version", [0, -1, "2", 2.0, True, None, [2]])
def test_versions_that_never_were(tmp_path: Path, version: Any) -> None:
    with pytest.raises(FormatError, match="which never was"):
        load(forged(saved(tmp_path), say(version=version)))


def test_other_formats_and_kinds(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="holds a world, not a stream; load it with the class that wrote it"):
        archive.read(saved(tmp_path), "stream", type(world()))
    with pytest.raises(FormatError, match="is not an ompb file"):
        load(forged(saved(tmp_path), say(format="other")))
    with pytest.raises(FormatError, match="says more or less of itself"):
        load(forged(saved(tmp_path), say(extra=1)))


def say(**words: Any) -> Callable[[Opened], None]:
    return lambda opened: opened.said.update(words)


def describe(number: str, **words: Any) -> Callable[[Opened], None]:
    return lambda opened: opened.entries[number].update(words)


# Array 2 is float64 (2, 0, 3) at [384, 384], array 3 float64 (2,) at [384, 400].
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (describe("3", data_offsets=[392, 408]), "do not lie one behind the other"),
        (describe("3", data_offsets=[-16, 0]), "do not lie one behind the other"),
        (describe("3", data_offsets=[0, 16]), "do not lie one behind the other"),
        (describe("3", shape=[1]), "do not lie one behind the other"),
        (describe("2", shape=[10**30, 0]), "has the shape"),
        (describe("2", shape=[2**62, 2**62, 0]), "there is no array of shape"),
        (describe("2", shape=[0] * 65), "has the shape"),
        (describe("3", shape=[-1, -2]), "has the shape"),
        (describe("3", shape=[2.0]), "has the shape"),
        (describe("3", shape=[True, 2]), "has the shape"),
        (describe("3", dtype="F16"), "has the dtype 'F16'; accepted: F64, F32, I64, BOOL"),
        (describe("3", dtype=None), "has the dtype None"),
        (describe("3", extra=1), "described by other words"),
        (lambda opened: opened.entries.update({"03": opened.entries.pop("3")}), "not numbered from 0"),
        (lambda opened: setattr(opened, "body", opened.body[:-1] + b"\x02"), "a truth value is neither 0 nor 1"),
    ],
)
def test_arrays_that_are_described_wrongly(tmp_path: Path, change: Callable[[Opened], None], message: str) -> None:
    with pytest.raises(FormatError, match=message):
        load(forged(saved(tmp_path), change))


@pytest.mark.parametrize(
    "text", ["NaN", "-Infinity", "[" * 100_000, '{"format":"ompb","format":"ompb"}', "", "9" * 5000]
)
def test_text_that_is_not_json(tmp_path: Path, text: str) -> None:
    path = tmp_path / "f"
    metadata = {"sha256": "0" * 64, "ompb": text}
    path.write_bytes(with_checksum(json.dumps({"__metadata__": metadata}, separators=(",", ":")), b""))
    with pytest.raises(FormatError, match="its header is not the JSON it should be"):
        load(path)


@pytest.mark.parametrize(
    "rest", ["}}", '","ompb":5}}', '","x":NaN}}', '"},"0":' + "[" * 100_000, '"},"0":1,"0":1}', "\xe9"]
)
def test_headers_that_are_not_json(tmp_path: Path, rest: str) -> None:
    path = tmp_path / "f"
    path.write_bytes(with_checksum('{"__metadata__":{"sha256":"' + 64 * "0" + rest, b""))
    with pytest.raises(FormatError, match="is not a readable ompb file"):
        load(path)
