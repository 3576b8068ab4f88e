"""Moves that a GPU records once and then plays: with a few thousand series they take longer to launch than to run.

A *move* is a function of a row's number, of values that earlier moves have left (*kept*), and of *news* from outside.
It returns what goes out, and what is left for the next. Rows of one `Form` are moved alike, so that the kernels of one
of them, a recording (a CUDA graph), do for all. A recording reads and writes fixed places, its *homes*. Kept values are
there already if another recording left them there, else they are copied; news and what goes out are always copied.

Two rows that follow each other never share a recording: what one of them leaves stays good while the next is at work.
"""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ompb.core.arrays import Array, namespace
from ompb.core.counts import Count, Form
from ompb.errors import OptionError
from ompb.floor.garbage import nothing_freed
from ompb.live.compiling import new_number
from ompb.live.lanes import leaves, with_leaves

# Rows of a form that are moved as usual before one is recorded: some forms come only once.
AS_USUAL = 1
# Kept values of more bytes are not recorded: their kernels take longer to run than to launch, and every recording has
# arrays of its own.
MOST = 2**30
# Recordings at which all are forgotten: some of them are of forms that do not come again.
LIMIT = 64
# Forms at which it is forgotten which have come: after each row without a forecast there are new ones.
MOST_FORMS = 1024

Values: TypeAlias = tuple[Any, ...]
Move: TypeAlias = Callable[..., tuple[Any, Any]]  # of the row's number, kept values and news
Work: TypeAlias = Callable[[], list[Array]]


class Turn(NamedTuple):
    """Which recording a row takes."""

    move: str
    parity: int
    form: Form | None


class Recorder:
    """Makes the moves of one group of series on a device, and records them if it is a GPU.

    Recordings hold the group's newest state: no other may play them.
    """

    def __init__(self, device: str) -> None:
        self._device = device
        self._seen: Counter[Turn] = Counter()
        self._recordings: dict[Turn, Recording] = {}
        self._owned: set[int] = set()  # memory that recordings read and write
        self._studio: Any = None

    def __call__(self, move: Move, form: Form | None, row: int, kept: Values, news: Values) -> tuple[Any, Any]:
        """What goes out and what is left; a row without a form is never recorded."""
        turn = Turn(move.__name__, row % 2, form)
        recording = self._recordings.get(turn)
        if recording is None:
            if len(self._seen) == MOST_FORMS:
                self._seen.clear()
            self._seen[turn] += 1
            if form is None or self._seen[turn] <= AS_USUAL or not self._can_record(kept):
                return self._as_usual(move, row, kept, news)
            recording = self._recordings[turn] = self._recorded(move, row, kept, news)
        return recording.play(row, kept, news)

    def _can_record(self, kept: Values) -> bool:
        return records(self._device) and sum(array.nbytes for array in _arrays(kept)) <= MOST

    def _as_usual(self, move: Move, row: int, kept: Values, news: Values) -> tuple[Any, Any]:
        out, left = move(row, *kept, *news)
        # nobody outside may have what recordings write to
        return with_leaves(out, [one.clone() if self._owns(one) else one for one in leaves(out)]), left

    def _owns(self, leaf: Any) -> bool:
        """Whether this is an array, or a view of one, that recordings read or write."""
        return _is_array(leaf) and _memory(leaf) in self._owned

    def _recorded(self, move: Move, row: int, kept: Values, news: Values) -> Recording:
        if len(self._recordings) in (0, LIMIT):
            self._begin_anew()
        homes = [array if self._owns(array) else array.clone() for array in _arrays(kept)]
        homes += [array.clone() for array in _arrays(news)]
        try:
            recording = Recording.of(move, row, kept, news, [new_number(row, self._device), *homes], self._studio)
        except RuntimeError as error:  # of CUDA, whatever cannot be recorded
            raise OptionError(
                f"compiled = True, but this step cannot be recorded on {self._device!r} ({error}); leave compiled= "
                "out, or parts of your own that make the host wait for the device."
            ) from error
        self._owned.update(map(_memory, (*recording.homes, *_arrays(recording.left.value))))
        return recording

    def _begin_anew(self) -> None:
        """Without recordings, and where none was made before: memory whose recordings are gone takes no others."""
        self._recordings.clear()
        self._owned.clear()
        self._studio = studio(self._device)


@dataclass(frozen=True, eq=False)
class Recording:
    """The kernels of one move, with the places that they read and write."""

    replay: Callable[[], None]
    homes: list[Array]  # of the row's number, the kept arrays and the news
    packs: list[Array]  # what goes out, `_packed`
    out: Mould  # for its arrays, of which it has type and shape alone
    left: Mould  # for the numbers that are left
    steps: list[int]  # by which each number moves on with a row

    @classmethod
    def of(cls, move: Move, row: int, kept: Values, news: Values, homes: list[Array], studio: Any) -> Recording:
        """Of a move from these homes, which is recorded and not made. The numbers left are those of the first value."""
        given = Mould.of((kept, news), _is_array)
        made: list[Any] = []

        def work() -> list[Array]:
            kept, news = given.filled(homes[1:])
            made[:] = move(Count.of(row, homes[0]), *kept, *news)
            return [*_packed(_arrays(made[0])), *_arrays(made[1])]

        replay, arrays = recorded(work, homes, studio)
        out, left = made
        packs = len(arrays) - len(_arrays(left))
        left = Mould.of(left, _is_array).filled(arrays[packs:])
        before, after = _numbers(kept[0]), _numbers(left)
        return cls(
            replay=replay,
            homes=homes,
            packs=arrays[:packs],
            out=Mould.of(with_leaves(out, map(_hollow, leaves(out))), _is_array),
            left=Mould.of(left, _is_number),
            steps=[later - now for now, later in zip(before, after, strict=True)],
        )

    def play(self, row: int, kept: Values, news: Values) -> tuple[Any, Any]:
        """Make the move with other values."""
        given = leaves((kept, news))
        _copy(self.homes[1:], list(filter(_is_array, given)))
        self.homes[0].fill_(row)
        self.replay()
        moved_on = map(operator.add, filter(_is_number, given), self.steps)
        return self.out.filled(_unpacked(self.packs, self.out.chosen)), self.left.filled(moved_on)


