"""Code from outside this package: a user's file of methods or forecasters, its version, and its failures."""

from __future__ import annotations

import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from ompb.bench.store import digest
from ompb.errors import AddedCodeError, ForecasterError, OmpbError, OptionError

PACKAGE = __name__.partition(".")[0]
MAIN = ("__main__", "__mp_main__")  # the main program, in the first process and in those it starts


def add_file(path: Path) -> None:
    """Run a Python file that enters methods or forecasters, once in a process: not again if it is the main program."""
    if not path.is_file():
        raise OptionError(f"there is no file {path}; pass a Python file that enters methods or forecasters.")
    name = f"added_{path.stem}"
    if any(_is_loaded(path, known) for known in (name, *MAIN)):
        return
    spec = spec_from_file_location(name, path.resolve())
    if spec is None or spec.loader is None:
        raise OptionError(f"{path} is no Python file; pass one whose name ends in .py.")
    module = module_from_spec(spec)
    sys.modules[name] = module
    try:
        with blaming(str(path), outside=True):
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise


def _is_loaded(path: Path, name: str) -> bool:
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is not None and Path(file).resolve() == path.resolve()


def outside_code(function: Callable[..., Any]) -> str | None:
    """What tells one version of a function from the next: a hash of its file. None for those of this package."""
    if function.__module__.partition(".")[0] == PACKAGE:
        return None
    file = inspect.getsourcefile(function)
    if file is None or not Path(file).exists():
        return f"{function.__module__}.{function.__qualname__}"
    return digest(Path(file).read_bytes())


@contextmanager
def blaming(what: str, *, outside: bool) -> Iterator[None]:
    """Turn whatever code from outside this package raises into an error that says where; ours is left as it is."""
    try:
        yield
    except Exception as error:
        raised = _raised(error)
        if isinstance(raised, OmpbError) or not outside:
            raise
        raise AddedCodeError(
            f"{what} failed with {type(raised).__name__}: {raised}{_place(raised)}. Mend it and run again."
        ) from raised


def _raised(error: Exception) -> Exception:
    """What the code itself raised: a `ForecasterError` wraps whatever comes out of a forecaster."""
    cause = error.__cause__
    return cause if isinstance(error, ForecasterError) and isinstance(cause, Exception) else error


def _place(error: Exception) -> str:
    """Where in code from outside this package an error came up; empty if it tells itself, or if that never ran."""
    ours = str(Path(__file__).parents[1])
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith(("<", ours))
    ]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""
