"""Borders that repeat the tensor itself: which element lies where a coordinate leaves a dimension.

    edge       a a [a b c d] d d      the nearest element
    reflect    c b [a b c d] c b      mirrored at the first and the last element
    wrap       c d [a b c d] a b      taken around

Each is said of coordinates that one turn brings back: `size - 1` beyond either end for reflect, `size` for wrap.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import numpy as np

BorderMode: TypeAlias = Literal["edge", "reflect", "wrap"]
"""How a border repeats its tensor; the names are ONNX's (NumPy's `pad` has the same)."""

BORDER_MODES: tuple[BorderMode, ...] = ("edge", "reflect", "wrap")


def folded(at: Any, size: int, mode: BorderMode) -> Any:
    """The element of `size` that each of the coordinates `at` repeats; itself inside.

    >>> folded(np.arange(-2, 6), 4, "reflect").tolist(), int(folded(-1, 4, "wrap"))
    ([2, 1, 0, 1, 2, 3, 2, 1], 3)
    """
    last = size - 1
    if mode == "edge":
        return np.minimum(np.maximum(at, 0), last)
    if mode == "reflect":
        return last - abs(last - abs(at))
    return np.where(np.less(at, 0), at + size, np.where(np.greater(at, last), at - size, at))[()]


def reach(size: int, mode: BorderMode) -> int | None:
    """How far beyond either end one turn reaches; None: any distance."""
    return {"edge": None, "reflect": size - 1, "wrap": size}[mode]
