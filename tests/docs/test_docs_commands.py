"""Commands that the documents tell of are there, with their options."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from ompb.cli import app

REPOSITORY = Path(__file__).parents[2]
DOCUMENTS = [REPOSITORY / "README.md", *sorted((REPOSITORY / "docs").rglob("*.md"))]


def commands() -> list[str]:
    """Lines of console blocks that call ``ompb``."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in DOCUMENTS)
    blocks = "\n".join(re.findall(r"```console\n(.*?)```", text, flags=re.DOTALL)).replace("\\\n", " ")
    return sorted({line for line in blocks.splitlines() if line.startswith("ompb ")})


def unknown(line: str) -> list[str]:
    """Words of a command line that name no command or option."""
    words = shlex.split(line, comments=True)[1:]
    command = typer.main.get_command(app)
    while hasattr(command, "commands"):
        if words[0] not in command.commands:
            return words[:1]
        command = command.commands[words.pop(0)]
    options = {name for parameter in command.params for name in parameter.opts}
    return [word for word in words if word.startswith("--") and word.partition("=")[0] not in options]


def test_there_are_commands_of_several_kinds() -> None:
    assert len({line.split()[1] for line in commands()}) >= 3


@pytest.mark.parametrize("line", commands())
def test_a_command_and_its_options_are_known(line: str) -> None:
    assert unknown(line) == []


def test_others_are_noticed() -> None:
    assert unknown("ompb ran data.csv") == ["ran"]
    assert unknown("ompb run data.csv --contxt 3 --horizon 2") == ["--contxt"]
