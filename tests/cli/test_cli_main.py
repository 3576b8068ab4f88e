import subprocess
import sys
from importlib.metadata import version

import pytest
from tables_on_disk import assert_refused, ompb
from typer.testing import CliRunner

from ompb.cli import app


@pytest.mark.parametrize("command", [[], ["demo"], ["check"], ["run"], ["shift"]])
def test_help_has_examples(command: list[str]) -> None:
    result = CliRunner().invoke(app, [*command, "--help"], prog_name="ompb")
    assert result.exit_code == 0
    assert f"ompb {' '.join(command)}".strip() in result.output


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    answer = ompb(capsys)
    assert answer.code == 0
    assert "New here?" in answer.out


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert ompb(capsys, "--version").out == f"ompb {version('ompb')}\n"


@pytest.mark.parametrize(
    ("arguments", "words", "where"),
    [
        (["dmeo"], "No such command 'dmeo'", "ompb"),
        (["demo", "--sed", "1"], "--sed", "ompb demo"),
        (["run"], "Missing argument 'DATA'", "ompb run"),
        (["run", "a.csv", "--context", "x"], "--context", "ompb run"),
        (["shift", "a.csv"], "Missing argument 'B'", "ompb shift"),
        (["bench", "rnu"], "No such command 'rnu'", "ompb bench"),
        (["run", "a.csv", "--horizon"], "Option '--horizon' requires an argument", "ompb run"),
        (["bench", "table", "delay", "--format"], "requires an argument", "ompb bench table"),
        (["bench", "table", "delay", "--format", "md"], "'--format': 'md' is not one of", "ompb bench table"),
    ],
)
def test_usage_errors_are_one_line_and_name_the_help_to_read(
    arguments: list[str], words: str, where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(ompb(capsys, *arguments), words, f"see {where} --help.")


def test_python_m_ompb_is_the_same_command() -> None:
    command = [sys.executable, "-m", "ompb", "shift", "nowhere.csv", "nowhere.csv"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.startswith("ompb: There is no file 'nowhere.csv'")
    assert result.stderr.count("\n") == 1


def test_importing_the_package_imports_no_screen_and_no_drawing() -> None:
    heavy = ("polars", "matplotlib", "rich", "typer", "pandas", "torch")
    check = f"import sys, ompb; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
