"""Names with options in brackets."""

from __future__ import annotations

import pytest

from ompb.bench.named import Named
from ompb.errors import OptionError


@pytest.mark.parametrize(
    "named",
    [
        Named("ompb"),
        Named("ompb", {"gate": "open"}),
        Named("solid++", {"factor": 0.1, "kinds": ("a", "b]"), "none": None, "on": True}),
        Named("a name", {"word": 'with "quotes", commas and = signs'}),
    ],
)
def test_a_name_is_read_back(named: Named) -> None:
    assert Named.of(str(named)) == named


@pytest.mark.parametrize(
    "text", ["", "ompb[", "ompb]", "ompb[1]", "ompb[a]", "ompb[a=open]", "ompb[**{}]", "ompb[a=1][b=2]"]
)
def test_a_name_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(OptionError, match="cannot be read"):
        Named.of(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("ompb[gate=open]", 'ompb[gate="open"]'),
        ("ompb[draws=5, gate=open]", 'ompb[draws=5,gate="open"]'),
        ("solid++[kinds=(a, 'b')]", "solid++[kinds=('a', 'b')]"),
    ],
)
def test_a_word_without_quotes_is_told_with_the_name_that_was_meant(text: str, meant: str) -> None:
    with pytest.raises(OptionError) as refused:
        Named.of(text)
    assert f"words need quotes, so write {meant}, on a command line" in str(refused.value)
    assert Named.of(meant)


@pytest.mark.parametrize("text", ["ompb[gate=half-open]", "ompb[gate=open()]", "ompb[gate=a.b]"])
def test_what_no_quotes_mend_is_told_in_words(text: str) -> None:
    with pytest.raises(OptionError, match="an option's value is a number, a word in quotes") as refused:
        Named.of(text)
    assert "object at" not in str(refused.value)


def test_options_come_in_one_order() -> None:
    assert str(Named("ompb", {"b": 1, "a": 2})) == str(Named("ompb", {"a": 2, "b": 1})) == "ompb[a=2,b=1]"
