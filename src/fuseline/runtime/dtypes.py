"""Element types by name: NumPy's own, and `bfloat16` and the 8-bit floats where ml_dtypes is installed."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fuseline.errors import FuselineError


@cache
def dtype_named(name: str) -> np.dtype[Any]:
    """The NumPy dtype called `name`; raises FuselineError (E0503) for one that only ml_dtypes has, where that is not
    installed, and E0401 for a name nobody knows.

    >>> dtype_named("float32").itemsize
    4
    """
    try:
        return np.dtype(name)
    except TypeError:
        return _extended(name)


def _extended(name: str) -> np.dtype[Any]:
    try:
        import ml_dtypes
    except ImportError as error:
        raise FuselineError(
            "E0503", f"element type {name} needs the ml_dtypes package", hint="pip install ml_dtypes"
        ) from error
    extended = getattr(ml_dtypes, name, None)
    if extended is None:
        raise FuselineError("E0401", f"unknown element type {name!r}", hint="compile the model again")
    return np.dtype(extended)
