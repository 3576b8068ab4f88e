"""Python's collection of garbage, put off while something must not be freed."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def nothing_freed() -> Iterator[None]:
    """No garbage is collected meanwhile, and what there is, is collected before.

    While a GPU records, the end of an older recording would spoil the one that is being made.
    """
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
