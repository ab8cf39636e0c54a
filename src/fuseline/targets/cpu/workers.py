"""Work shared among forked processes: llvmlite and Python hold one lock, so that threads would gain nothing (two processes 1.9 times).

Each process takes the next piece when it has done one, so that they end together however uneven the pieces are.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

_NUMBER = 4
_MOST = 8192
"""Pieces whose numbers fit into a pipe, which holds at least 64 KiB."""


def shared(work: Callable[[int], T], count: int, processes: int) -> list[T]:
    """`[work(i) for i in range(count)]` by this process and forks of it. Answers travel pickled; what `work` changes in a fork stays there.

    A piece that fails in a fork is done again here, so that an error is raised as it would be without forks.
    """
    if processes < 2 or count < 2 or count > _MOST or not hasattr(os, "fork"):
        return [work(i) for i in range(count)]
    queue = _Queue(count)
    children = [_Child(queue, work) for _ in range(min(processes, count) - 1)]
    try:
        done = {i: work(i) for i in queue}
    finally:
        queue.close()  # the children find it empty soon
        answers = [child.join() for child in children]
    for answer in answers:
        done.update(answer)
    return [done[i] if i in done else work(i) for i in range(count)]


class _Queue:
    """The numbers of the pieces, in a pipe that all processes read from; a read takes whole numbers, as all of them were written before."""

    def __init__(self, count: int) -> None:
        self._read, write = os.pipe()
        os.write(write, b"".join(i.to_bytes(_NUMBER, "little") for i in range(count)))
        os.close(write)

    def __iter__(self) -> Iterator[int]:
        while data := os.read(self._read, _NUMBER):
            yield int.from_bytes(data, "little")

    def close(self) -> None:
        """Let go of this process's end; what nobody has taken is dropped."""
        while os.read(self._read, 1 << 16):
            pass
        os.close(self._read)


class _Child(Generic[T]):
    """A forked process that takes pieces until there are none, and leaves the answers in a file."""

    def __init__(self, queue: _Queue, work: Callable[[int], T]) -> None:
        self.file = tempfile.TemporaryFile()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(queue, work)

    def _run(self, queue: _Queue, work: Callable[[int], T]) -> None:
        status = 1
        try:
            for i in queue:
                pickle.dump((i, work(i)), self.file)
                self.file.flush()
            status = 0
        finally:
            os._exit(status)  # no cleanup: handlers and buffers belong to the parent

    def join(self) -> dict[int, T]:
        """The answers by number, once the child has ended; those it had given before it failed, if it did."""
        os.waitpid(self.pid, 0)
        done: dict[int, T] = {}
        with self.file:
            self.file.seek(0)
            while True:
                try:
                    number, answer = pickle.load(self.file)
                except (EOFError, pickle.UnpicklingError):
                    return done
                done[number] = answer
