"""Moves that a GPU records once and then plays: with a few thousand series they take longer to launch than to run.

A *move* is a function of a row's number, of values that earlier moves have left (*kept*), and of *news* from outside.
It returns what goes out, and what is left for the next. Rows of one `Form` are moved alike, so that the kernels of one
of them, a recording (a CUDA graph), do for all. A recording reads and writes fixed places, its *homes*. Kept values are
there already if another recording left them there, else they are copied; news and what goes out are always copied.

Two rows that follow each other never share a recording: what one of them leaves stays good while the next is at work.
"""

from __future__ import annotations

import gc
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from ompb.core.arrays import Array, namespace
from ompb.core.counts import Count, Form
from ompb.live.lanes import leaves, with_leaves

# Rows of a form that are moved as usual before one is recorded: by then programs are compiled.
AS_USUAL = 2
# Kept values of more bytes are not recorded: their kernels take longer to run than to launch, and every recording has
# arrays of its own.
MOST = 2**31
# Recordings at which all are forgotten: some of them are of forms that do not come again.
LIMIT = 64

Values: TypeAlias = tuple[Any, ...]
Move: TypeAlias = Callable[..., tuple[Any, Any]]  # of the row's number, kept values and news
Work: TypeAlias = Callable[[Sequence[Array]], list[Array]]


