"""Where `make test` is told of, so is what it sets up beside the rest, as large as the Makefile says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "docs/index.md"])
def test_the_second_environment_is_told_with_its_size(document: str) -> None:
    (size,) = set(re.findall(r"[\d.]+ GB", (REPOSITORY / "Makefile").read_text(encoding="utf-8")))
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    assert re.findall(r"make test\b", text)
    assert size in text
