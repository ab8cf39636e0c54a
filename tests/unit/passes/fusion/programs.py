"""Small programs for fusion tests, written with the emitter: `Program` names values so that a test reads like the graph
it draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from typing import Any

from xdsl.dialects import arith, func, math, tensor
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    f32,
    i64,
)
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.build import PARALLEL, REDUCTION, Body, Emitter, dims_map, shape_of
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.cleanup.folds import dims
from fuseline.passes.cleanup.folds.worklist import Worklist
from fuseline.passes.fusion.driver import Partition, partition
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.rule import FusionRule, builtin_rules
from fuseline.report.records import Decision

TARGET = TargetDescription("test", threads=2)


class Program:
    """A function `main` over f32 tensors of the given shapes (None, or a name: unknown); `x[i]` are its arguments."""

    def __init__(self, *shapes: Sequence[int | str | None]) -> None:
        types: list[Attribute] = [
            TensorType(f32, [size if isinstance(size, int) else DYNAMIC_INDEX for size in shape]) for shape in shapes
        ]
        sizes = [
            ArrayAttr([StringAttr(f"n{axis}" if size is None else str(size)) for axis, size in enumerate(shape)])
            for shape in shapes
        ]
        attributes = [DictionaryAttr({"fuseline.dims": names}) for names in sizes]
        self.function = func.FuncOp("main", (types, []), arg_attrs=ArrayAttr(attributes))
        self.module = ModuleOp([self.function])
        self.x = tuple(self.function.body.block.args)
        self.count = 0

    def emitter(self) -> Emitter:
        self.count += 1
        return Emitter.at_end(self.function.body.block, [f"n{self.count}"])

    def unary(
        self, value: SSAValue, kind: Callable[..., Any] = math.ExpOp, permutation: Sequence[int] | None = None
    ) -> SSAValue:
        """An elementwise op; with `permutation`, dimension i of the result is dimension permutation[i] of the
        operand."""
        e = self.emitter()
        rank = len(shape_of(value))
        order = list(permutation or range(rank))
        out = e.empty_from(value, order)
        reads = [order.index(axis) for axis in range(rank)]
        return e.elementwise([value], out, lambda b: b.op(kind, b.args[0]), [dims_map(rank, reads)])

    def binary(self, a: SSAValue, b: SSAValue, map_b: AffineMap | None = None) -> SSAValue:
        """`a + b` over the space of `a`; `map_b` says how b is read."""
        e = self.emitter()
        rank = len(shape_of(a))
        maps = [AffineMap.identity(rank), map_b if map_b is not None else AffineMap.identity(rank)]
        return e.elementwise(
            [a, b], e.empty_like(a), lambda body: body.op(arith.AddfOp, body.args[0], body.args[1]), maps
        )

    def matmul(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """`a[m, k] @ b[k, n]`."""
        e = self.emitter()
        sizes = shape_of(a)[0], shape_of(b)[1]
        dynamic = [e.dim(value, axis) for axis, value in enumerate((a, b)) if sizes[axis] == DYNAMIC_INDEX]
        out = e.fill(0.0, e.add(tensor.EmptyOp(dynamic, TensorType(f32, sizes))).tensor)
        maps = [dims_map(3, [0, 2]), dims_map(3, [2, 1]), dims_map(3, [0, 1])]
        return e.generic([a, b], [out], maps, [PARALLEL, PARALLEL, REDUCTION], _multiply_add).results[0]

    def row_sum(self, a: SSAValue, axis: int = -1) -> SSAValue:
        """The sum over one axis."""
        e = self.emitter()
        rank = len(shape_of(a))
        axis %= rank
        kept = [i for i in range(rank) if i != axis]
        out = e.fill(0.0, e.empty_from(a, kept))
        iterators = [REDUCTION if i == axis else PARALLEL for i in range(rank)]
        op = e.generic(
            [a],
            [out],
            [AffineMap.identity(rank), dims_map(rank, kept)],
            iterators,
            lambda b: [b.op(arith.AddfOp, b.args[1], b.args[0])],
        )
        return op.results[0]

    def row_max(self, a: SSAValue) -> SSAValue:
        """The maximum of every row."""
        e = self.emitter()
        out = e.fill(-inf, e.empty_from(a, [0]))
        maps, kinds = [AffineMap.identity(2), dims_map(2, [0])], [PARALLEL, REDUCTION]
        return e.generic([a], [out], maps, kinds, lambda b: [b.op(arith.MaximumfOp, b.args[1], b.args[0])]).results[0]

    def by_row(self, a: SSAValue, row: SSAValue, body: Callable[[Body], SSAValue]) -> SSAValue:
        """An elementwise op of a matrix and a value per row."""
        e = self.emitter()
        return e.elementwise([a, row], e.empty_like(a), body, [AffineMap.identity(2), dims_map(2, [0])])

    def softmax(self, a: SSAValue) -> SSAValue:
        """Of every row of a matrix."""
        powers = self.by_row(a, self.row_max(a), lambda b: b.op(math.ExpOp, b.op(arith.SubfOp, *b.args[:2])))
        return self.by_row(powers, self.row_sum(powers), lambda b: b.op(arith.DivfOp, *b.args[:2]))

    def pad(self, value: SSAValue, low: Sequence[int], high: Sequence[int]) -> SSAValue:
        """Zero padding."""
        e = self.emitter()
        block = Block(arg_types=[e.index(0).type] * len(low))
        block.add_op(tensor.YieldOp(Body(block, e.location).constant(0.0, f32)))
        shape = [size + a + b for size, a, b in zip(shape_of(value), low, high, strict=True)]
        op = tensor.PadOp.build(
            operands=[value, [], []],
            result_types=[TensorType(f32, shape)],
            regions=[Region(block)],
            properties={
                "static_low": DenseArrayBase.from_list(i64, list(low)),
                "static_high": DenseArrayBase.from_list(i64, list(high)),
            },
        )
        return e.add(op).result

    def concat(self, *parts: SSAValue, axis: int = -1) -> SSAValue:
        """The parts one after the other along `axis`."""
        shape = list(shape_of(parts[0]))
        axis %= len(shape)
        shape[axis] = sum(shape_of(part)[axis] for part in parts)
        properties = {"dim": IntegerAttr(axis, i64)}
        return (
            self.emitter()
            .add(tensor.ConcatOp.build(operands=[parts], result_types=[TensorType(f32, shape)], properties=properties))
            .result
        )

    def columns(self, value: SSAValue, first: int, count: int) -> SSAValue:
        """Columns `first` to `first + count` of a matrix."""
        e = self.emitter()
        op = tensor.ExtractSliceOp.from_static_parameters(value, [0, first], [shape_of(value)[0], count])
        return e.add(op).result

    def depthwise(self, image: SSAValue, window: SSAValue) -> SSAValue:
        """A 1-D depthwise convolution: `out[w, c] = sum_k image[w + k, c] * window[k, c]`."""
        e = self.emitter()
        (width, channels), (taps, _) = shape_of(image), shape_of(window)
        out = e.fill(0.0, e.empty(f32, [width - taps + 1, channels]))
        image_map = AffineMap.from_callable(lambda w, c, k: (w + k, c))
        maps = [image_map, dims_map(3, [2, 1]), dims_map(3, [0, 1])]
        return e.generic([image, window], [out], maps, [PARALLEL, PARALLEL, REDUCTION], _multiply_add).results[0]

    def convolution(self, image: SSAValue, filter_: SSAValue) -> SSAValue:
        """A 1-D convolution of unit stride: `out[w, f] = sum_kc image[w + k, c] * filter[k, c, f]`."""
        e = self.emitter()
        (width, _), (taps, _, filters) = shape_of(image), shape_of(filter_)
        out = e.fill(0.0, e.empty(f32, [width - taps + 1, filters]))
        image_map = AffineMap.from_callable(lambda w, f, k, c: (w + k, c))
        maps = [image_map, dims_map(4, [2, 3, 1]), dims_map(4, [0, 1])]
        iterators = [PARALLEL, PARALLEL, REDUCTION, REDUCTION]
        return e.generic([image, filter_], [out], maps, iterators, _multiply_add).results[0]

    def collapse(self, value: SSAValue) -> SSAValue:
        """All dimensions as one."""
        e = self.emitter()
        rank = len(shape_of(value))
        total = 1
        for size in shape_of(value):
            total *= size
        groups = ArrayAttr([ArrayAttr([e_index(i) for i in range(rank)])])
        type_ = TensorType(f32, [total])
        return e.add(
            tensor.CollapseShapeOp.build(operands=[value], result_types=[type_], properties={"reassociation": groups})
        ).result

    def expand(self, value: SSAValue, *sizes: int) -> SSAValue:
        """A vector as a tensor of `sizes`."""
        e = self.emitter()
        properties = {
            "reassociation": ArrayAttr([ArrayAttr([e_index(i) for i in range(len(sizes))])]),
            "static_output_shape": DenseArrayBase.from_list(i64, sizes),
        }
        return e.add(
            tensor.ExpandShapeOp.build(
                operands=[value, []], result_types=[TensorType(f32, sizes)], properties=properties
            )
        ).result

    def done(self, *results: SSAValue) -> Program:
        """Return `results` from the function; sizes are asked of what it is given, as in canonical IR."""
        self.emitter().add(func.ReturnOp(*results))
        self.function.update_function_type()
        Worklist({tensor.DimOp: dims.FOLDS}).run(self.module)
        self.module.verify()
        return self

    def partition(self, target: TargetDescription = TARGET, rules: Sequence[FusionRule] | None = None) -> Partition:
        """The partition of the function."""
        graph = FusionGraph(self.function.body.block, ShapeAnalysis())
        return partition(graph, rules if rules is not None else builtin_rules(), target)

    def decisions(self, target: TargetDescription = TARGET) -> dict[tuple[str, str], Decision]:
        """The record of every edge, by the kinds of its ends."""
        return {(d.producer_op, d.consumer_op): d for d in self.partition(target).decisions}


def e_index(value: int) -> IntegerAttr[Any]:
    return IntegerAttr(value, i64)


def _multiply_add(b: Body) -> list[SSAValue]:
    return [b.op(arith.AddfOp, b.args[2], b.op(arith.MulfOp, b.args[0], b.args[1]))]
