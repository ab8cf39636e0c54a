"""How much a function does, as a number that no machine and no load changes: lines of Python that it runs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def steps_taken(work: Callable[[], object]) -> int:
    """How many lines run while `work` does, each turn of a loop anew. What is done inside of one call of C counts as
    one."""
    steps = 0

    def count(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal steps
        del frame, argument
        steps += event == "line"
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        work()
    finally:
        sys.settrace(before)
    return steps
