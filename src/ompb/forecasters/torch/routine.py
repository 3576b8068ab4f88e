"""Work on tensors that is done again and again: a GPU records it once, and then plays the recording.

A step of a small network is some hundred kernels, each of which takes longer to launch than to run. A recording (a CUDA
graph) launches all of them at once. On a CPU nothing is recorded.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Generic, TypeAlias, TypeVar, cast

import torch
from torch import Tensor

from ompb.floor.garbage import nothing_freed

# Calls before a recording: libraries choose their kernels, and optimisers make their moments, in the first of them. A
# form that comes no more often, as each of a ring that fills, is not worth the memory of one.
WARM_UP = 8

Result = TypeVar("Result", bound=Tensor | tuple[Tensor, ...] | None)
Form: TypeAlias = tuple[tuple[torch.Size, torch.dtype], ...]  # of tensors


@dataclass
class Routine(Generic[Result]):
    """A function of tensors, which may change others in place; one recording for each form of its arguments.

    The function must not make the host wait for the device. What else it reads must stay where it is: weights may be
    copied to, not replaced. A number of the host's that it reads, such as a rate, stays as it was when the recording
    was made, until `forget`. A copy of a routine, pickled or not, begins without recordings.
    """

    work: Callable[..., Result]
    _calls: Counter[Form] = field(default_factory=Counter, init=False, repr=False)
    _recordings: dict[Form, _Recording[Result]] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, *inputs: Tensor) -> Result:
        """Do the work, or play it."""
        if not inputs[0].is_cuda:
            return self.work(*inputs)
        form = tuple((tensor.shape, tensor.dtype) for tensor in inputs)
        recording = self._recordings.get(form)
        if recording is None:
            self._calls[form] += 1
            if self._calls[form] <= WARM_UP:
                return _on_another_stream(self.work, inputs)
            recording = self._recordings[form] = _Recording.of(self.work, inputs)
        return recording.play(inputs)

    def forget(self) -> None:
        """Record anew: something has changed that is no argument."""
        self._calls.clear()
        self._recordings.clear()

    def __getstate__(self) -> dict[str, Any]:
        return {"work": self.work}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.work, self._calls, self._recordings = state["work"], Counter(), {}


def adam(parameters: Iterable[Tensor], rate: float) -> torch.optim.Adam:
    """Adam in one kernel, which can be part of a routine."""
    moved = list(parameters)
    return torch.optim.Adam(moved, lr=rate, fused=True, capturable=moved[0].is_cuda)


def adamw(parameters: Iterable[Tensor], rate: float, *, amsgrad: bool = False) -> torch.optim.AdamW:
    """The same of AdamW; its weight decay is its own."""
    moved = list(parameters)
    return torch.optim.AdamW(moved, lr=rate, amsgrad=amsgrad, fused=True, capturable=moved[0].is_cuda)


@dataclass(frozen=True, eq=False)
class _Recording(Generic[Result]):
    """The kernels of one call, with the places that it reads and writes."""

    graph: torch.cuda.CUDAGraph
    inputs: tuple[Tensor, ...]
    result: Result

    @classmethod
    def of(cls, work: Callable[..., Result], inputs: tuple[Tensor, ...]) -> _Recording[Result]:
        """Of a call that is recorded and not made."""
        kept, graph = tuple(tensor.clone() for tensor in inputs), torch.cuda.CUDAGraph()
        with nothing_freed(), torch.cuda.graph(graph, capture_error_mode="thread_local"):
            result = work(*kept)
        return cls(graph, kept, result)

    def play(self, inputs: tuple[Tensor, ...]) -> Result:
        """Make the call with other inputs."""
        for place, tensor in zip(self.inputs, inputs, strict=True):
            place.copy_(tensor)
        self.graph.replay()
        return cast(Result, _copied(self.result))


def _copied(result: Any) -> Any:
    """A copy that the next call leaves alone."""
    if result is None:
        return None
    if isinstance(result, Tensor):
        return result.clone()
    copies = [part.clone() for part in result]
    return result._make(copies) if hasattr(result, "_make") else tuple(copies)


def _on_another_stream(work: Callable[..., Result], inputs: tuple[Tensor, ...]) -> Result:
    """A call as recordings make it, off the main stream: what it sets up can then be recorded."""
    main, other = torch.cuda.current_stream(), _other_stream(torch.cuda.current_device())
    other.wait_stream(main)
    with torch.cuda.stream(other), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This instance was constructed with capturable=True")  # it will be
        result = work(*inputs)
    main.wait_stream(other)
    return result


@cache
def _other_stream(device: int) -> torch.cuda.Stream:
    """One for all calls off the main stream of a device: what one stream has freed no other can take."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
