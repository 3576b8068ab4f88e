"""Files of trained networks: written by the one atomic writer, read without surprises."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from ompb.errors import FormatError
from ompb.forecasters.torch.trained import read, write


def test_a_network_comes_back_and_replaces_in_one_move(tmp_path: Path) -> None:
    path, link = tmp_path / "net", tmp_path / "link"
    path.touch(mode=0o640)
    link.symlink_to(path)
    weights = torch.arange(6.0).reshape(2, 3)
    write(link, "forecaster", {"losses": [0.5]}, {"weights": weights.T})
    header, tensors = read(path, "forecaster")
    assert header["losses"] == [0.5]
    assert torch.equal(tensors["weights"], weights.T)
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert {file.name for file in tmp_path.iterdir()} == {"net", "link"}


@pytest.mark.parametrize(
    "said",
    [
        [],
        5,
        None,
        {},
        {"kind": []},
        *({"kind": "forecaster", "version": version} for version in ("1", None, 0, -1, 1.5)),
    ],
    ids=str,
)
def test_headers_that_say_nonsense(tmp_path: Path, said: Any) -> None:
    path = tmp_path / "net"
    save_file({"x": torch.zeros(2)}, path, metadata={"ompb": json.dumps(said)})
    with pytest.raises(FormatError, match=r"pass the right file|which never was; write it again"):
        read(path, "forecaster")


def test_what_cannot_be_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(FormatError, match="there is no file"):
            read(path, "forecaster")
    deep = tmp_path / "deep"
    save_file({"x": torch.zeros(2)}, deep, metadata={"ompb": "[" * 100_000})
    with pytest.raises(FormatError, match="is not a readable"):
        read(deep, "forecaster")
