"""Where one of the libraries is, all of them have to be: then no test is left out without anybody knowing."""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("requirement", PROJECT["optional-dependencies"]["adapters"])
def test_a_library_of_the_extra_is_installed(requirement: str) -> None:
    assert version(re.split(r"[\[<>=]", requirement)[0])
