"""Makes the core wrong, one line at a time, and tells which of the wrong versions the tests notice.

    python benchmarks/mutants.py --count 60 --seed 0 --jobs 2

A *mutant* is the code with one small change inside a function: plus for minus, times for divided, < for <=, a
comparison turned round, min for max, another constant, a square left out, an index off by one, a sign or a ``not``
dropped. Error messages and texts for display are left alone. Mutants are found in the syntax tree, so none is tied to a
version of the code; a seed draws some of them, no two from one line.

Each is tried in a temporary copy of the source and the tests: the working tree is never touched. The test folders run
in the order of their cost, until one fails; a mutant that goes past the time limit has been noticed, too. One that
survives is either a gap in the tests or a change that makes no difference: read it.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
COPIED = ("src", "tests", "pyproject.toml")
SOURCES = ("src/ompb/core/**/*.py", "src/ompb/calibrator.py", "src/ompb/stream.py")
TESTS = ("tests/core", "tests/stream", "tests/property", "tests/statistical")
LIMIT = "the time limit"  # what has noticed a mutant that hangs

FOR_DISPLAY = ("__repr__", "__str__")
OPERATORS: dict[type[ast.operator], ast.operator] = {
    ast.Add: ast.Sub(),
    ast.Sub: ast.Add(),
    ast.Mult: ast.Div(),
    ast.Div: ast.Mult(),
}
COMPARISONS: dict[type[ast.cmpop], tuple[ast.cmpop, ...]] = {  # another end, then the opposite
    ast.Lt: (ast.LtE(), ast.GtE()),
    ast.LtE: (ast.Lt(), ast.Gt()),
    ast.Gt: (ast.GtE(), ast.LtE()),
    ast.GtE: (ast.Gt(), ast.Lt()),
    ast.Eq: (ast.NotEq(),),
    ast.NotEq: (ast.Eq(),),
    ast.Is: (ast.IsNot(),),
    ast.IsNot: (ast.Is(),),
    ast.In: (ast.NotIn(),),
    ast.NotIn: (ast.In(),),
}
_EXTREMES = {"min": "max", "minimum": "maximum", "fmin": "fmax", "argmin": "argmax", "amin": "amax"}
EXTREMES = _EXTREMES | {most: least for least, most in _EXTREMES.items()}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: bytes ``start`` to ``stop`` of a line."""

    file: str  # from the top of the tree
    line: int
    start: int
    stop: int
    before: str
    after: str
    code: str  # the line as it is

    def __str__(self) -> str:
        return f"{self.file}:{self.line}  {self.before}  ->  {self.after}  in  {self.code}"

    def changed(self, text: str) -> str:
        """The text of the file with the change."""
        lines = text.encode().split(b"\n")
        line = lines[self.line - 1]
        # in brackets, since the change may bind less tightly than what it replaces
        lines[self.line - 1] = line[: self.start] + f"({self.after})".encode() + line[self.stop :]
        return b"\n".join(lines).decode()


def mutants(tree: Path, patterns: Iterable[str] = SOURCES) -> list[Mutant]:
    """Every mutant of the files of a tree, in the order of the code."""
    files = sorted({path for pattern in patterns for path in tree.glob(pattern)})
    return [mutant for path in files for mutant in mutants_of(path.relative_to(tree).as_posix(), path.read_text())]


def mutants_of(file: str, text: str) -> Iterator[Mutant]:
    r"""The mutants of one file.

    >>> [mutant.after for mutant in mutants_of("f.py", "def f(x):\n    return 3 * x[0] ** 2")]
    ['3 / x[0] ** 2', '6', 'x[0]', '1']
    """
    lines = text.split("\n")
    for function in functions(ast.parse(text)):
        for node in (inner for statement in function.body for inner in nodes(statement)):
            for old, new in changes(node):
                if old.lineno == old.end_lineno and old.end_col_offset is not None:
                    place = old.lineno, old.col_offset, old.end_col_offset
                    yield Mutant(file, *place, ast.unparse(old), ast.unparse(new), lines[old.lineno - 1].strip())


def functions(tree: ast.Module | ast.ClassDef) -> Iterator[ast.FunctionDef]:
    """Functions and methods, but for those whose text is for display."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield from functions(node)
        elif isinstance(node, ast.FunctionDef) and node.name not in FOR_DISPLAY:
            yield node


def nodes(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all in it that may be changed."""
    yield node
    for child in children(node):
        yield from nodes(child)


def children(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node, but for messages, annotations, axes, and numbers that `changes` deals with as a whole."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.arguments() | ast.keyword(arg="axis" | "dim"):
            return
        case ast.FunctionDef():
            yield from node.body
        case ast.AnnAssign(value=value):
            yield from [value] if value else []
        case ast.Assert(test=test):
            yield test
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)):
            yield left
        case ast.Subscript(value=value):
            yield value
            yield from (index for index in indices(node) if literal(index) is None)
        case ast.Slice(lower=lower, upper=upper):
            yield from (bound for bound in (lower, upper) if bound is not None and literal(bound) is None)
        case _:
            yield from ast.iter_child_nodes(node)


