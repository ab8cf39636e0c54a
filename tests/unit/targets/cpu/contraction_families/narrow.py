"""Programs over narrow integers, added up in 32 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import IntegerType, i32

from tests.graphs.program import Program, Shape
from tests.kernels import Array

DTYPES = {8: np.int8, 16: np.int16}


def narrow(*shapes: Shape, bits: Sequence[int], constants: Sequence[int] = ()) -> Program:
    """A program whose arguments are integers of `bits[i]` bits; what is made is i32."""
    return Program(*shapes, constants=constants, element=i32, arguments=[IntegerType(width) for width in bits])


def integers(shape: Sequence[int], bits: int, seed: int) -> Array:
    """Integers of `bits` bits, the lowest and the highest often among them."""
    info = np.iinfo(DTYPES[bits])
    rng = np.random.default_rng(seed)
    found = rng.integers(info.min, info.max, shape, dtype=DTYPES[bits], endpoint=True)
    found[rng.random(shape) < 0.2] = info.min
    found[rng.random(shape) < 0.1] = info.max
    return found


def dot(a: Array, b: Array) -> Array:
    """The product in 64 bits, wrapped to 32."""
    return (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)
