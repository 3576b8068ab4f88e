"""What commands show."""

import pytest

from ompb.cli.console import show_table


def test_a_narrow_screen_cuts_no_number_short(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    headings, numbers = [f"column {place}" for place in range(12)], [f"0.{place:07}" for place in range(12)]
    show_table("Numbers", headings, [("a name that is long", *numbers[1:])])
    shown = capsys.readouterr().out.splitlines()[-1].split()
    assert shown[-11:] == numbers[1:]