class Recorder:
    """Makes the moves of one group of series on a device, and records them if it is a GPU.

    Recordings hold the group's newest state: no other may play them.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._seen: Counter[Form] = Counter()
        self._recordings: dict[Form, Recording] = {}
        self._homes: set[int] = set()  # of all recordings, by identity
        self._pool = pool(device)

    def __call__(self, move: Move, form: Form | None, row: int, kept: Values, news: Values) -> tuple[Any, Any]:
        """What goes out and what is left; a row without a form is never recorded."""
        turn = (move.__name__, row % 2, form)
        recording = self._recordings.get(turn)
        if recording is None:
            self._seen[turn] += 1
            if form is None or self._seen[turn] <= AS_USUAL or not self._can_record(kept):
                return self._as_usual(move, row, kept, news)
            recording = self._recordings[turn] = self._recorded(move, row, kept, news)
        return recording.play(row, kept, news)

    def _can_record(self, kept: Values) -> bool:
        return records(self._device) and sum(array.nbytes for array in _arrays(kept)) <= MOST

    def _as_usual(self, move: Move, row: int, kept: Values, news: Values) -> tuple[Any, Any]:
        out, left = move(Count.of(row, _number(row, self._device)), *kept, *news)
        # nobody outside may have what recordings write to
        own = [one.clone() if id(one) in self._homes else one for one in leaves(out)]
        return with_leaves(out, own), left

    def _recorded(self, move: Move, row: int, kept: Values, news: Values) -> Recording:
        if len(self._recordings) == LIMIT:
            self._recordings.clear()
            self._homes.clear()
        homes = [array if id(array) in self._homes else array.clone() for array in _arrays(kept)]
        homes += [array.clone() for array in _arrays(news)]
        recording = Recording.of(move, row, kept, news, [_number(row, self._device), *homes], self._pool)
        self._homes.update(map(id, recording.homes), map(id, recording.left_arrays))
        return recording


@dataclass(frozen=True, eq=False)
class Recording:
    """The kernels of one move, with the places that they read and write."""

    replay: Callable[[], None]
    homes: list[Array]  # of the row's number, the kept arrays and the news
    packs: list[Array]  # all that goes out, one array for each type of numbers
    out: Any  # what went out when it was made, of which the shapes and types still hold
    left: Any  # what it leaves; numbers as they were when it was made
    steps: list[int]  # by which each number moves on with a row

    @classmethod
    def of(cls, move: Move, row: int, kept: Values, news: Values, homes: list[Array], pool: Any) -> Recording:
        """Of a move from these homes, which is recorded and not made."""
        made: list[Any] = []

        def work(arrays: Sequence[Array]) -> list[Array]:
            given = _with(arrays[1:], (kept, news))
            made[:] = move(Count.of(row, arrays[0]), *given[0], *given[1])
            return [*_packed(_arrays(made[0])), *_arrays(made[1])]

        replay, arrays = captured(work, homes, pool)
        out, left = made
        count = len(arrays) - len(_arrays(left))
        steps = [after - before for before, after in zip(_numbers(kept[0]), _numbers(left), strict=True)]
        return cls(replay, homes, arrays[:count], out, _with(arrays[count:], left), steps)

    @property
    def left_arrays(self) -> list[Array]:
        """What it writes to, and what it leaves as it was."""
        return _arrays(self.left)

    def play(self, row: int, kept: Values, news: Values) -> tuple[Any, Any]:
        """Make the move with other values. Numbers that are kept are those of the first value."""
        _copy(self.homes[1:], _arrays((kept, news)))
        self.homes[0].fill_(row)
        self.replay()
        numbers = [number + step for number, step in zip(_numbers(kept[0]), self.steps, strict=True)]
        return _with(_unpacked(self.packs, _arrays(self.out)), self.out), _with(numbers, self.left, _is_number)


def records(device: str) -> bool:
    """Whether a device can record."""
    return device.startswith("cuda")


def pool(device: str) -> Any:
    """Memory that recordings share: they are played one after the other. None where nothing is recorded."""
    if not records(device):
        return None
    import torch

    return torch.cuda.graph_pool_handle()


def captured(work: Work, homes: list[Array], pool: Any) -> tuple[Callable[[], None], list[Array]]:
    """What plays some work on arrays again, and the arrays that it then writes to."""
    import torch

    main, other = torch.cuda.current_stream(), torch.cuda.Stream()  # type: ignore[no-untyped-call]
    other.wait_stream(main)
    with torch.cuda.stream(other):
        work(homes)  # libraries are set up on such a stream before it is recorded; it writes what the recording will
    main.wait_stream(other)
    graph = torch.cuda.CUDAGraph()
    with _nothing_freed(), torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
        arrays = work(homes)
    return graph.replay, arrays


@contextmanager
def _nothing_freed() -> Iterator[None]:
    """No garbage is collected meanwhile: the end of an older recording would spoil the one that is being made."""
    gc.collect()
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _number(number: int, device: str) -> Array:
    """As an array () on the device."""
    import torch

    return torch.full((), number, device=device)


def _copy(homes: Sequence[Array], values: Sequence[Array]) -> None:
    """Bring values home that are not, those of a type at once."""
    import torch

    away = [(home, value) for home, value in zip(homes, values, strict=True) if home is not value]
    for kind in {home.dtype for home, _ in away}:
        to, of = zip(*[pair for pair in away if pair[0].dtype == kind], strict=True)
        torch._foreach_copy_(to, of)


def _packed(arrays: Sequence[Array]) -> list[Array]:
    """All numbers of each type one after the other, so that few copies do."""
    kinds = dict.fromkeys(array.dtype for array in arrays)
    return [
        namespace(arrays[0]).concat([array.reshape((-1,)) for array in arrays if array.dtype == kind]) for kind in kinds
    ]


def _unpacked(packs: Sequence[Array], like: Sequence[Array]) -> list[Array]:
    """Copies of packed numbers, in the shapes of those they were made from."""
    parts = {
        pack.dtype: iter(pack.clone().split([math.prod(array.shape) for array in like if array.dtype == pack.dtype]))
        for pack in packs
    }
    return [next(parts[array.dtype]).reshape(array.shape) for array in like]


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "shape")


def _is_number(leaf: Any) -> bool:
    return type(leaf) is int


def _arrays(value: Any) -> list[Array]:
    return list(filter(_is_array, leaves(value)))


def _numbers(value: Any) -> list[int]:
    return list(filter(_is_number, leaves(value)))


def _with(others: Iterable[Any], value: Any, among: Callable[[Any], bool] = _is_array) -> Any:
    """The value with other arrays, or whatever is replaced."""
    rest = iter(others)
    return with_leaves(value, [next(rest) if among(one) else one for one in leaves(value)])
