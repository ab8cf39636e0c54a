"""What a search says while it goes on."""

from __future__ import annotations

import io

from rich.console import Console

from fuseline.cli.tune_progress import PlainProgress, progress_table, status_line
from fuseline.tuning.budget import Budget
from fuseline.tuning.search import Watch
from tests.unit.tuning.landscape import LandscapeEvaluator, searched

TRIALS = searched(LandscapeEvaluator(), trials=10).trials


def test_a_line_has_the_best_the_failures_and_the_time_left():
    line = status_line(Watch(TRIALS, 2, 40.0, Budget(trials=50, seconds=60.0)))
    assert TRIALS.best is not None and f"trial {TRIALS.best.number})" in line
    for words in ("10 trials of 50", "best ", "% of the default", "1 failed", "2 running", "20 s left"):
        assert words in line, line


def test_a_search_that_has_told_nothing_has_a_line():
    empty = searched(LandscapeEvaluator(), trials=0).trials
    assert status_line(Watch(empty, 1, 0.0, Budget())) == "0 trials, 1 running"


def test_a_pipe_gets_a_line_for_each_new_best():
    text = io.StringIO()
    shown = PlainProgress(Console(file=text, width=200))
    for _ in range(3):
        shown.watch(Watch(TRIALS, 0, 1.0, Budget(), TRIALS.trials[-1]))
    assert text.getvalue().count("best") == 1


def test_the_table_shows_the_last_trials():
    text = io.StringIO()
    Console(file=text, width=160).print(progress_table(Watch(TRIALS, 0, 1.0, Budget()), "tuning m.onnx"))
    assert "tuning m.onnx" in text.getvalue() and "E0703" in text.getvalue()
