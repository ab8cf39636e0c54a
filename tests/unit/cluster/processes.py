"""A Dask scheduler and workers as processes of their own, on ports that the system gives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[3]
PATIENCE = 120.0
"""Seconds that processes may take to start on a machine that is busy."""

OTHER_VERSION = """
import fuseline.cluster.worker_facts as facts
facts.VERSION = "0.0.9"
"""
OTHER_KIND = """
import fuseline.cluster.worker_facts as facts
facts.machine_kind = lambda: "x86_64-avx2 another CPU, L1 32K, 1 processor"
"""
OTHER_ISA = """
import fuseline.cluster.worker_facts as facts
facts._isa, facts.machine_name = (lambda: "neon"), (lambda: "aarch64")
"""
ABSENT = """
import sys
sys.path[:] = [path for path in sys.path if "fuseline" not in path]
sys.modules["fuseline"] = None
"""
"""Preloads (Dask's --preload) of workers that are not like the client."""


class Cluster:
    """A scheduler, and workers (no nanny: one that is killed stays away) with the given preloads."""

    def __init__(self, folder: Path, preloads: Sequence[str]) -> None:
        self.folder, self._file = folder, folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-show")
        self.address = str(self._written()["address"])
        self.workers = [self._worker(number, text) for number, text in enumerate(preloads)]

    def _written(self) -> dict[str, object]:
        for _ in range(int(PATIENCE / 0.05)):
            if self.scheduler.poll() is not None:
                raise AssertionError((self.folder / "log").read_text())
            if self._file.exists() and (text := self._file.read_text()):
                return json.loads(text)
            time.sleep(0.05)
        raise AssertionError("the scheduler does not start")

    def _worker(self, number: int, preload: str) -> subprocess.Popen[bytes]:
        path = self.folder / f"preload{number}.py"
        path.write_text(preload)
        words = ("--nthreads", "1", "--no-nanny", "--host", "127.0.0.1", "--local-directory", str(self.folder))
        return self._start("worker", *words, "--preload", str(path))

    def _start(self, part: str, *words: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{part}", "--scheduler-file", str(self._file)]
        paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                [*command, "--no-dashboard", *words],
                env={**os.environ, "PYTHONPATH": paths},
                stdout=log,
                stderr=log,
            )

    def join(self, *preloads: str) -> None:
        """Start more workers."""
        self.workers += [self._worker(len(self.workers) + number, text) for number, text in enumerate(preloads)]

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@contextmanager
def dask_cluster(folder: Path, *preloads: str) -> Generator[Cluster]:
    """A cluster with a worker for each of `preloads`, which may be empty."""
    cluster = Cluster(folder, preloads)
    try:
        yield cluster
    finally:
        cluster.end()


def wait_until(condition: object, seconds: float = PATIENCE) -> None:
    """Until the function `condition` answers something true."""
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it does not happen"
        time.sleep(0.05)
