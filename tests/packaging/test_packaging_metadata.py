"""What the package declares: dependencies, extras, pins, citation."""

import ast
import re
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

import ompb

REPOSITORY = Path(__file__).parents[2]
PROJECT: dict[str, Any] = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
EXTRAS: dict[str, list[str]] = PROJECT["optional-dependencies"]


def names(requirements: list[str]) -> set[str]:
    """Of the packages, without versions."""
    return {re.split(r"[\[<>=!~;\s]", requirement)[0] for requirement in requirements}


def imported() -> dict[str, set[Path]]:
    """Third-party packages that the source imports anywhere, and the files that do."""
    ours = {"ompb", "_typeshed"}  # the latter is there for type checkers alone
    found: dict[str, set[Path]] = {}
    for file in (REPOSITORY / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules = [node.module]
            for top in {module.partition(".")[0] for module in modules} - sys.stdlib_module_names - ours:
                found.setdefault(top.replace("_", "-"), set()).add(file)
    return found


def test_the_core_needs_three_packages() -> None:
    assert names(PROJECT["dependencies"]) == {"array-api-compat", "narwhals", "numpy"}


def test_what_the_source_imports_is_what_the_package_declares() -> None:
    users = {extra: names(packages) for extra, packages in EXTRAS.items() if extra not in ("all", "dev")}
    assert set(imported()) == set().union(names(PROJECT["dependencies"]), *users.values())


@pytest.mark.parametrize(
    ("package", "folders"),
    [
        ("typer", {"cli"}),
        ("rich", {"cli"}),
        ("matplotlib", {"reports"}),
        ("polars", {"cli", "datasets", "studies"}),
        ("scipy", {"baselines", "metrics", "paper"}),
        ("torch", {"baselines", "forecasters", "gradient"}),
        ("safetensors", {"forecasters"}),
    ],
)
def test_an_optional_package_is_imported_only_where_its_extra_is_asked_for(package: str, folders: set[str]) -> None:
    assert {file.relative_to(REPOSITORY / "src" / "ompb").parts[0] for file in imported()[package]} == folders


def test_all_is_every_extra_but_that_of_developers() -> None:
    (everything,) = EXTRAS["all"]
    assert set(re.findall(r"\w+", everything)) - {"ompb"} == set(EXTRAS) - {"all", "dev"}


def test_every_direct_dependency_is_pinned_once() -> None:
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    pinned = [line.partition("==")[0] for line in lines if not line.startswith("#")]
    direct = names(PROJECT["dependencies"]).union(*(names(packages) for packages in EXTRAS.values())) - {"ompb"}
    assert sorted(pinned) == sorted(direct)
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in lines if not line.startswith("#"))


def test_the_version_is_one() -> None:
    citation = (REPOSITORY / "CITATION.cff").read_text()
    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert ompb.__version__ == version("ompb")


def test_a_name_that_is_not_there_is_refused_as_usual() -> None:
    with pytest.raises(AttributeError, match="module 'ompb' has no attribute 'studdy'"):
        _ = ompb.studdy
