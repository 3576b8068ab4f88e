"""benchmarks/mutants.py makes the changes it names, in a copy, and tells which of them tests notice."""

import ast
from pathlib import Path
from types import ModuleType

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
LARGER = """def larger(a, b):
    if a < 0:
        raise ValueError(f"{a - 1} is {-a}")
    return max(a, b) - 1
"""
CHECK = """from sums import larger

def test_larger():
    assert larger(1, 3) == 2
"""


@pytest.fixture
def mutants(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import mutants

    return mutants


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in {"src/sums.py": LARGER, "tests/test_sums.py": CHECK, "pyproject.toml": ""}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("return x + y", ["x - y"]),
        ("return x[1:n]", ["2", "n + 1"]),
        ("return x[-1, 0]", ["-2", "1"]),
        ("return x <= y", ["x < y", "x > y"]),
        ("return x is None", ["x is not None"]),
        ("return not -x", ["-x", "x"]),
        ("return np.minimum(x, y) ** 2", ["np.minimum(x, y)", "np.maximum"]),
        ("return 0.5 * x", ["0.5 / x", "1.0"]),
        ("z: list[int] = x.sum(axis=1)", []),
        ("raise ValueError(x + 1)", []),
        ("return f'{x + 1}'", []),
    ],
)
def test_the_changes_of_a_line(line: str, after: list[str], mutants: ModuleType) -> None:
    found = list(mutants.mutants_of("f.py", f"def f(x, y=1 + 2):\n    'One + two.'\n    {line}\n"))
    assert [mutant.after for mutant in found] == after


def test_displays_are_left_alone(mutants: ModuleType) -> None:
    methods = "    def __repr__(self):\n        return 1 + 2\n    def f(self):\n        return -self.x\n"
    found = mutants.mutants_of("f.py", f"class A:\n    x = 1 + 2\n{methods}")
    assert [(mutant.line, mutant.after) for mutant in found] == [(6, "self.x")]


def test_every_mutant_of_the_core_is_one_line_of_python_that_says_something_else(mutants: ModuleType) -> None:
    found = mutants.mutants(mutants.REPOSITORY)
    assert len(found) > 300
    for mutant in found[::10]:
        text = (mutants.REPOSITORY / mutant.file).read_text()
        changed = mutant.changed(text)
        lines = zip(text.split("\n"), changed.split("\n"), strict=True)
        assert [number for number, (one, other) in enumerate(lines, start=1) if one != other] == [mutant.line]
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text))


def test_a_seed_draws_from_different_lines(mutants: ModuleType) -> None:
    found = mutants.mutants(mutants.REPOSITORY)
    one, same, other = (mutants.drawn(found, 50, seed) for seed in (0, 0, 1))
    assert one == same != other
    assert len({(mutant.file, mutant.line) for mutant in one}) == 50


@pytest.mark.parametrize(("after", "noticed"), [("a <= 0", None), ("max(a, b) + 1", "tests"), ("min", "tests")])
def test_a_mutant_is_noticed_or_survives(after: str, noticed: str | None, tree: Path, mutants: ModuleType) -> None:
    (mutant,) = (mutant for mutant in mutants.mutants(tree, ["src/*.py"]) if mutant.after == after)
    assert mutants.noticed_by(mutant, tree, ["tests"], limit=60.0) == noticed


def test_a_run_lists_every_mutant_and_leaves_the_tree_alone(
    tree: Path, mutants: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()}
    mutants.main(["--tree", str(tree), "--sources", "src/*.py", "--tests", "tests", "--jobs", "2"])
    _, first, second, total = capsys.readouterr().out.splitlines()
    assert "src/sums.py:2" in first
    assert "src/sums.py:4" in second
    survivors = sum(line.startswith("SURVIVED") for line in (first, second))
    assert total == f"{2 - survivors} of 2 mutants were noticed, {survivors} survived."
    assert {path: path.read_bytes() for path in tree.rglob("*") if path.is_file()} == before


def test_a_mutant_that_hangs_is_noticed(tree: Path, mutants: ModuleType) -> None:
    loop = "def larger(a, b):\n    while a < b:\n        a = a + 1\n    return 2\n"
    (tree / "src/sums.py").write_text(loop)
    (hanging,) = (m for m in mutants.mutants_of("src/sums.py", loop) if m.after == "a - 1")
    assert mutants.noticed_by(hanging, tree, ["tests"], limit=2.0) == mutants.LIMIT
