"""Slices with positive steps."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, i64

from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.build import tensor_type
from fuseline.ir.dim import Dim


def slice_of(node: OnnxNode, x: Tensor, offsets: Sequence[Dim], sizes: Sequence[Dim], strides: Sequence[int]) -> Tensor:
    """`sizes` elements per axis of `x`, from `offsets` on, `strides` apart."""
    if tuple(sizes) == x.dims and all(offset == 0 for offset in offsets):
        return x
    op = tensor.ExtractSliceOp.build(
        operands=[
            node.ssa(x),
            *([node.index(size) for size in dims if not isinstance(size, int)] for dims in (offsets, sizes)),
            [],
        ],
        result_types=[tensor_type(mlir_element(x.dtype), sizes)],
        properties={
            "static_offsets": DenseArrayBase.from_list(
                i64, [o if isinstance(o, int) else DYNAMIC_INDEX for o in offsets]
            ),
            "static_sizes": DenseArrayBase.from_list(i64, [s if isinstance(s, int) else DYNAMIC_INDEX for s in sizes]),
            "static_strides": DenseArrayBase.from_list(i64, list(strides)),
        },
    )
    return result(node.emit.add(op).result, sizes, x.dtype)


def axes_and_steps(node: OnnxNode, count: int) -> tuple[list[int], list[int]]:
    """The axes that a `Slice` of so many positions cuts, and how far apart elements are along each. Raises
    NoNativeLowering where they are computed."""
    axes = node.ints_or_input("axes", 3) or list(range(count))
    given = node.get(4)
    return axes, [1] * count if given is None else [int(step) for step in given.numbers().reshape(-1)]
