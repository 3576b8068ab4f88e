"""Groups of lines by their seeds: by hand, and by what has to hold whatever has run."""

from hypothesis import given
from hypothesis import strategies as st

from ompb.paper.groups import Group, groups


def test_one_set_of_seeds_is_one_group() -> None:
    assert groups([(0, 2), (2, 0), ()], anchors=(0,)) == [Group((0, 2), (0, 1, 2))]
    assert groups([(), ()]) == [Group((), (0, 1))]
    assert groups([]) == [Group((), ())]


def test_anchors_stand_again_beside_lines_with_fewer_seeds() -> None:
    ran = [(0, 1, 2), (0, 1, 2), (0,), (0, 1), (0, 1, 2)]
    assert groups(ran, anchors=(0, 4)) == [
        Group((0, 1, 2), (0, 1, 4)),
        Group((0, 1), (0, 3, 4), frozenset({0, 4})),
        Group((0,), (0, 2, 4), frozenset({0, 4})),
    ]


def test_an_anchor_that_lacks_a_seed_stands_once() -> None:
    assert groups([(0, 1), (2,), (1,)], anchors=(0, 1)) == [
        Group((0, 1), (0,)),
        Group((1,), (0, 2), frozenset({0})),
        Group((2,), (1,)),
    ]


def test_seeds_that_those_with_the_most_lack_are_left_out() -> None:
    """Of two as large sets the commoner one counts as having the most."""
    assert groups([(1, 2, 3), (0, 1, 2), (0, 1, 2), (2, 5)]) == [
        Group((0, 1, 2), (1, 2)),
        Group((1, 2), (0,)),
        Group((2,), (3,)),
    ]


def test_what_has_more_seeds_than_the_anchors_stands_beside_them() -> None:
    """A second anchor with fewer seeds takes none away; without a seed in common lines stay apart."""
    ran = [(0, 1, 2), (0, 1, 2, 3), (0,)]
    assert groups(ran, anchors=(0, 2)) == [Group((0, 1, 2), (0, 1)), Group((0,), (0, 2), frozenset({0}))]
    assert groups([(0, 1), (2, 3, 4)], anchors=(0,)) == [Group((2, 3, 4), (1,)), Group((0, 1), (0,))]
    assert groups([(), (0, 1), (0,)], anchors=(0,)) == [Group((0, 1), (1,)), Group((0,), (0, 2))]


@given(st.lists(st.sets(st.integers(0, 3))), st.sets(st.integers(0, 9)))
def test_every_line_stands_once_and_has_the_seeds_of_its_group(ran: list[set[int]], anchors: set[int]) -> None:
    anchors &= set(range(len(ran)))
    found = groups(ran, anchors)
    once = [line for group in found for line in group.lines if line not in group.again]
    assert sorted(once) == list(range(len(ran)))
    sizes = [len(group.seeds) for group in found]
    assert sizes == sorted(sizes, reverse=True)
    for group in found:
        assert all(ran[line] >= set(group.seeds) for line in group.lines if ran[line])
        assert group.again <= anchors
        assert group.lines == tuple(sorted(group.lines))
