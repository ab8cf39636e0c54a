"""The transforms of minimal filtering as products with small constant matrices, along one dimension after the other.

The matrices follow from the points at which polynomials are evaluated: 0, 1, -1, 2, -2, 1/2, -1/2 and infinity
(Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015; the sign of the first point as in IREE).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import AnyFloat, DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.build import PARALLEL, REDUCTION, Body, Emitter, dims_map, element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.build import create_op
from fuseline.ir.fast.create import create_constant, create_pad
from fuseline.ir.linalg_ext import WinogradFilterOp, WinogradInputOp, WinogradOp, WinogradOutputOp

TILE, KERNEL = 6, 3
"""Outputs of a tile and elements of a kernel along a dimension: all that IREE has matrices for."""

_POINTS = (0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5)
_WIDE = TILE + KERNEL - 1

Matrix = NDArray[np.float64]


def matrices() -> tuple[Matrix, Matrix, Matrix]:
    """Those of the image (8x8), of the filter (8x3) and of the result (6x8).

    >>> image, kernel, result = matrices()
    >>> x, w = np.arange(8.0) ** 2, np.array([1.0, -2.0, 5.0])
    >>> bool(np.allclose(result @ ((image @ x) * (kernel @ w)), np.correlate(x, w, "valid")))
    True
    """
    image, kernel = np.zeros((_WIDE, _WIDE)), np.zeros((_WIDE, KERNEL))
    result = np.zeros((TILE, _WIDE))
    for row, point in enumerate(_POINTS):
        others = [other for other in _POINTS if other != point]
        sign = -1.0 if row == 0 else 1.0
        image[row, : _WIDE - 1] = sign * np.poly(others)[::-1]
        kernel[row] = sign * point ** np.arange(KERNEL) / np.prod([point - other for other in others])
        result[:, row] = point ** np.arange(TILE)
    image[-1] = np.poly(_POINTS)[::-1]
    kernel[-1, -1] = result[-1, -1] = 1.0
    return image, kernel, result


def input_transform(op: WinogradInputOp) -> list[SSAValue]:
    """`[tile, tile, batch, rows, columns, channels]`. Raises FuselineError: E0306 for what `_checked` refuses."""
    emit = _checked(op)
    (first, second), (_, _, batch, rows, columns, channels) = op.space, shape_of(op.outputs[0])
    channel = 3 if first == 1 else 1
    image = _filled_up(emit, op.inputs[0], {first: rows * TILE + KERNEL - 1, second: columns * TILE + KERNEL - 1})
    matrix = matrices()[0]
    # [tile, batch, rows, columns, in a row of a tile, channels]: loops 0 to 5, the sum over 6. Rows of tiles overlap:
    # what two have is made twice, so that a tile is two products over one grid.
    place = {0: _at(1), first: _at(2) * TILE + _at(6), second: _at(3) * TILE + _at(4), channel: _at(5)}
    down = _product(
        emit, image, [place[dim] for dim in range(4)], matrix, (0, 6), [_WIDE, batch, rows, columns, _WIDE, channels]
    )
    # [tile, tile, batch, rows, columns, channels]: loops 0 to 5, the sum over 6
    across = [_at(0), _at(2), _at(3), _at(4), _at(6), _at(5)]
    return [_product(emit, down, across, matrix, (1, 6), [_WIDE, _WIDE, batch, rows, columns, channels])]


def filter_transform(op: WinogradFilterOp) -> list[SSAValue]:
    """`[tile, tile, channels, filters]`. Raises FuselineError: E0306 for what `_checked` refuses."""
    emit, matrix = _checked(op), matrices()[1]
    _, _, channels, filters = shape_of(op.outputs[0])
    leading = op.space == (0, 1)
    # [tile, kernel, channels, filters]: loops 0 to 3, the sum over 4
    source = [_at(4), _at(1), _at(2), _at(3)] if leading else [_at(3), _at(2), _at(4), _at(1)]
    down = _product(emit, op.inputs[0], source, matrix, (0, 4), [_WIDE, KERNEL, channels, filters])
    across = [_at(0), _at(4), _at(2), _at(3)]
    return [_product(emit, down, across, matrix, (1, 4), [_WIDE, _WIDE, channels, filters])]


def output_transform(op: WinogradOutputOp) -> list[SSAValue]:
    """The image, tiles side by side. Raises FuselineError: E0306 for what `_checked` refuses."""
    emit, matrix = _checked(op), matrices()[2]
    _, _, batch, rows, columns, channels = shape_of(op.inputs[0])
    # [row, tile, batch, rows, columns, channels]: loops 0 to 5, the sum over 6
    source = [_at(6), _at(1), _at(2), _at(3), _at(4), _at(5)]
    down = _product(emit, op.inputs[0], source, matrix, (0, 6), [TILE, _WIDE, batch, rows, columns, channels])
    last = op.space == (1, 2)
    sizes = [batch, rows, TILE, columns, TILE, channels] if last else [batch, channels, rows, TILE, columns, TILE]
    loop = dict(zip(("n", "y", "a", "x", "b", "c") if last else ("n", "c", "y", "a", "x", "b"), range(6), strict=True))
    across = [_at(loop["a"]), _at(6), _at(loop["n"]), _at(loop["y"]), _at(loop["x"]), _at(loop["c"])]
    tiles = _product(emit, down, across, matrix, (loop["b"], 6), sizes)
    groups = [[0], [1, 2], [3, 4], [5]] if last else [[0], [1], [2, 3], [4, 5]]
    properties = {"reassociation": attributes.reassociation(groups)}
    return [emit.add(create_op(tensor.CollapseShapeOp, [tiles], [op.res[0].type], properties)).result]


def _checked(op: WinogradOp) -> Emitter:
    """Where the transform is written. Raises FuselineError: E0306 for other tiles and kernels than there are matrices
    for, sizes that only the run tells or that do not fit, and elements that are no floats."""
    if (op.number("output_tile_size"), op.number("kernel_size")) != (TILE, KERNEL):
        raise unsupported(op, f"tiles other than of {TILE} for kernels of {KERNEL}")
    if min(*shape_of(op.inputs[0]), *shape_of(op.outputs[0])) < 0:
        raise unsupported(op, "sizes that only the run tells")
    if not isinstance(element_of(op.inputs[0]), AnyFloat):
        raise unsupported(op, "elements that are no floats")
    if _expected(op) != shape_of(op.outputs[0]):
        raise unsupported(op, f"a result of {list(shape_of(op.outputs[0]))}, expected {list(_expected(op))}")
    return Emitter.before(op)


def _expected(op: WinogradOp) -> tuple[int, ...]:
    """The sizes of the result."""
    sizes, space = shape_of(op.inputs[0]), op.space
    rest = [size for dim, size in enumerate(sizes) if dim not in space]
    if isinstance(op, WinogradFilterOp):
        return (_WIDE, _WIDE, *(rest if space == (0, 1) else rest[::-1]))
    if isinstance(op, WinogradInputOp):
        tiles = [-(-(sizes[dim] - KERNEL + 1) // TILE) for dim in space]
        return (_WIDE, _WIDE, rest[0], *tiles, rest[1])
    _, _, batch, rows, columns, channels = sizes
    image = [rows * TILE, columns * TILE]
    return (batch, *image, channels) if space == (1, 2) else (batch, channels, *image)


def _at(loop: int) -> AffineExpr:
    return AffineExpr.dimension(loop)


def _product(
    emit: Emitter,
    value: SSAValue,
    source: Sequence[AffineExpr],
    matrix: Matrix,
    read: tuple[int, int],
    sizes: Sequence[int],
) -> SSAValue:
    """Sums over the last loop of `value` at `source` times the matrix at loops `read`, of `sizes`."""
    element, rank = element_of(value), len(sizes) + 1
    type_ = attributes.tensor_type(element, matrix.shape)
    numbers = DenseIntOrFPElementsAttr.from_list(cast(Any, TensorType(element, matrix.shape)), matrix.ravel().tolist())
    constant = emit.add(create_constant(numbers, type_)).result
    init = emit.fill(0.0, emit.empty(element, sizes))
    maps = [AffineMap(rank, 0, tuple(source)), dims_map(rank, read), dims_map(rank, list(range(rank - 1)))]

    def body(b: Body) -> list[SSAValue]:
        return [b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, b.args[0], b.args[1]))]

    return emit.generic([value, constant], [init], maps, [PARALLEL] * (rank - 1) + [REDUCTION], body).results[0]


def _filled_up(emit: Emitter, value: SSAValue, wanted: dict[int, int]) -> SSAValue:
    """The image with zeros behind it up to the sizes wanted."""
    shape = shape_of(value)
    after = [wanted.get(dim, size) - size for dim, size in enumerate(shape)]
    if not any(after):
        return value
    element = element_of(value)
    sizes = tuple(size + more for size, more in zip(shape, after, strict=True))
    zero = emit.scalar(0.0, element)
    op = create_pad(value, [0] * len(shape), after, zero, attributes.tensor_type(element, sizes), emit.location)
    return emit.add(op).result
