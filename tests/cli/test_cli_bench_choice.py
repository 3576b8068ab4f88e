"""What ``ompb bench run`` says of a choice that cannot be run, in whole or in part."""

from pathlib import Path

import pytest
from tables_on_disk import assert_refused, ompb


def run_words(tmp_path: Path, *words: object) -> tuple[object, ...]:
    return ("bench", "run", *words, "--folder", tmp_path, "--store", tmp_path / "store")


@pytest.mark.parametrize("analyses", [("delay",), ("delay", "partial"), ("ili_results",)])
def test_without_data_nothing_runs_and_one_line_says_why(
    analyses: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    answer = ompb(capsys, *run_words(tmp_path, "--analysis", *analyses, "--quick"))
    assert_refused(answer, "no cell can be run", "needs ", "OMPB_DATA")
    assert answer.out == ""
    assert answer.err.count(" left out: ") == 1


@pytest.mark.parametrize("word", ["--device", "--train-on"])
def test_a_device_that_is_not_there_is_one_line(
    word: str, data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    words = ("bench", "run", "--analysis", "delay", "--quick", "--folder", data_dir, "--store", tmp_path)
    assert_refused(ompb(capsys, *words, word, "cuda:99"), "device 'cuda:99' is not available", "pass 'cpu'")
    assert_refused(ompb(capsys, *words, word, "abacus"), "device 'abacus' does not exist")


def test_weights_that_are_not_there_are_one_line(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("torch")
    chosen = ("--analysis", "ili_results", "--backbone", "gpt4ts[gpt2-partial]", "--method", "original", "last")
    words = ("bench", "run", *chosen, "--folder", data_dir, "--store", tmp_path / "store")
    answer = ompb(capsys, *words, "--gpt2-checkpoint", tmp_path)
    assert_refused(answer, "weights of gpt4ts[gpt2-partial] are not at hand", "--gpt2-checkpoint")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("delay", "--method", "ompb-paper", "nope"),
            "--method nope: no cell of delay with --quick has it; accepted: ",
        ),
        (
            ("delay", "--dataset", "etth", "nope"),
            "--dataset nope: no cell of delay with --quick has it; accepted: etth.",
        ),
        (
            ("delay", "partial", "--seed", 0, 9, 8),
            "--seed 9, 8: no cell of delay, partial with --quick has it; accepted: 0",
        ),
        (("delay", "--horizon", 96), "--horizon 96: no cell of delay with --quick has it; accepted: 24."),
        (
            ("delay", "shift", "--split", "far"),
            "--split far: no cell of delay, shift with --quick has it; accepted: ood.",
        ),
    ],
)
def test_a_name_that_no_cell_of_an_analysis_has_is_refused(
    words: tuple[object, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert_refused(ompb(capsys, *run_words(tmp_path, "--analysis", *words, "--quick")), said)


def test_the_option_that_leaves_nothing_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of ETTh and ILI each has a cell, and so has each horizon; together they have none."""
    words = ("--analysis", "epochs", "--dataset", "ili", "--horizon", 96)
    said = "--horizon 96 leaves no cell of epochs: with the other options it has 24, 48"
    assert_refused(ompb(capsys, *run_words(tmp_path, *words)), said)


def test_an_analysis_of_data_alone_needs_no_run_and_stops_no_other(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = "The analysis shift is made from data alone and needs no run: see ompb bench table shift."
    alone = ompb(capsys, *run_words(tmp_path, "--analysis", "shift"))
    assert (alone.code, alone.out.splitlines()[0]) == (0, said)
    words = ("bench", "run", "--analysis", "shift", "timeline", "--quick", "--folder", data_dir, "--store", tmp_path)
    both = ompb(capsys, *words, "--minutes", 0)
    assert both.out.splitlines()[0] == said
    assert "2 cells are left" in both.out


def test_a_wrong_data_set_is_named_whatever_else_lacks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert_refused(ompb(capsys, *run_words(tmp_path, "--dataset", "nope")), "no data set 'nope'")
