"""What is written beyond a tensor ends a process that has the checks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.fuzz import heap_checks

BEYOND = "import ctypes, numpy; a = numpy.empty(4096, 'u1'); ctypes.memset(a.ctypes.data, 1, 4096 + {more}); del a"


@pytest.mark.skipif(heap_checks.checked({}) is None, reason="this C library has no checks of its own")
@pytest.mark.parametrize(("more", "code"), [(0, 0), (1, -signal.SIGABRT), (64, -signal.SIGABRT)])
def test_what_lies_beyond_is_found(more: int, code: int):
    environment = heap_checks.checked({**os.environ, "MALLOC_CHECK_": ""})
    assert environment is not None and heap_checks.checked(environment) is None
    command = [sys.executable, "-c", BEYOND.format(more=more)]
    assert subprocess.run(command, env=environment, capture_output=True, check=False).returncode == code


def test_what_is_preloaded_stays(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(heap_checks, "_is_there", lambda: True)
    environment = heap_checks.checked({"LD_PRELOAD": "other.so"})
    assert environment is not None and environment["LD_PRELOAD"].split() == [heap_checks.LIBRARY, "other.so"]


def test_a_library_without_checks_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(heap_checks, "_is_there", lambda: False)
    assert heap_checks.checked({}) is None
    heap_checks.restart()
