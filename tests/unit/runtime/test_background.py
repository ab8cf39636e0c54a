"""Runs in the background: futures of what work answers or raises, more of it than threads, and in a forked child."""

from __future__ import annotations

import os
import threading

import pytest

from fuseline.runtime.background import in_background
from fuseline.runtime.processors import allowed_processors


def test_a_future_holds_what_work_answers_or_raises():
    assert in_background(divmod, 17, 5).result(timeout=60) == (3, 2)
    failed = in_background(divmod, 17, 0)
    with pytest.raises(ZeroDivisionError):
        failed.result(timeout=60)


def test_work_is_done_on_threads_of_its_own_in_turn():
    """More work than threads: all of it is done, on no more threads than there are processors."""
    count = 4 * len(allowed_processors())
    names = [one.result(timeout=60) for one in [in_background(_thread_name) for _ in range(count)]]
    assert len(names) == count and all(name.startswith("fuseline-run") for name in names)
    assert len(set(names)) <= len(allowed_processors())


def _thread_name() -> str:
    return threading.current_thread().name


def test_a_forked_child_has_threads_of_its_own():
    in_background(_thread_name).result(timeout=60)
    child = os.fork()
    if child == 0:  # no test runner in here: the exit code tells
        done = in_background(int.__add__, 40, 2).result(timeout=60)
        os._exit(done)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
