"""Real installations of the built wheel into empty environments. They need the package index."""

import os
import re
import subprocess
import sys
import venv
from collections.abc import Sequence
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest

REPOSITORY = Path(__file__).parents[2]
PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")
pytestmark = pytest.mark.slow


def run(command: Sequence[object], folder: Path) -> subprocess.CompletedProcess[str]:
    """In a process that knows nothing of this checkout."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    words = [str(word) for word in command]
    return subprocess.run(words, cwd=folder, env=clean, capture_output=True, text=True, check=False)


def succeed(command: Sequence[object], folder: Path) -> str:
    done = run(command, folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as users get it."""
    folder = tmp_path_factory.mktemp("wheel")
    reached = run((*PIP, "download", "--no-deps", "--quiet", "array-api-compat"), folder)
    if reached.returncode and not os.environ.get("CI"):
        pytest.skip(f"the package index cannot be reached: {reached.stderr.splitlines()[-1]}")
    succeed((*PIP, "wheel", "--no-deps", "--quiet", "--wheel-dir", folder / "built", REPOSITORY), folder)
    (built,) = (folder / "built").glob("ompb-*.whl")
    return built


@pytest.fixture(scope="module")
def bare(wheel: Path) -> Path:
    """The programs of an environment with the wheel and its core dependencies."""
    programs = empty_environment(wheel.parent / "bare")
    install(programs, str(wheel))
    return programs


def empty_environment(folder: Path) -> Path:
    venv.create(folder)
    return folder / "bin"


def pip(programs: Path, *words: object) -> str:
    """What our own pip says and does in another environment, which needs none."""
    return succeed((*PIP, "--python", programs / "python", *words), programs.parent)


def install(programs: Path, what: str) -> None:
    pip(programs, "install", "--quiet", "--no-compile", "--constraint", REPOSITORY / "constraints.txt", what)


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as files:
        (name,) = (name for name in files.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_bytes(files.read(name))


def test_the_wheel_is_typed_and_holds_the_licence(wheel: Path) -> None:
    files = ZipFile(wheel).namelist()
    assert "ompb/py.typed" in files
    assert any(name.endswith("/licenses/LICENSE") for name in files)
    assert {name.partition("/")[0].partition("-")[0] for name in files} == {"ompb"}


def test_the_metadata_are_complete(metadata: Message) -> None:
    assert metadata["Author"] == "OMPB contributors"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"
    urls = dict(str(url).split(", ") for url in metadata.get_all("Project-URL", ()))
    assert {"Homepage", "Documentation", "Issues"} <= set(urls)
    assert all(url.startswith("https://github.com/ompb/ompb") for url in urls.values())
    classifiers = metadata.get_all("Classifier", ())
    for minor in (11, 12, 13):
        assert f"Programming Language :: Python :: 3.{minor}" in classifiers
    extras = {"adapters", "all", "bench", "cli", "dev", "docs", "ray", "report", "torch"}
    assert set(metadata.get_all("Provides-Extra", ())) == extras


def test_the_core_brings_three_packages(bare: Path) -> None:
    listed = pip(bare, "list", "--format", "freeze")
    packages = {line.partition("==")[0].partition(" @")[0] for line in listed.splitlines()}
    assert packages == {"ompb", "array-api-compat", "narwhals", "numpy"}


def test_the_ten_lines_of_the_readme_run_on_the_core(bare: Path, metadata: Message) -> None:
    block = re.search(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), flags=re.DOTALL)
    assert block is not None
    value, disagreement = succeed((bare / "python", "-c", block[1]), bare.parent).split()
    assert float(value) > float(disagreement) / 2 >= 0
    version = succeed((bare / "python", "-c", "import ompb; print(ompb.__version__)"), bare.parent)
    assert version.strip() == metadata["Version"]


def test_the_command_on_the_core_says_what_to_install(bare: Path) -> None:
    done = run((bare / "ompb", "demo"), bare.parent)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.endswith("pip install 'ompb[cli]'\n")


def test_with_its_extras_the_command_works(wheel: Path, tmp_path: Path) -> None:
    programs = empty_environment(tmp_path / "extras")
    install(programs, f"{wheel}[cli]")
    done = run((programs / "ompb", "demo"), tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith("pip install 'ompb[report]'\n")
    install(programs, f"{wheel}[bench,report]")
    assert "concept shift" in succeed((programs / "ompb", "demo"), tmp_path)
    assert (tmp_path / "demo" / "report.html").is_file()
    assert pip(programs, "check").startswith("No broken requirements")


def test_all_extras_resolve_with_the_pinned_versions(wheel: Path, bare: Path) -> None:
    """Resolved, not installed: torch alone would take minutes."""
    report = pip(
        *(bare, "install", "--dry-run", "--ignore-installed", "--report", "-", "--quiet"),
        *("--constraint", REPOSITORY / "constraints.txt", f"{wheel}[all]"),
    )
    for package in ("typer", "rich", "polars", "matplotlib", "scipy", "scoringrules", "torch", "safetensors", "ray"):
        assert re.search(rf'"name": "{package}"', report), package
