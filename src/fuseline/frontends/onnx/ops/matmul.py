"""Matrix products."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx.broadcasting import equal_dim, loops_of
from fuseline.frontends.onnx.dtypes import accumulator, mlir_element
from fuseline.frontends.onnx.emission import cast, contract, elementwise
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.spreading import spread
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim


@onnx_op("MatMul")
def matmul(node: OnnxNode) -> Tensor:
    """`a @ b` as NumPy does: batch dimensions broadcast, vectors lose their dimension."""
    return matmul_of(node, node[0], node[1])


def matmul_of(node: OnnxNode, a: Tensor, b: Tensor) -> Tensor:
    """`a @ b` for any ranks from 1 on."""
    if a.rank == 0 or b.rank == 0:
        raise NoNativeLowering("unsupported-rank", "a scalar operand")
    batch = node.broadcast(a.dims[:-2], b.dims[:-2])
    a, b = (spread(node, t, (*batch, *t.dims[-2:])) if t.rank > 2 else t for t in (a, b))
    loops: list[Dim] = [*batch]
    rows = len(loops) if a.rank > 1 else None
    if rows is not None:
        loops.append(a.dims[-2])
    columns = len(loops) if b.rank > 1 else None
    if columns is not None:
        loops.append(b.dims[-1])
    inner = len(loops)
    loops.append(equal_dim(a.dims[-1], b.dims[-2] if b.rank > 1 else b.dims[0]))
    left = [*loops_of(a.dims[:-2], batch), *([rows] if rows is not None else []), inner]
    right = [*loops_of(b.dims[:-2], batch), inner, *([columns] if columns is not None else [])]
    out = [*range(len(batch)), *(loop for loop in (rows, columns) if loop is not None)]
    return contract(node, (a, left), (b, right), loops, out, a.dtype)


@onnx_op("Gemm")
def gemm(node: OnnxNode) -> Tensor:
    """`alpha * a' @ b' + beta * c`; a' and b' may be transposed."""
    a, b, c = node[0], node[1], node.get(2)
    a_axes = (2, 0) if node.integer("transA") else (0, 2)
    b_axes = (1, 2) if node.integer("transB") else (2, 1)
    rows, left = (a.dims[1], a.dims[0]) if node.integer("transA") else a.dims
    columns, right = b.dims if node.integer("transB") else (b.dims[1], b.dims[0])
    wide = accumulator(a.dtype)
    product = contract(node, (a, a_axes), (b, b_axes), [rows, columns, equal_dim(left, right)], [0, 1], wide)
    alpha, beta = node.number("alpha", 1.0), node.number("beta", 1.0)
    if a.dtype.kind in "iu" and (alpha, beta) != (1.0, 1.0):
        raise NoNativeLowering("unsupported-dtype", "scaled integer product")
    element = mlir_element(wide)
    scaled = (
        product
        if alpha == 1.0
        else elementwise(node, [product], wide, lambda s, x: s.op(arith.MulfOp, x, s.constant(alpha, element)))
    )
    if c is None or beta == 0.0:
        return cast(node, scaled, a.dtype)

    def add(s: Body, x: SSAValue, y: SSAValue) -> SSAValue:
        if a.dtype.kind in "iu":
            return s.op(arith.AddiOp, x, y)
        return s.op(arith.AddfOp, x, y if beta == 1.0 else s.op(arith.MulfOp, y, s.constant(beta, element)))

    return cast(node, elementwise(node, [scaled, cast(node, c, wide)], wide, add, product.dims), a.dtype)
