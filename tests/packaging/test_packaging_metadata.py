"""What the package declares: dependencies, extras, pins, citation."""

import ast
import re
import sys
import tomllib
from functools import cache
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


@cache
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
    others = ("adapters", "all", "dev", "docs")
    users = {extra: names(packages) for extra, packages in EXTRAS.items() if extra not in others}
    declared = set().union(names(PROJECT["dependencies"]), *users.values())
    found = imported()
    wrapped = {package for package, files in found.items() if {file.parent.name for file in files} == {"adapters"}}
    assert set(found) - wrapped == declared
    assert wrapped <= names(EXTRAS["adapters"])


@pytest.mark.parametrize(
    ("package", "folders"),
    [
        ("typer", {"cli"}),
        ("rich", {"cli"}),
        ("matplotlib", {"plots", "reports"}),
        ("polars", {"cli", "datasets", "studies", "tables"}),
        ("scipy", {"baselines", "metrics", "paper"}),
        ("scoringrules", {"metrics"}),
        ("torch", {"adapters", "baselines", "forecasters", "gradient", "live"}),
        ("safetensors", {"forecasters"}),
        ("ray", {"bench", "ray"}),
    ],
)
def test_an_optional_package_is_imported_only_where_its_extra_is_asked_for(package: str, folders: set[str]) -> None:
    assert {file.relative_to(REPOSITORY / "src" / "ompb").parts[0] for file in imported()[package]} == folders


def test_all_is_every_extra_but_those_of_developers_and_of_other_libraries() -> None:
    (everything,) = EXTRAS["all"]
    assert set(re.findall(r"\w+", everything)) - {"ompb"} == set(EXTRAS) - {"adapters", "all", "dev", "docs"}


def pins(file: str) -> dict[str, str]:
    """Versions of packages."""
    lines = [line for line in (REPOSITORY / file).read_text().splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[\w-]+==[\w.]+", line) for line in lines)
    found = dict(line.split("==") for line in lines)
    assert len(found) == len(lines)
    return found


def test_every_direct_dependency_is_pinned_once() -> None:
    extras = (names(packages) for extra, packages in EXTRAS.items() if extra != "adapters")
    assert set(pins("constraints.txt")) == names(PROJECT["dependencies"]).union(*extras) - {"ompb"}


def test_the_libraries_of_the_adapters_are_pinned_beside_what_is_the_same() -> None:
    ours, theirs = pins("constraints.txt"), pins("constraints-adapters.txt")
    assert names(EXTRAS["adapters"]) | names(EXTRAS["dev"]) | names(PROJECT["dependencies"]) <= set(theirs)
    # which other version of pandas the libraries take is why they have an environment of their own
    assert {package for package in set(ours) & set(theirs) if ours[package] != theirs[package]} <= {"pandas"}
    assert not [package for package in theirs if package.startswith("nvidia")]


def test_the_version_is_one() -> None:
    citation = (REPOSITORY / "CITATION.cff").read_text()
    assert f"\nversion: {PROJECT['version']}\n" in citation
    assert ompb.__version__ == version("ompb")


def test_a_name_that_is_not_there_is_refused_as_usual() -> None:
    with pytest.raises(AttributeError, match="module 'ompb' has no attribute 'studdy'"):
        _ = ompb.studdy