@dataclass(frozen=True)
class Mould:
    """A value some of whose leaves are filled in."""

    value: Any
    leaves: list[Any]
    places: list[int]

    @classmethod
    def of(cls, value: Any, among: Callable[[Any], bool]) -> Mould:
        """A value of which such leaves are to be filled in."""
        every = leaves(value)
        return cls(value, every, [place for place, one in enumerate(every) if among(one)])

    @property
    def chosen(self) -> list[Any]:
        """The leaves that are filled in, as they were."""
        return [self.leaves[place] for place in self.places]

    def filled(self, others: Iterable[Any]) -> Any:
        """The value with others in their place, in order."""
        every = self.leaves.copy()
        for place, other in zip(self.places, others, strict=True):
            every[place] = other
        return with_leaves(self.value, every)


def records(device: str) -> bool:
    """Whether a device can record."""
    return device.startswith("cuda")


class Studio(NamedTuple):
    """Where a GPU records: a stream, and memory that recordings share."""

    stream: Any
    pool: Any


def studio(device: str) -> Studio:
    """One that nothing was recorded in."""
    import torch

    return Studio(torch.cuda.Stream(device), torch.cuda.graph_pool_handle())  # type: ignore[no-untyped-call]


def recorded(work: Work, homes: Sequence[Array], studio: Any) -> tuple[Callable[[], None], list[Array]]:
    """What plays some work on homes again, and the arrays that it then writes to.

    These lie at home, or outside the memory that recordings share: what a later one leaves there lies where an earlier
    one, played again, computes.
    """
    at_home = set(map(_memory, homes))
    places = [one if _memory(one) in at_home else namespace(one).empty_like(one) for one in warmed(work, studio)]

    def work_and_bring() -> None:
        made = [one if _memory(one) not in at_home else place for one, place in zip(work(), places, strict=True)]
        _copy(places, made)

    return captured(work_and_bring, studio), places


def warmed(work: Work, studio: Studio) -> list[Array]:
    """What some work makes before it is recorded: libraries are set up, and it writes what the recording will."""
    import torch

    main = torch.cuda.current_stream(studio.stream.device)
    studio.stream.wait_stream(main)
    with torch.cuda.stream(studio.stream):
        made = work()
    main.wait_stream(studio.stream)
    return made


def captured(work: Callable[[], None], studio: Studio) -> Callable[[], None]:
    """What plays some work again, which is recorded and not done."""
    import torch

    graph, (stream, pool) = torch.cuda.CUDAGraph(), studio
    recording = torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode="thread_local")
    with nothing_freed(), torch.cuda.device(stream.device), recording:
        work()
    return graph.replay


def _copy(homes: Sequence[Array], values: Sequence[Array]) -> None:
    """Bring values home that are not, those of a type at once."""
    import torch

    away = [(home, value) for home, value in zip(homes, values, strict=True) if home is not value]
    for kind in {home.dtype for home, _ in away}:
        to, of = zip(*[pair for pair in away if pair[0].dtype == kind], strict=True)
        torch._foreach_copy_(to, of)


def _packed(arrays: Iterable[Array]) -> list[Array]:
    """All numbers of each type one after the other, so that few copies do."""
    by_type: dict[Any, list[Array]] = {}
    for array in arrays:
        by_type.setdefault(array.dtype, []).append(array.reshape((-1,)))
    return [namespace(flat[0]).concat(flat) for flat in by_type.values()]


def _unpacked(packs: Sequence[Array], like: Sequence[Array]) -> Iterator[Array]:
    """Copies of packed numbers, in the types and shapes of those they were made from."""
    sizes = {pack.dtype: [one.numel() for one in like if one.dtype == pack.dtype] for pack in packs}
    parts = {pack.dtype: iter(pack.clone().split(sizes[pack.dtype])) for pack in packs}
    return (next(parts[one.dtype]).view(one.shape) for one in like)


def _hollow(leaf: Any) -> Any:
    """An array without its numbers; anything else as it is."""
    return leaf.to("meta") if _is_array(leaf) else leaf


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "shape")


def _memory(array: Array) -> int:
    """What tells apart arrays that share no memory."""
    return int(array.untyped_storage().data_ptr())


def _is_number(leaf: Any) -> bool:
    return type(leaf) is int


def _arrays(value: Any) -> list[Array]:
    return list(filter(_is_array, leaves(value)))


def _numbers(value: Any) -> list[int]:
    return list(filter(_is_number, leaves(value)))
