"""The levels of deduplication, each of which contains the one before: what the passes of this folder are asked for."""

from __future__ import annotations

from fuseline.errors import FuselineError

LEVELS = ("none", "exact", "constants", "shapes")
"""Nothing is shared; executables with equal code are one; so are those that differ in scalar constants, which become
operands; so are those that differ in extents, too."""


def checked(level: str, pass_name: str) -> str:
    """`level`. Raises FuselineError (E0304) naming the pass where it is none of `LEVELS`."""
    if level not in LEVELS:
        raise FuselineError("E0304", f"level is {level!r}", node=pass_name, hint=f"use one of {', '.join(LEVELS)}")
    return level


def contains(level: str, wanted: str) -> bool:
    """Whether what `wanted` shares is shared at `level`."""
    return LEVELS.index(level) >= LEVELS.index(wanted)
