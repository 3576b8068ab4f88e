"""The example, with fewer meters, and what the document quotes of it."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

REPOSITORY = Path(__file__).parents[2]
EXAMPLE = REPOSITORY / "examples" / "fleet.py"


@pytest.mark.slow
def test_a_killed_worker_changes_nothing(tmp_path: Path, loopback: Callable[..., CompletedProcess[str]]) -> None:
    done = loopback([sys.executable, "-W", "error", EXAMPLE, "--meters", 400, "--ticks", 120], cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stdout.splitlines() if "(raylet)" not in line]  # Ray tells of the death too
    whole, first, killed, again, second, agreed = said
    assert re.fullmatch(r"120 ticks of 400 meters in [\d.]+ s; the last meter's next hour:", whole)
    assert re.fullmatch(r"tick 60: process \d+ was killed", killed)
    assert again.startswith("120 ticks of 400 meters")
    assert first == second
    assert agreed == "the two runs agree in every bit"


def test_what_the_document_quotes_stands_in_the_example() -> None:
    quoted = re.findall(r"```py\n(.*?)```", (REPOSITORY / "docs" / "fleet.md").read_text(), flags=re.DOTALL)
    assert quoted
    assert all(block in EXAMPLE.read_text() for block in quoted)
