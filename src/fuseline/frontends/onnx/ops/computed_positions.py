"""Scatters to places that are computed: a reduction over the updates, of which every element of the result takes those
that name it.

    total[i] = sum over e of (place[e] == i ? update[e] : 0)          or, where updates replace what is there,
    out[i]   = the last update[e] of those with place[e] == i

Written so, any target can run it; the CPU makes it in one walk over the updates (`analysis/walks.py`). Places outside
are moved to the nearest end, as by Gather: a program must not write outside of its tensors whatever it is fed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects import arith, tensor
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, accumulator, highest, lowest, mlir_element
from fuseline.frontends.onnx.emission import cast, elementwise, mapped, reduce
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.windows import pad
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, view
from fuseline.ir.build import Body, element_of
from fuseline.ir.dim import Dim

Scalar = Callable[[Body, np.dtype[Any], SSAValue, SSAValue], SSAValue]


def _added(b: Body, dtype: np.dtype[Any], x: SSAValue, y: SSAValue) -> SSAValue:
    """The sum; of booleans whether either is true, where a sum of one bit would wrap around."""
    return b.op(arith.OrIOp, x, y) if dtype.kind == "b" else s.add(b, dtype, x, y)


REDUCTIONS: dict[str, tuple[Callable[[np.dtype[Any]], float | int], Scalar]] = {
    "add": (lambda dtype: 0, _added),
    "mul": (lambda dtype: 1, s.mul),
    "max": (lowest, s.maximum),
    "min": (highest, s.minimum),
}
"""What a reduction starts from, and how it combines."""


KEPT_AS_THEY_ARE = {"b": (1,), "f": (2, 4, 8), "V": (2,), "i": (1, 2, 4, 8), "u": (1, 2, 4, 8)}
"""Kinds and bytes of elements that a running result keeps as the tensor has them; of others the numbers of the updates
are scattered."""


@dataclass(frozen=True)
class Positions:
    """Where updates go along `axis` of a result of `size` elements there: to `position(b, *elements)`, an index made of
    the elements of `operands`. These are as large as the result but along `axis`, where there are as many as there are
    updates."""

    axis: int
    size: Dim
    operands: Sequence[Tensor]
    position: Callable[..., SSAValue]

    def combined(self, node: OnnxNode, updates: Tensor | None, reduction: str) -> Tensor:
        """The updates (None: the number of each along `axis`) that each element of the result gets, combined."""
        dtype = INDEX_DTYPE if updates is None else accumulator(updates.dtype)
        start, combine = REDUCTIONS[reduction]
        last = self.operands[0].rank

        def body(b: Body, *elements: SSAValue) -> SSAValue:
            hit = self._hit(b, elements)
            if updates is None:
                value = b.op(arith.IndexCastOp, s.loop_index(b, last), mlir_element(INDEX_DTYPE))
            else:
                value = s.convert(b, elements[-2], updates.dtype, dtype)
            return combine(
                b, dtype, elements[-1], s.select(b, hit, value, b.constant(start(dtype), mlir_element(dtype)))
            )

        given = [*self.operands, *([updates] if updates is not None else [])]
        return reduce(node, self._spread(given), [last], start(dtype), body, dtype=dtype)

    def replacing(self, node: OnnxNode, data: Tensor, updates: Tensor) -> Tensor:
        """`data` with the last update of each place there."""
        last = self.operands[0].rank

        def body(b: Body, *elements: SSAValue) -> SSAValue:
            return s.select(b, self._hit(b, elements), elements[-2], elements[-1])

        return reduce(node, self._spread([*self.operands, updates]), [last], data, body, dtype=data.dtype)

    def _hit(self, b: Body, elements: Sequence[SSAValue]) -> SSAValue:
        """Whether an update goes to the element of the result that the loops are at."""
        return b.op(arith.CmpiOp, s.loop_index(b, self.axis), self.position(b, *elements[: len(self.operands)]), "eq")

    def _spread(self, given: Sequence[Tensor]) -> list[Tensor]:
        """The operands in the space of the reduction, whose last loop runs over the updates."""
        last, axis = given[0].rank, self.axis
        dims = (*given[0].dims[:axis], self.size, *given[0].dims[axis + 1 :], given[0].dims[axis])
        return [view(t, dims, [last if i == axis else i for i in range(last)]) for t in given]


def scattered_at(node: OnnxNode, data: Tensor, positions: Positions, updates: Tensor, reduction: str) -> Tensor:
    """`data` with the updates at their places; of several at one place the last one counts where they are not
    combined."""
    if (
        reduction == "none"
        and data.dtype.kind in KEPT_AS_THEY_ARE
        and data.dtype.itemsize in KEPT_AS_THEY_ARE[data.dtype.kind]
    ):
        return positions.replacing(node, data, updates)
    if reduction == "none":
        return _latest(node, data, positions.combined(node, None, "max"), updates, positions.axis)
    total = positions.combined(node, updates, reduction)
    combine = REDUCTIONS[reduction][1]
    wide = cast(node, data, total.dtype)
    return cast(
        node, elementwise(node, [wide, total], total.dtype, lambda b, x, y: combine(b, total.dtype, x, y)), data.dtype
    )


def _latest(node: OnnxNode, data: Tensor, numbers: Tensor, updates: Tensor, axis: int) -> Tensor:
    value = node.ssa(updates)

    def body(b: Body, old: SSAValue, number: SSAValue) -> SSAValue:
        zero = b.constant(0, mlir_element(INDEX_DTYPE))
        row = s.as_index(b, b.op(arith.MaxSIOp, number, zero))
        position = [row if i == axis else s.loop_index(b, i) for i in range(data.rank)]
        new = b.op(tensor.ExtractOp, value, position, element_of(value))
        return s.select(b, s.compare(b, INDEX_DTYPE, "ge", number, zero), new, old)

    loops = list(range(data.rank))
    return mapped(node, [(data, loops), (numbers, loops)], data.dims, data.dtype, body)


def filled_up(node: OnnxNode, t: Tensor, dims: Sequence[Dim], axis: int, value: int) -> Tensor:
    """`t` with `value` behind its elements up to `dims` in all axes but `axis`. Raises FuselineError: E0107 where `t`
    is larger than `dims`."""
    missing = [
        0 if i == axis or want == size else _difference(node, want, size)
        for i, (want, size) in enumerate(zip(dims, t.dims, strict=True))
    ]
    return pad(node, t, [0] * t.rank, missing, value)


def _difference(node: OnnxNode, want: Dim, size: Dim) -> int:
    if not isinstance(want, int) or not isinstance(size, int):
        raise NoNativeLowering("symbolic-scatter", f"{size} places in {want}")
    if want < size:
        raise FuselineError("E0107", f"{size} places in {want}", node=node.label)
    return want - size
