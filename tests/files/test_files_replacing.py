"""The one way to write a file: whole or not at all, whoever else writes and whatever goes wrong."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from ompb.errors import NoFolderError, OptionError
from ompb.floor.files import LEFTOVER, make_folder, replacing, sweep

SAVES, SIZE = 200, 50_000
LEFT = f".ompb-{16 * 'a'}.part"

SAVING = f"""
import sys
from pathlib import Path
from ompb.floor.files import replacing

print("ready", flush=True)
for _ in range(int(sys.argv[3])):
    with replacing(Path(sys.argv[1])) as part:
        part.write_bytes(sys.argv[2].encode() * {SIZE})
"""


def saver(path: Path, letter: str, saves: int) -> subprocess.Popen[bytes]:
    """A process that saves that many times; it has begun when this returns."""
    process = subprocess.Popen(
        [sys.executable, "-c", SAVING, str(path), letter, str(saves)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    return process


def put(path: Path, content: bytes) -> None:
    with replacing(path) as part:
        part.write_bytes(content)


def is_whole(content: bytes) -> bool:
    return len(content) == SIZE and len(set(content)) == 1


def test_many_threads_and_processes_save_one_path(tmp_path: Path) -> None:
    path = tmp_path / "state"
    put(path, b"0" * SIZE)
    failures: list[BaseException] = []

    def save(letter: bytes) -> None:
        try:
            for _ in range(SAVES):
                put(path, letter * SIZE)
        except BaseException as error:
            failures.append(error)

    processes = [saver(path, letter, SAVES) for letter in "xyz"]
    threads = [threading.Thread(target=save, args=(letter,)) for letter in (b"a", b"b", b"c", b"d")]
    for thread in threads:
        thread.start()
    met = set()
    while any(thread.is_alive() for thread in threads) or any(process.poll() is None for process in processes):
        content = path.read_bytes()
        assert is_whole(content)
        met.add(content[:1])
    assert failures == []
    assert [process.communicate()[1] for process in processes] == [b"", b"", b""]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert len(met) > 2  # the writers did take turns
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_a_kill_leaves_a_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "state"
    put(path, b"0" * SIZE)
    for turn in range(8):
        process = saver(path, "x", 10**9)
        time.sleep(0.003 * turn)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert is_whole(path.read_bytes())
    put(path, b"y" * SIZE)  # what they left behind does not disturb
    assert path.read_bytes() == b"y" * SIZE


FULL_DISK = f"""
import resource
from pathlib import Path
import sys
from ompb.floor.files import replacing

resource.setrlimit(resource.RLIMIT_FSIZE, ({SIZE // 2}, {SIZE // 2}))
with replacing(Path(sys.argv[1])) as part:
    part.write_bytes(b"x" * {SIZE})
"""


def test_no_room_for_the_content(tmp_path: Path) -> None:
    """The operating system writes the first half and refuses the rest, as a full disk does."""
    path = tmp_path / "state"
    put(path, b"0" * SIZE)
    done = subprocess.run([sys.executable, "-c", FULL_DISK, str(path)], capture_output=True, text=True, check=False)
    assert "OSError: [Errno 27]" in done.stderr
    assert path.read_bytes() == b"0" * SIZE
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_a_disk_that_is_full_when_the_content_reaches_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state"
    put(path, b"old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        put(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
def test_an_error_of_the_writer_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "state"
    put(path, b"old")

    def fail_half_way() -> None:
        with replacing(path) as part:
            part.write_bytes(b"half")
            raise error

    with pytest.raises(error):
        fail_half_way()
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["state"]


def test_the_content_is_on_the_disk_before_the_name_and_the_name_before_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def sync(handle: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file")
        fsync(handle)

    def move(*paths: Any) -> None:
        done.append("move")
        replace(*paths)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", move)
    put(tmp_path / "state", b"new")
    assert done == ["file", "move", "folder"]


def test_modes(tmp_path: Path) -> None:
    path = tmp_path / "state"
    before = os.umask(0o027)
    try:
        put(path, b"new")
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640  # the umask's, not 0600
    for mode in (0o600, 0o664, 0o444):
        path.chmod(mode)
        with replacing(path) as part:
            assert stat.S_IMODE(part.stat().st_mode) == 0o600  # nobody looks on while a private file is written
            part.write_bytes(b"newer")
        assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "volume").mkdir()
    kept, link = tmp_path / "volume" / "state", tmp_path / "link"
    if exists:
        kept.write_bytes(b"old")
    link.symlink_to(Path("volume") / "state")
    with replacing(link) as part:
        assert part.parent == kept.parent  # a move across file systems is a copy, which is not one move
        part.write_bytes(b"new")
    assert link.is_symlink()
    assert kept.read_bytes() == b"new"


def test_leftovers_are_swept_by_the_next_write(tmp_path: Path) -> None:
    old, young = tmp_path / LEFT, tmp_path / LEFT.replace("a", "b")
    others = [tmp_path / name for name in ("notes.part", ".state.17.part", LEFT + "s", ".ompb-short.part")]
    for file in (old, young, *others):
        file.touch()
        past = time.time() - (60 if file == young else 2 * LEFTOVER)
        os.utime(file, (past, past))
    put(tmp_path / "state", b"new")
    assert not old.exists()
    assert all(file.exists() for file in (young, *others))


def test_what_cannot_be_swept_does_not_stop_a_write(tmp_path: Path) -> None:
    (tmp_path / LEFT).mkdir()
    os.utime(tmp_path / LEFT, (0, 0))
    put(tmp_path / "state", b"new")
    assert (tmp_path / "state").read_bytes() == b"new"
    sweep(tmp_path / "nowhere")


def test_folders_are_made_where_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "state"
    with pytest.raises(
        NoFolderError, match=rf"^there is no folder {path.parent} to write state in; make it first"
    ) as told:
        put(path, b"new")
    assert isinstance(told.value, FileNotFoundError)
    assert str(pickle.loads(pickle.dumps(told.value))) == str(told.value)
    assert not (tmp_path / "a").exists()
    put(tmp_path / "file", b"old")
    with pytest.raises(NoFolderError, match=r"there is no folder .*/file to write state in"):
        put(tmp_path / "file" / "state", b"new")
    with replacing(path, parents=True) as part:
        part.write_bytes(b"new")
    assert path.read_bytes() == b"new"


def test_a_name_may_be_as_long_as_the_system_allows(tmp_path: Path) -> None:
    path = tmp_path / (255 * "n")
    put(path, b"new")
    assert path.read_bytes() == b"new"


def test_folders_and_devices_are_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path(os.devnull)):
        with pytest.raises(OptionError, match="not a file; pass the path of a file"):
            put(path, b"new")
    assert [file.name for file in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.parametrize("below", ["", "new/deeper"])
def test_a_file_where_a_folder_is_to_be_is_named(tmp_path: Path, below: str) -> None:
    """What is there stays as it is."""
    (tmp_path / "load.csv").write_text("kept")
    with pytest.raises(OptionError, match=r"load\.csv is a file, not a folder; name another folder"):
        make_folder(tmp_path / "load.csv" / below)
    assert (tmp_path / "load.csv").read_text() == "kept"
    make_folder(tmp_path / "a" / "b")
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
