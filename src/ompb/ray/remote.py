"""Answers of other processes: what they raise is raised here, and that they are gone is told from it."""

from __future__ import annotations

from typing import Any

from ompb.floor.extras import extra

with extra("ray", needed_by="ompb.ray"):
    import ray
    from ray.exceptions import RayError, RayTaskError


class GoneError(Exception):
    """The process that was asked is not there any more, nor its answer."""


def answer(asked: Any) -> Any:
    """What was asked for. Raises what the other process raised, or `GoneError`."""
    try:
        return ray.get(asked)
    except RayTaskError as error:
        raise error.cause from error
    except RayError as error:
        raise GoneError(" ".join(str(error).split())) from error