def changes(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What may be changed at this node, not in its parts, and into what."""
    match node:
        case ast.BinOp(left=left, op=ast.Pow(), right=ast.Constant(value=2)):
            yield node, left
        case ast.BinOp(left=left, op=operator, right=right) if type(operator) in OPERATORS:
            yield node, ast.BinOp(left, OPERATORS[type(operator)], right)
        case ast.Compare(left=left, ops=[operator], comparators=right):
            yield from ((node, ast.Compare(left, [other], right)) for other in COMPARISONS[type(operator)])
        case ast.UnaryOp(op=ast.USub() | ast.Not(), operand=operand):
            yield node, operand
        case ast.Call(func=ast.Name(id=name) as called) if name in EXTREMES:
            yield called, ast.Name(EXTREMES[name])
        case ast.Call(func=ast.Attribute(value=value, attr=name) as called) if name in EXTREMES:
            yield called, ast.Attribute(value, EXTREMES[name])
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int() | float() as value):
            yield node, ast.Constant(2 * value or 1)
        case ast.Subscript():
            yield from ((index, moved(index)) for index in indices(node) if literal(index) is not None)
        case ast.Slice(lower=lower, upper=upper):
            yield from ((bound, moved(bound)) for bound in (lower, upper) if bound is not None)


def indices(node: ast.Subscript) -> list[ast.expr]:
    """What stands in the brackets, by axis."""
    return node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]


def literal(node: ast.expr) -> int | None:
    """The whole number that is written here; None if none is."""
    match node:
        case ast.Constant(value=bool()):
            return None
        case ast.Constant(value=int() as value):
            return value
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() as value)):
            return -value
    return None


def moved(index: ast.expr) -> ast.expr:
    """An index or bound that is off by one: farther from the end it counts from, if it is a literal."""
    value = literal(index)
    if value is None:
        return ast.BinOp(index, ast.Add(), ast.Constant(1))
    return ast.Constant(value + 1 if value >= 0 else value - 1)


def drawn(found: Sequence[Mutant], count: int, seed: int) -> list[Mutant]:
    """So many of them, no two from one line, in the order of the code; all such if there are fewer."""
    shuffled = random.Random(seed).sample(found, len(found))
    one_a_line = {(mutant.file, mutant.line): mutant for mutant in shuffled}
    return sorted(list(one_a_line.values())[:count], key=lambda mutant: (mutant.file, mutant.line))


@contextmanager
def copied(tree: Path) -> Iterator[Path]:
    """A copy of source and tests that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        for name in COPIED:
            if (tree / name).is_dir():
                shutil.copytree(tree / name, Path(folder, name), ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(tree / name, folder)
        yield Path(folder)


def passes(tree: Path, tests: str, seconds: float | None) -> bool | None:
    """Whether a folder of tests passes in a tree; None if it takes longer than that."""
    # Without bytecode, since a file changed within a second looks like the one before; CI: the same examples each time.
    surroundings = {"PYTHONPATH": str(tree / "src"), "PYTHONDONTWRITEBYTECODE": "1", "CI": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", tests]
    try:
        done = subprocess.run(
            command,
            cwd=tree,
            env=os.environ | surroundings,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return None
    return done.returncode == 0


def by_cost(tree: Path, tests: Iterable[str]) -> dict[str, float]:
    """The folders of tests with the seconds that each takes on the code as it is, the fastest first."""
    seconds = {}
    with copied(tree) as copy:
        for folder in tests:
            start = time.perf_counter()
            if not passes(copy, folder, None):
                raise SystemExit(f"{folder} fails, or has no tests, before anything is changed; mend that first.")
            seconds[folder] = time.perf_counter() - start
    return dict(sorted(seconds.items(), key=lambda item: item[1]))


def noticed_by(mutant: Mutant, tree: Path, tests: Iterable[str], limit: float) -> str | None:
    """The first folder of tests that fails for a mutant, or the time limit; None if it survives."""
    end = time.perf_counter() + limit
    with copied(tree) as copy:
        file = copy / mutant.file
        file.write_text(mutant.changed(file.read_text()))
        for folder in tests:
            verdict = passes(copy, folder, end - time.perf_counter())
            if not verdict:
                return LIMIT if verdict is None else folder
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=60, help="mutants to try")
    parser.add_argument("--seed", type=int, default=0, help="which of them")
    parser.add_argument("--jobs", type=int, default=1, help="tried at once")
    parser.add_argument("--limit", type=float, help="seconds for each; by default three times all tests, and a minute")
    parser.add_argument("--tests", nargs="+", default=TESTS, help="folders of tests")
    parser.add_argument("--sources", nargs="+", default=SOURCES, help="patterns of the files to change")
    parser.add_argument("--tree", type=Path, default=REPOSITORY, help="the repository")
    parser.add_argument("--list", action="store_true", help="only show the mutants")
    args = parser.parse_args(arguments)
    chosen = drawn(mutants(args.tree, args.sources), args.count, args.seed)
    if args.list:
        print(*chosen, sep="\n")
        return
    tests = by_cost(args.tree, args.tests)
    print(", ".join(f"{folder} {seconds:.0f} s" for folder, seconds in tests.items()), flush=True)
    limit = args.limit or 60 + 3 * args.jobs * sum(tests.values())
    survivors = 0
    with ThreadPoolExecutor(args.jobs) as pool:
        verdicts = pool.map(lambda mutant: noticed_by(mutant, args.tree, tests, limit), chosen)
        for mutant, noticed in zip(chosen, verdicts, strict=True):
            survivors += noticed is None
            print(f"{'SURVIVED' if noticed is None else f'noticed by {noticed}':27}  {mutant}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} mutants were noticed, {survivors} survived.")


if __name__ == "__main__":
    main()
