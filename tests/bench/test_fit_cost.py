"""benchmarks/fit_cost.py says how it is called."""

import sys

import pytest

import fit_cost


@pytest.mark.parametrize(
    ("word", "code", "said"),
    [("--help", 0, "python benchmarks/fit_cost.py [series]"), ("7", 2, "7 is no number of series from 8 on"),
     ("many", 2, "many is no number of series")],
)  # fmt: skip
def test_help_and_a_wrong_number_end_in_words(
    word: str, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fit_cost.py", word])
    with pytest.raises(SystemExit) as ended:
        fit_cost.main()
    captured = capsys.readouterr()
    assert ended.value.code == code
    assert said in captured.out + captured.err
