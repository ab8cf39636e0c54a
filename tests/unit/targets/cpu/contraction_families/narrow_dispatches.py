"""Dispatches over narrow integers, added up in 32 bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.ir.build import Body

from .dispatches import Array, Dispatch, Shape

DTYPES = {8: np.int8, 16: np.int16}


class NarrowDispatch(Dispatch):
    """An entry function whose arguments are integers of `bits[i]` bits; what is made is i32."""

    def __init__(self, *shapes: Shape, bits: Sequence[int], constants: Sequence[int] = ()) -> None:
        super().__init__(*shapes, constants=constants, element=i32, arguments=[IntegerType(width) for width in bits])

    def multiply_add(
        self, a: SSAValue, b: SSAValue, init: SSAValue, maps: Sequence[AffineMap], iterators: str
    ) -> SSAValue:
        """`init + sum(a * b)` of what is extended with its sign."""

        def body(b_: Body) -> list[SSAValue]:
            wide = [b_.op(arith.ExtSIOp, side, i32) for side in b_.args[:2]]
            return [b_.op(arith.AddiOp, b_.args[2], b_.op(arith.MuliOp, *wide))]

        kinds = ["parallel" if letter == "p" else "reduction" for letter in iterators]
        return self.emit.generic([a, b], [init], maps, kinds, body).results[0]


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
