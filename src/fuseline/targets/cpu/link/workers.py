"""Work shared among forked processes: llvmlite and Python hold one lock, so that threads would gain nothing (two
processes 1.9 times).

Each process takes the next piece when it has done one, so that they end together however uneven the pieces are.
"""

from __future__ import annotations

import os
import pickle
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Generic, TypeVar

from fuseline import timeline

T = TypeVar("T")

_NUMBER = 4


def shared(work: Callable[[int], T], count: int, processes: int) -> list[T]:
    """`[work(i) for i in range(count)]` by this process and forks of it. Answers travel pickled; what `work` changes in
    a fork stays there.

    A piece that fails in a fork is done again here, so that an error is raised as it would be without forks. Where the
    system has no process to give, there are fewer.
    """
    if processes < 2 or count < 2 or not hasattr(os, "fork"):
        return [work(i) for i in range(count)]
    queue = _Queue(count)
    children = list(_children(queue, work, min(processes, count) - 1))
    try:
        done = {i: work(i) for i in queue}
    finally:
        queue.close()  # the children find it empty soon
        answers = [child.join() for child in children]
    for answer in answers:
        done.update(answer)
    return [done[i] if i in done else work(i) for i in range(count)]


class _Queue:
    """The numbers of the pieces, in a file that all processes read from one after the other.

    Forks share its offset, and a read takes a number and moves it in one step (POSIX, "Thread Interactions with Regular
    File Operations"). A pipe would not do for any number of pieces: one of a user who has many holds 4 KiB, and writing
    more waits for ever.
    """

    def __init__(self, count: int) -> None:
        with tempfile.TemporaryFile() as file:
            file.write(b"".join(i.to_bytes(_NUMBER, "little") for i in range(count)))
            file.seek(0)
            self._number = os.dup(file.fileno())

    def __iter__(self) -> Iterator[int]:
        while data := os.read(self._number, _NUMBER):
            yield int.from_bytes(data, "little")

    def close(self) -> None:
        """Let go of the file; what nobody has taken is dropped."""
        os.lseek(self._number, 0, os.SEEK_END)
        os.close(self._number)


def _children(queue: _Queue, work: Callable[[int], T], count: int) -> Iterator[_Child[T]]:
    """Up to `count` forks."""
    with suppress(OSError):
        for _ in range(count):
            yield _Child(queue, work)


class _Child(Generic[T]):
    """A forked process that takes pieces until there are none, and leaves the answers in a file."""

    def __init__(self, queue: _Queue, work: Callable[[int], T]) -> None:
        self.file = tempfile.TemporaryFile()
        try:
            self.pid = os.fork()
        except OSError:
            self.file.close()
            raise
        if self.pid == 0:
            self._run(queue, work)

    def _run(self, queue: _Queue, work: Callable[[int], T]) -> None:
        status = 1
        try:
            timeline.forked()
            for i in queue:
                pickle.dump((i, work(i), timeline.taken()), self.file)
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
                    number, answer, spans = pickle.load(self.file)
                except (EOFError, pickle.UnpicklingError):
                    return done
                done[number] = answer
                timeline.add(spans)
