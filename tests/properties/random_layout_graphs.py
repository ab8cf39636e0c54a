"""Small random programs of the ops that layout passes move things through, with their inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, func, linalg, math, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, DenseArrayBase, IntegerAttr, ModuleOp, TensorType, f32, i64
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.ir.build import PARALLEL, REDUCTION, Emitter, dims_map, identity_map, shape_of
from fuseline.ir.context import CompilerContext
from fuseline.passes.layout.rewriting.pads import pad

UNKNOWN = 3
"""What a symbolic size is at run time; it could be any other number."""

Step: TypeAlias = tuple[int, int, int]
"""Which op, and two numbers that choose its operands and attributes."""


class GraphBuilder:
    """Interprets steps as ops on the values made so far; a step that fits no value is skipped. Every op gets a name of
    its own."""

    def __init__(self, ctx: CompilerContext, shapes: Sequence[Sequence[int]], seed: int) -> None:
        self.ctx, self.rng, self.count = ctx, np.random.default_rng(seed), 0
        self.block = Block(arg_types=[TensorType(f32, list(shape)) for shape in shapes])
        self.values: list[SSAValue] = list(self.block.args)

    def run(self, steps: Sequence[Step], results: int = 2) -> ModuleOp:
        """The module with one function that returns the last `results` values."""
        for code, first, second in steps:
            value = self.values[first % len(self.values)]
            new = _STEPS[code % len(_STEPS)](self, value, second)
            if new is not None and int(np.prod([size if size >= 0 else UNKNOWN for size in shape_of(new)])) <= 4096:
                self.values.append(new)
        kept = self.values[-results:]
        self.block.add_op(func.ReturnOp(*kept))
        types = ([argument.type for argument in self.block.args], [value.type for value in kept])
        return ModuleOp([func.FuncOp("main", types, Region(self.block))])

    def emitter(self) -> Emitter:
        """An emitter at the end, for an op with a name of its own."""
        self.count += 1
        return Emitter.at_end(self.block, [f"node_{self.count}"])

    def weight(self, at: Emitter, *shape: int) -> SSAValue:
        """A random constant."""
        return at.constant(self.rng.standard_normal(shape).astype(np.float32), self.ctx, "w")

    def inputs(self) -> list[NDArray[Any]]:
        """Random arguments."""
        shapes = [[size if size >= 0 else UNKNOWN for size in shape_of(argument)] for argument in self.block.args]
        return [self.rng.standard_normal(shape).astype(np.float32) for shape in shapes]

    def partners(self, x: SSAValue) -> list[SSAValue]:
        """Values of the sizes of `x`: unknown sizes are known to be equal only in `x` itself."""
        return [x] if min(shape_of(x), default=1) < 0 else [value for value in self.values if value.type == x.type]


def _transpose(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    rank = len(shape_of(x))
    if rank < 2:
        return None
    at, permutation = g.emitter(), [int(axis) for axis in np.random.default_rng(n).permutation(rank)]
    init = at.empty_from(x, permutation)
    return at.add(linalg.ops.TransposeOp(x, init, DenseArrayBase.from_list(i64, permutation))).res[0]


def _unary(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    at = g.emitter()
    kind: Callable[..., Any] = (math.TanhOp, arith.NegfOp)[n % 2]
    return at.elementwise([x], at.empty_like(x), lambda b: b.op(kind, b.args[0]))


def _add(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    at, partners = g.emitter(), g.partners(x)
    other = partners[n % len(partners)]
    return at.elementwise([x, other], at.empty_like(x), lambda b: b.op(arith.AddfOp, b.args[0], b.args[1]))


def _scale(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    """By a constant along one dimension."""
    shape = shape_of(x)
    if not shape or shape[n % len(shape)] < 0:
        return None
    at, axis = g.emitter(), n % len(shape)
    maps = [identity_map(len(shape)), dims_map(len(shape), [axis])]
    return at.elementwise(
        [x, g.weight(at, shape[axis])], at.empty_like(x), lambda b: b.op(arith.MulfOp, b.args[0], b.args[1]), maps
    )


def _reduce(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    shape = shape_of(x)
    if len(shape) < 2:
        return None
    at, axis = g.emitter(), n % len(shape)
    kept = [i for i in range(len(shape)) if i != axis]
    init = at.fill(0.0, at.empty_from(x, kept))
    iterators = [REDUCTION if i == axis else PARALLEL for i in range(len(shape))]
    maps = [identity_map(len(shape)), dims_map(len(shape), kept)]
    op = at.generic([x], [init], maps, iterators, lambda b: [b.op(arith.AddfOp, b.args[0], b.args[1])])
    return op.results[0]


def _broadcast(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    """Over a new leading or trailing dimension."""
    shape = list(shape_of(x))
    if len(shape) > 3:
        return None
    at, rank, size = g.emitter(), len(shape) + 1, 2 + n % 2
    front = n % 4 < 2
    dynamic = [at.dim(x, axis) for axis, extent in enumerate(shape) if extent < 0]
    init = at.add(tensor.EmptyOp(dynamic, TensorType(f32, [size, *shape] if front else [*shape, size]))).tensor
    read = range(1, rank) if front else range(rank - 1)
    return at.elementwise(
        [x], init, lambda b: b.args[0] if n % 3 else b.op(math.TanhOp, b.args[0]), [dims_map(rank, list(read))]
    )


def _reshape(at: Emitter, kind: Any, x: SSAValue, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> SSAValue:
    attribute = ArrayAttr([ArrayAttr([IntegerAttr(axis, i64) for axis in group]) for group in groups])
    type_ = TensorType(f32, list(shape))
    if kind is tensor.ExpandShapeOp:
        dynamic = [at.dim(x, axis) for axis, size in enumerate(shape_of(x)) if size < 0]
        return at.add(tensor.ExpandShapeOp(x, dynamic, attribute, list(shape), type_)).result
    return at.add(
        tensor.CollapseShapeOp(operands=[x], properties={"reassociation": attribute}, result_types=[type_])
    ).result


def _collapse(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    shape = list(shape_of(x))
    if len(shape) < 2:
        return None
    axis = n % (len(shape) - 1)
    groups = [[i] for i in range(axis)] + [[axis, axis + 1]] + [[i] for i in range(axis + 2, len(shape))]
    pair = shape[axis : axis + 2]
    merged = DYNAMIC_INDEX if min(pair) < 0 else pair[0] * pair[1]
    return _reshape(g.emitter(), tensor.CollapseShapeOp, x, groups, [*shape[:axis], merged, *shape[axis + 2 :]])


def _expand(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    shape = list(shape_of(x))
    if not shape or len(shape) > 4:
        return None
    axis = n % len(shape)
    if shape[axis] < 0:
        return None
    factor = next((f for f in ((2, 3, 1) if n % 3 else (1,)) if shape[axis] % f == 0), 1)
    groups = [[i] for i in range(axis)] + [[axis, axis + 1]] + [[i + 1] for i in range(axis + 1, len(shape))]
    return _reshape(
        g.emitter(), tensor.ExpandShapeOp, x, groups, [*shape[:axis], factor, shape[axis] // factor, *shape[axis + 1 :]]
    )


def _pad(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    shape = list(shape_of(x))
    if not shape or shape[n % len(shape)] < 0:
        return None
    at, axis = g.emitter(), n % len(shape)
    low: list[int | SSAValue] = [0] * len(shape)
    high: list[int | SSAValue] = [0] * len(shape)
    low[axis], high[axis] = 1, n % 3
    shape[axis] += 1 + n % 3
    return pad(at, x, low, high, at.scalar((0.0, 0.5)[n % 2], f32), shape).result


def _slice(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    shape = list(shape_of(x))
    axis = n % len(shape) if shape else 0
    if not shape or shape[axis] < 2 or min(shape) < 0:
        return None
    offsets, sizes = [0] * len(shape), list(shape)
    offsets[axis], sizes[axis] = 1, max(1, (shape[axis] - 1) // 2)
    return g.emitter().add(tensor.ExtractSliceOp(x, offsets, sizes, [1] * len(shape), TensorType(f32, sizes))).result


def _concat(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    shape = list(shape_of(x))
    partners = g.partners(x)
    axis = n % len(shape) if shape else 0
    if not shape or shape[axis] < 0:
        return None
    shape[axis] *= 2
    return g.emitter().add(tensor.ConcatOp([x, partners[n % len(partners)]], axis, TensorType(f32, shape))).result


def _multiply_add(b: Any) -> list[SSAValue]:
    return [b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, b.args[0], b.args[1]))]


def _matmul(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    """Over the last dimension, with a constant weight."""
    shape = list(shape_of(x))
    if len(shape) < 2 or shape[-1] < 0:
        return None
    at, rank, out = g.emitter(), len(shape) + 1, 4 + n % 3
    dynamic = [at.dim(x, axis) for axis, size in enumerate(shape) if size < 0]
    init = at.fill(0.0, at.add(tensor.EmptyOp(dynamic, TensorType(f32, [*shape[:-1], out]))).tensor)
    k, column = rank - 1, rank - 2
    maps = [dims_map(rank, [*range(rank - 2), k]), dims_map(rank, [k, column]), dims_map(rank, list(range(rank - 1)))]
    iterators = [PARALLEL] * (rank - 1) + [REDUCTION]
    return at.generic([x, g.weight(at, shape[-1], out)], [init], maps, iterators, _multiply_add).results[0]


def _conv(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    """A channels-first convolution (or a depthwise one) with a window of 1 or 2, stride 1 or 2."""
    shape = shape_of(x)
    window, stride = 1 + n % 2, 1 + n // 2 % 2
    if len(shape) != 4 or min(shape) < 0 or min(shape[2:]) < window:
        return None
    at, depthwise = g.emitter(), n % 3 == 0
    channels = shape[1] if depthwise else 3
    spatial = [(size - window) // stride + 1 for size in shape[2:]]
    init = at.fill(0.0, at.empty(f32, [shape[0], channels, *spatial]))
    d = [AffineExpr.dimension(i) for i in range(7)]
    rank = 6 if depthwise else 7
    image = AffineMap(rank, 0, (d[0], d[1] if depthwise else d[6], d[2] * stride + d[4], d[3] * stride + d[5]))
    weight = AffineMap(rank, 0, (d[1], d[4], d[5]) if depthwise else (d[1], d[6], d[4], d[5]))
    sizes = (channels, window, window) if depthwise else (channels, shape[1], window, window)
    maps = [image, weight, dims_map(rank, [0, 1, 2, 3])]
    iterators = [PARALLEL] * 4 + [REDUCTION] * (rank - 4)
    return at.generic([x, g.weight(at, *sizes)], [init], maps, iterators, _multiply_add).results[0]


def _max_pool(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    shape = shape_of(x)
    if len(shape) != 4 or min(shape) < 0 or min(shape[2:]) < 2:
        return None
    at, stride = g.emitter(), 1 + n % 2
    spatial = [(size - 2) // stride + 1 for size in shape[2:]]
    init = at.fill(-np.inf, at.empty(f32, [*shape[:2], *spatial]))
    d = [AffineExpr.dimension(i) for i in range(6)]
    image = AffineMap(6, 0, (d[0], d[1], d[2] * stride + d[4], d[3] * stride + d[5]))
    maps = [image, dims_map(6, [4, 5]), dims_map(6, [0, 1, 2, 3])]
    window = at.empty(f32, [2, 2])
    iterators = [PARALLEL] * 4 + [REDUCTION] * 2
    return at.generic(
        [x, window], [init], maps, iterators, lambda b: [b.op(arith.MaximumfOp, b.args[0], b.args[2])]
    ).results[0]


def _positions(g: GraphBuilder, x: SSAValue, n: int) -> SSAValue | None:
    """Adds a multiple of the position along one dimension."""
    shape = shape_of(x)
    if not shape:
        return None
    at = g.emitter()

    def body(b: Any) -> SSAValue:
        position = b.op(arith.IndexCastOp, b.op(linalg.ops.IndexOp, n % len(shape)), i64)
        return b.op(arith.AddfOp, b.args[0], b.op(arith.SIToFPOp, position, f32))

    return at.elementwise([x], at.empty_like(x), body)


_STEPS: tuple[Callable[[GraphBuilder, SSAValue, int], SSAValue | None], ...] = (
    _transpose,
    _unary,
    _add,
    _scale,
    _reduce,
    _broadcast,
    _collapse,
    _expand,
    _pad,
    _slice,
    _concat,
    _matmul,
    _conv,
    _max_pool,
    _positions,
)
