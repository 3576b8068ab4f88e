"""Optional dependencies: the one place that says what to install when one is missing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ompb.errors import MissingExtraError


@contextmanager
def extra(name: str, needed_by: str) -> Iterator[None]:
    """Around the imports that an extra of this package brings.

    A package that is not installed raises `MissingExtraError` with the command that installs it. One that is installed
    but broken raises what it raises.

    >>> with extra("torch", needed_by="ompb.example"):
    ...     import a_package_nobody_has
    Traceback (most recent call last):
    ompb.errors.MissingExtraError: ompb.example needs a_package_nobody_has, which is not installed; install it with: pip
    install 'ompb[torch]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        raise MissingExtraError(
            f"{needed_by} needs {package}, which is not installed; install it with: pip install 'ompb[{name}]'"
        ) from error
