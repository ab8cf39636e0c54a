"""Cores are held by one at a time, and given back however it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator

import pytest

from fuseline.cluster import cores
from fuseline.cluster.cores import held_cores, physical_cores, pinned
from fuseline.errors import FuselineError
from fuseline.runtime.processors import allowed_processors

_NAMES = f"\0fuseline-test-{uuid.uuid4().hex}-{{}}"
_PROCESSORS = [0, 1, 2, 3]
_CORES = {0: 0, 1: 0, 2: 2, 3: 2}


@pytest.fixture(autouse=True)
def _names_of_our_own(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    """Searches that run on this machine meanwhile are not waited for."""
    monkeypatch.setattr(cores, "_NAME", _NAMES)
    yield


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores of two processors each."""
    monkeypatch.setattr(cores, "allowed_processors", lambda: list(_PROCESSORS))
    monkeypatch.setattr(cores, "core_of", _CORES.__getitem__)


@pytest.mark.usefixtures("two_cores")
def test_each_holds_a_core_of_its_own():
    assert physical_cores() == [0, 2]
    with held_cores(1) as first:
        with held_cores(1) as second:
            assert {first, second} == {(0,), (2,)}
            with pytest.raises(FuselineError) as raised, held_cores(1, given_up=lambda: True):
                pass
            assert raised.value.code == "E1103"
        with held_cores(1) as again:
            assert again == second


@pytest.mark.usefixtures("two_cores")
def test_all_or_nothing():
    with held_cores(1, prefer=(2,)) as one:
        assert one == (2,)
        with pytest.raises(FuselineError), held_cores(2, given_up=lambda: True):
            pass
        with held_cores(1) as other:  # nothing of the attempt is held
            assert other == (0,)
    with held_cores(2) as both:
        assert both == (0, 2)
    with held_cores(3) as more_than_cores:
        assert more_than_cores == (0, 1, 2)


@pytest.mark.usefixtures("two_cores")
def test_who_waits_gets_it():
    found: list[tuple[int, ...]] = []

    def wait() -> None:
        with held_cores(2) as processors:
            found.append(processors)

    with held_cores(2):
        waiting = threading.Thread(target=wait)
        waiting.start()
        waiting.join(0.1)
        assert not found
    waiting.join(60)
    assert found == [(0, 2)]


def test_a_process_that_ends_holds_nothing():
    program = f"""
import os, sys
from fuseline.cluster import cores
cores._NAME = {_NAMES!r}
with cores.held_cores(99):
    print("held", flush=True)
    sys.stdin.read()
"""
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"held\n"
        with pytest.raises(FuselineError), held_cores(1, given_up=lambda: True):
            pass
        process.kill()
        process.wait()
        with held_cores(1) as one:
            assert len(one) == 1


def test_a_thread_is_pinned_for_a_while():
    before = os.sched_getaffinity(0)
    seen: list[set[int]] = []
    with pinned(allowed_processors()[:1]):
        assert allowed_processors() == sorted(before)[:1]
        thread = threading.Thread(target=lambda: seen.append(os.sched_getaffinity(0)))
        thread.start()
        thread.join()
    assert seen == [set(sorted(before)[:1])] and os.sched_getaffinity(0) == before
