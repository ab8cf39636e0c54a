"""Of those that want the same program at once one makes it; the others wait, whatever becomes of the first."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import fuseline
from fuseline import compilation
from fuseline.cache import in_flight as module
from fuseline.cache.in_flight import in_flight
from tests.graphs.onnx_text import onnx_model

pytest.importorskip("fcntl")

_HOLDER = """
from fuseline.cache.in_flight import in_flight
with in_flight("key") as waited:
    print(waited, flush=True)
    input()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("FUSELINE_NO_CACHE", raising=False)
    return tmp_path / "programs"


def test_alone_nobody_waits_and_nothing_is_left(place: Path):
    with in_flight("key") as waited, in_flight("other") as too:
        assert not waited and not too and len(list(place.iterdir())) == 2
    assert not list(place.iterdir())
    with pytest.raises(ValueError), in_flight("key"):
        raise ValueError
    assert not list(place.iterdir())


def test_what_a_killed_process_held_is_free(monkeypatch: pytest.MonkeyPatch):
    with subprocess.Popen(
        [sys.executable, "-c", _HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ
    ) as holder:
        assert holder.stdout is not None and holder.stdout.readline() == b"False\n"
        monkeypatch.setattr(module.time, "sleep", lambda _: holder.kill())  # once somebody waits for it
        with in_flight("key") as waited:
            assert waited and holder.wait() != 0


def test_who_is_stuck_is_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LONGEST_SECONDS", 0.05)
    with in_flight("key"), in_flight("key") as waited:
        assert waited


def test_no_place_for_a_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "file").touch()
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "file"))
    with in_flight("key") as waited:
        assert not waited


def test_four_compiles_at_once_are_one(monkeypatch: pytest.MonkeyPatch):
    model = onnx_model("(float[2, 3] x) => (float[2, 3] y) { z = Exp(x) y = Neg(z) }")
    real, made, found = compilation.compile_program, list[int](), list[bool]()

    def counted(*arguments: Any) -> Any:
        made.append(1)
        time.sleep(0.2)  # the others are there by then, or find it later
        return real(*arguments)

    monkeypatch.setattr(compilation, "compile_program", counted)
    threads = [
        threading.Thread(target=lambda: found.append(fuseline.compile(model, threads=1).from_cache)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1 and sorted(found) == [False, True, True, True]


def test_what_cannot_be_kept_is_waited_for_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FUSELINE_CACHE_SIZE", "0")
    model = onnx_model("(float[2, 3] x) => (float[2, 3] y) { y = Exp(x) }")
    with ThreadPoolExecutor(3) as pool:
        programs = list(pool.map(lambda _: fuseline.compile(model, threads=1), range(3)))
    assert not any(program.from_cache for program in programs)
