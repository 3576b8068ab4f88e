"""Declarations of shapes and tags: what is accepted, and what is a mistake of the programmer."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from ompb.floor.shapes import Dim, Shape, Tagged


def test_sizes() -> None:
    assert Shape("").sizes == ()
    assert Shape("3 ? F+H+2").sizes == (Dim("3"), Dim("?"), Dim("F+H+2"))
    assert Shape("...").sizes is None
    assert [Dim(text).terms for text in ("3", "?", "F+H+2")] == [("3",), (), ("F", "H", "2")]


@pytest.mark.parametrize("dims", ["F*H", "F-1", "+", "N F+", "(N)", "N,F"])
def test_sizes_that_are_none(dims: str) -> None:
    with pytest.raises(TypeError, match="is no size; write a number"):
        Shape(dims)


def test_dtypes() -> None:
    with pytest.raises(TypeError, match="dtype 'int32' cannot be saved; accepted: float64, float32, int64, bool"):
        Shape("N", dtype="int32")


def test_tags_belong_to_their_family() -> None:
    class Shade(Tagged): ...

    class Taste(Tagged): ...

    class Dark(Shade): ...  # in between, without a tag

    class Grey(Dark, tag="grey"): ...

    class Sweet(Taste, tag="grey"): ...

    assert Shade.tags == {"grey": Grey}
    assert Taste.tags == {"grey": Sweet}


def test_a_tag_is_taken_once() -> None:
    class Shade(Tagged): ...

    class Grey(Shade, tag="grey"): ...

    with pytest.raises(TypeError, match=r"the tag 'grey' of .*Gray belongs to .*Grey; choose another"):

        class Gray(Shade, tag="grey"): ...

    assert Shade.tags == {"grey": Grey}
    with pytest.raises(TypeError, match="is a family and takes no tag"):

        class Taste(Tagged, tag="sweet"): ...


def test_a_class_that_is_defined_again_takes_the_place_of_the_old_one() -> None:
    class Shade(Tagged): ...

    def define() -> type[Shade]:
        class Grey(Shade, tag="grey"): ...

        return Grey

    first, second = define(), define()
    assert first is not second
    assert Shade.tags == {"grey": second}


def test_slots_make_a_class_twice() -> None:
    @dataclass(frozen=True, slots=True)
    class Shade(Tagged): ...

    @dataclass(frozen=True, slots=True)
    class Grey(Shade, tag="grey"):
        depth: int

    assert Shade.tags == {"grey": Grey}
    assert not hasattr(Grey(3), "__dict__")
