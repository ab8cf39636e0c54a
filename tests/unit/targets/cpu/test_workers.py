"""Work shared among forks: every answer once and in order, whoever gives it, and errors as without forks."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from fuseline.targets.cpu.link.workers import shared


@pytest.mark.parametrize("processes", [1, 2, 3, 9])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 40])
def test_answers_are_in_order(count: int, processes: int):
    assert shared(lambda i: (i, bytes([i])), count, processes) == [(i, bytes([i])) for i in range(count)]


def test_forks_take_part(tmp_path: Path):
    parent, begun = os.getpid(), tmp_path / "begun"

    def work(i: int) -> int:
        if os.getpid() != parent:
            begun.touch()
        end = time.monotonic() + 200
        while not begun.exists() and time.monotonic() < end:  # a fork begins when the machine lets it
            time.sleep(0.01)
        return os.getpid()

    assert len(set(shared(work, 8, 2))) == 2


def test_what_fails_in_a_fork_is_done_here():
    parent = os.getpid()

    def work(i: int) -> int:
        time.sleep(0.005)
        if os.getpid() != parent:
            raise OSError("no memory")
        return i * i

    assert shared(work, 6, 3) == [i * i for i in range(6)]


def test_an_error_is_raised_here():
    def work(i: int) -> int:
        if i == 3:
            raise ValueError(f"piece {i}")
        return i

    with pytest.raises(ValueError, match="piece 3"):
        shared(work, 5, 2)
    assert shared(lambda i: i, 3, 2) == [0, 1, 2]


def test_an_answer_that_cannot_be_pickled_is_made_here():
    answers = shared(lambda i: lambda: i, 4, 2)
    assert [answer() for answer in answers] == [0, 1, 2, 3]


def test_no_process_is_left(monkeypatch: pytest.MonkeyPatch):
    """Of those that it made: other tests of the session may have some of their own."""
    made, real = list[int](), os.fork

    def fork() -> int:
        made.append(real())
        return made[-1]

    monkeypatch.setattr(os, "fork", fork)
    shared(lambda i: i, 10, 4)
    assert made
    for process in made:
        with pytest.raises(ChildProcessError):
            os.waitpid(process, os.WNOHANG)


def test_very_many_pieces():
    """More than a pipe holds, most of all one of a user who has many."""
    assert shared(lambda i: i, 40_000, 3) == list(range(40_000))


def test_without_a_process_to_spare(monkeypatch: pytest.MonkeyPatch):
    def fork() -> int:
        raise BlockingIOError("no process")

    monkeypatch.setattr(os, "fork", fork)
    assert shared(lambda i: i * i, 6, 3) == [i * i for i in range(6)]
