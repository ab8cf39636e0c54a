"""Threads: none for one, a new team after a fork, clean exits, affinity."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef
from fuseline.errors import FuselineError
from fuseline.runtime import Artifact, Session, TensorSpec
from fuseline.runtime.memory import CodePages
from fuseline.runtime.team import Team

X, Y, T = BufferRef("input", 0), BufferRef("output", 0), BufferRef("arena", 0)
INPUT = np.random.default_rng(0).standard_normal(512, dtype=np.float32)


def _artifact(kit: Any, threads: int) -> Artifact:
    spec = [TensorSpec(name, "float32", (512,)) for name in "xy"]
    steps = [kit.command("mirror", [X, T], 512), kit.command("mirror", [T, Y], 512, barrier=True)]
    return kit.artifact(spec[:1], spec[1:], steps, arena_bytes=2048, threads=threads)


def _run_in_child(work: Any) -> int:
    """Exit status of `work` in a forked child: 0 if it answered True."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.parametrize("threads", [1, 2])
def test_a_forked_child_can_run(kit: Any, threads: int) -> None:
    session = Session(_artifact(kit, threads))
    expected = session.run({"x": INPUT})["y"]
    assert _run_in_child(lambda: all(np.array_equal(session.run({"x": INPUT})["y"], expected) for _ in range(50))) == 0
    assert np.array_equal(session.run({"x": INPUT})["y"], expected)


def test_fork_while_another_thread_runs(kit: Any) -> None:
    session = Session(_artifact(kit, 2))
    expected = session.run({"x": INPUT})["y"]
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            session.run({"x": INPUT})

    runner = threading.Thread(target=work)
    runner.start()
    try:
        statuses = [_run_in_child(lambda: np.array_equal(session.run({"x": INPUT})["y"], expected)) for _ in range(10)]
    finally:
        stop.set()
        runner.join()
    assert statuses == [0] * 10


_SCRIPT = """
import sys, os
import numpy as np
from fuseline.runtime import load
{body}
"""


def _python(body: str, *arguments: object) -> str:
    command = [sys.executable, "-c", _SCRIPT.format(body=body), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _tasks() -> str:
    return "len(os.listdir('/proc/self/task'))"


@pytest.fixture
def saved(kit: Any, tmp_path: Path) -> Path:
    path = tmp_path / "m.fuse"
    _artifact(kit, 2).save(path)
    return path


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
def test_one_thread_creates_none(saved: Path) -> None:
    body = (
        f"before = {_tasks()}\ns = load(sys.argv[1], threads=1)\ns.run({{'x': np.ones(512, "
        f"'f4')}})\nprint({_tasks()} - before)"
    )
    assert _python(body, saved) == "0"


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="counts threads in /proc")
@pytest.mark.parametrize(("pin", "workers"), [(True, 3), (False, 2)])
def test_workers_are_shared_by_sessions(saved: Path, pin: bool, workers: int) -> None:
    body = (
        f"before = {_tasks()}\n"
        f"for threads in (3, 2, 3):\n    s = load(sys.argv[1], threads=threads, pin={pin})\n    y = s.run({{'x': "
        f"np.arange(512, dtype='f4')}})['y']\n"
        f"    assert (y == np.arange(512) + 2).all()\nprint({_tasks()} - before)"
    )
    assert _python(body, saved) == str(workers)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="needs processor affinity")
def test_the_callers_affinity_is_untouched_and_respected(saved: Path) -> None:
    body = (
        "cpu = min(os.sched_getaffinity(0)); os.sched_setaffinity(0, {cpu})\n"
        "s = load(sys.argv[1], threads=2)\nfor _ in range(20): s.run({'x': np.ones(512, 'f4')})\n"
        "masks = [os.sched_getaffinity(int(t)) for t in os.listdir('/proc/self/task')]\n"
        "print(os.sched_getaffinity(0) == {cpu} and all(m == {cpu} or len(m) > 1 for m in masks[:1]) and len(masks) "
        ">= 3)"
    )
    assert _python(body, saved) == "True"


def test_exit_with_idle_and_spinning_workers(saved: Path) -> None:
    for pause in (0, 0.05):
        _python(
            f"import time\ns = load(sys.argv[1])\nfor _ in range(100): s.run({{'x': np.ones(512, "
            f"'f4')}})\ntime.sleep({pause})",
            saved,
        )


def test_a_session_may_go_while_the_team_stays(saved: Path) -> None:
    body = (
        "import gc\nfor _ in range(20):\n    s = load(sys.argv[1])\n    s.run({'x': np.ones(512, 'f4')})\n    del s\n "
        "   gc.collect()\n"
        "s = load(sys.argv[1])\nprint((s.run({'x': np.ones(512, 'f4')})['y'] == 3).all())"
    )
    assert _python(body, saved) == "True"


class _NoThreads:
    """A libc that creates no thread."""

    def __getattr__(self, name: str) -> Any:
        return (lambda *_: 11) if name == "pthread_create" else (lambda *_: 0)


def test_a_refused_thread_is_coded_and_tried_again(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    artifact = _artifact(kit, 2)
    team = Team(CodePages(artifact.code, artifact.fixups), artifact.entries["worker"], pin=False)
    monkeypatch.setattr("fuseline.runtime.team._libc", _NoThreads())
    for _ in range(2):
        with pytest.raises(FuselineError, match="E0405"):
            team.ensure(2)


def test_importing_the_runtime_imports_numpy_and_no_compiler() -> None:
    body = (
        "print(sorted({m.split('.')[0] for m in sys.modules} & {'xdsl', 'llvmlite', 'onnx', 'onnx_ir', 'rich', "
        "'click', 'msgspec', 'ml_dtypes'}))"
    )
    assert _python(body) == "[]"
