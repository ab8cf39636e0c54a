"""Runs in the background: threads of this process that are there for them, as many as processors."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from fuseline.runtime.processors import allowed_processors

if TYPE_CHECKING:
    from concurrent.futures import Future, ThreadPoolExecutor

T = TypeVar("T")

_executor: ThreadPoolExecutor | None = None
_making = threading.Lock()


def in_background(work: Callable[..., T], *arguments: Any) -> Future[T]:
    """`work(*arguments)` in one of the threads; what is asked for beyond their number waits its turn."""
    return _shared().submit(work, *arguments)


def _shared() -> ThreadPoolExecutor:
    global _executor
    with _making:
        if _executor is None:
            from concurrent.futures import ThreadPoolExecutor  # 3 ms of import that most programs need not pay

            _executor = ThreadPoolExecutor(len(allowed_processors()), thread_name_prefix="fuseline-run")
        return _executor


def _forget() -> None:
    """A forked child has none of its parent's threads."""
    global _executor, _making
    _executor, _making = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
