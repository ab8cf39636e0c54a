"""How many elements a mean is over: a number, or a scalar computed from symbolic sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, is_float, mlir_element
from fuseline.frontends.onnx.emission import elementwise
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, product


def count_divided(node: OnnxNode, total: Tensor, sizes: Sequence[Dim]) -> Tensor:
    """`total` divided by the number of elements in `sizes`."""
    count = product(sizes)
    dtype = total.dtype
    if isinstance(count, int):
        divisor = count if is_float(dtype) else max(count, 1)
        return elementwise(
            node, [total], dtype, lambda b, p: scalars.div(b, dtype, p, b.constant(divisor, mlir_element(dtype)))
        )
    integer = node.program.integer(count, mlir_element(INDEX_DTYPE), node.emit)
    return elementwise(
        node, [total], dtype, lambda b, p: scalars.div(b, dtype, p, scalars.convert(b, integer, INDEX_DTYPE, dtype))
    )


def inverse_count(node: OnnxNode, sizes: Sequence[Dim], dtype: np.dtype[Any]) -> Callable[[Body], SSAValue]:
    """What gives 1 / the number of elements in `sizes` inside a body, in the float `dtype`; infinity for none."""
    count, element = product(sizes), mlir_element(dtype)
    if isinstance(count, int):
        number = 1.0 / count if count else inf
        return lambda b: b.constant(number, element)
    integer = node.program.integer(count, mlir_element(INDEX_DTYPE), node.emit)
    return lambda b: b.op(arith.DivfOp, b.constant(1.0, element), scalars.convert(b, integer, INDEX_DTYPE, dtype))
