"""A client of a cluster that is not there: workers come and go as a test says, and so do answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from distributed import CancelledError

from fuseline.cluster.worker_facts import worker_facts


class FakeFuture:
    """Work that ends when a test calls `finish`."""

    def __init__(self, worker: str, call: Callable[[], Any], key: str) -> None:
        self.worker, self.call, self.key = worker, call, key
        self.status, self.was_cancelled = "pending", False
        self._callbacks: list[Callable[[Any], None]] = []
        self._problem: Exception | None = None

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._callbacks.append(callback)
        if self.status != "pending":
            callback(self)

    def finish(self, problem: Exception | None = None) -> None:
        self._problem, self.status = problem, "error" if problem else "finished"
        for callback in self._callbacks:
            callback(self)

    def lose(self) -> None:
        """It is finished, and its result went with the worker."""
        self.status = "lost"
        for callback in self._callbacks:
            callback(self)

    def result(self, timeout: float) -> Any:
        if self.status == "lost":
            raise TimeoutError(timeout)
        if self._problem is not None:
            raise self._problem
        return self.call()

    def cancel(self) -> None:
        self.was_cancelled = True
        if self.status == "pending":
            self._problem = CancelledError(self.key)
            self.finish(self._problem)


class FakeScheduler:
    address = "tcp://nowhere:1"

    async def ncores(self) -> None: ...


class FakeClient:
    """What `Team` and `Jobs` use of a client. `answers`: what a worker says of itself, by address. `at_once`: work is
    done where it is submitted."""

    def __init__(self, *addresses: str, at_once: bool = False) -> None:
        self.at_once = at_once
        self.scheduler, self.status = FakeScheduler(), "running"
        self.answers: dict[str, Any] = {address: worker_facts() for address in addresses}
        self.futures: list[FakeFuture] = []
        self.problem: Exception | None = None

    def sync(self, function: object, **_: Any) -> dict[str, int]:
        if self.problem is not None:
            raise self.problem
        return dict.fromkeys(self.answers, 1)

    def run(self, function: Callable[..., Any], *arguments: Any, workers: list[str], on_error: str) -> dict[str, Any]:
        assert on_error == "return"
        if function is not worker_facts:
            return {address: _answer(function, arguments) for address in workers}
        return {address: self.answers[address] for address in workers if address in self.answers}

    def submit(self, function: Callable[..., Any], *arguments: Any, key: str, workers: list[str], **_: Any) -> Any:
        (worker,) = workers
        future = FakeFuture(worker, lambda: function(*arguments), key)
        self.futures.append(future)
        if self.at_once:
            answer = _answer(function, arguments)
            future.call = lambda: answer
            future.finish(answer if isinstance(answer, Exception) else None)
        return future


def _answer(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except Exception as problem:  # noqa: BLE001 - as Dask's on_error="return"
        return problem
