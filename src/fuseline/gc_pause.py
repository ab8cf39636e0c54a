"""Python's garbage collector around a compile."""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def gc_paused() -> Generator[None]:
    """The garbage collector off: the IR is one large live graph of cycles, and walking it again and again took a tenth
    of a compile; of importing the compiler, which is classes that stay, it took a sixth."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            _freeze_heap()
            gc.enable()


def _freeze_heap() -> None:
    """Move what the compile has made to the oldest generation: the next small collection would walk all of it (0.2 s
    for 7,000 ops)."""
    if gc.get_freeze_count() == 0:  # nobody has frozen anything that would thaw with it
        gc.freeze()
        gc.unfreeze()
