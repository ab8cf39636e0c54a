"""The body emitter: the value of any tensor of a dispatch at any point, pulled through the ops that make it.

`value_at` recurses from a value to the loads it needs: through elementwise bodies, pads, slices, concats, reshapes and gathers, and, where it
must, through a reduction. Nothing is stored on the way, so whatever is pulled is fused. A family stops the recursion with `known`: values it
holds already (accumulators, a row in scratch). A point is evaluated once per block: asking again gives the same vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from fuseline.analysis.structured import StructuredOp, splat_value, yielded
from fuseline.dispatch.view import DispatchView
from fuseline.errors import FuselineError
from fuseline.ir.affine_forms import with_safe_divisions
from fuseline.targets.cpu.emit import borders, concats
from fuseline.targets.cpu.emit.access import AnyIndex, Frame, Index, as_index, dtype_of
from fuseline.targets.cpu.emit.body_ops import emit_scalar_op
from fuseline.targets.cpu.emit.lane_coordinates import lane_sources
from fuseline.targets.cpu.emit.shortcuts import shortcuts
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Block as KernelBlock
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

Supplier = Callable[[Sequence[AnyIndex], int, "Operand | None"], Value]
"""Gives a value the family holds: `(index, lanes, active) -> vector` (a scalar where all lanes agree)."""

_Wanted: TypeAlias = "tuple[SSAValue, Sequence[AnyIndex], int, Operand | None]"

NESTED_PULLS = 20
"""Pulls inside each other in one block of a kernel; behind that they are made one by one, so that chains do not exhaust Python's stack."""


class _FirstError(Exception):
    """A value that has to be made before the pull that needs it goes on."""

    def __init__(self, wanted: _Wanted) -> None:
        super().__init__()
        self.wanted = wanted


class Evaluator:
    """Pulls values of one dispatch.

    Args:
        kernel: the kernel under construction.
        view: the dispatch.
        known: values the family supplies itself; may change between calls only for points not asked for yet.
    """

    def __init__(self, kernel: KernelBuilder, view: DispatchView, known: Mapping[SSAValue, Supplier] | None = None) -> None:
        self.kernel, self.view = kernel, view
        self.frame = Frame(kernel, view)
        self.known: dict[SSAValue, Supplier] = dict(known or {})
        self.shortcuts = shortcuts(view)
        self._home: KernelBlock | None = None
        self._nested = 0

    def scalar_op(self, op: Operation, operands: Sequence[Value]) -> Value:
        """The result of one op of a body."""
        rule = self.shortcuts.get(op)
        return rule(self.kernel, *operands) if rule is not None else emit_scalar_op(self.kernel, op, operands)

    # points --------------------------------------------------------------------------------------------------------------------------

    def value_at(self, value: SSAValue, index: Sequence[AnyIndex | Operand], lanes: int = 1, active: Operand | None = None) -> Value:
        """The elements of `value` at `index`, `lanes` wide.

        Args:
            index: one coordinate per dimension; at most one of them differs between lanes.
            active: how many lanes count (None: all); memory behind the others is not touched, what they hold is undefined.
        """
        return self.kernel.splat(self.pull(value, [as_index(i) for i in index], lanes, active), lanes)

    def pull(self, value: SSAValue, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        """`value_at`, but a scalar where all lanes are known to agree."""
        found = self.kernel.recall(point_key(value, index, lanes, active))
        if found is not None:
            return found
        if self._home is not self.kernel.block:
            return self._from_here((value, index, lanes, active))
        if self._nested >= NESTED_PULLS:
            raise _FirstError((value, index, lanes, active))
        self._nested += 1
        found = self._made(value, index, lanes, active)
        self._nested -= 1
        return found

    def _made(self, value: SSAValue, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        """Compute what nobody has asked for yet in this block, and remember it."""
        found = self._compute(value, index, lanes, active)
        self.kernel.remember(point_key(value, index, lanes, active), found)
        return found

    def _from_here(self, wanted: _Wanted) -> Value:
        """Pull the first value of a block: chains of any length, by making first what lies `NESTED_PULLS` behind.

        What was made before a pull gave up is remembered, so that the second attempt goes on from there.
        """
        outer = self._home, self._nested
        self._home = self.kernel.block
        waiting = [wanted]
        found: Value | None = None
        while waiting:
            self._nested = 0
            try:
                found = self._made(*waiting[-1])
                waiting.pop()
            except _FirstError as first:
                waiting.append(first.wanted)
        self._home, self._nested = outer
        assert found is not None
        return found

    def _compute(self, value: SSAValue, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        supplier = self.known.get(value)
        if supplier is not None:
            return supplier(index, lanes, active)
        splat = splat_value(value)
        if splat is not None:
            return self.kernel.const(splat, dtype_of(value.type))
        if isinstance(value, BlockArgument):
            return self.frame.load(self.frame.argument(value), self.frame.linear(index, self.frame.dims(value), lanes), lanes, active)
        assert isinstance(value, OpResult)
        rule = _RULES.get(type(value.op))
        if rule is None:
            raise FuselineError("E0901", f"the CPU target cannot evaluate {value.op.name}", node=self.view.entry.sym_name.data)
        return rule(self, value, index, lanes, active)

    # sizes and scalars ---------------------------------------------------------------------------------------------------------------

    def size(self, value: SSAValue) -> Operand:
        """An index value that the dispatch computes from its sizes."""
        return self.frame.operand(self.view.shapes.index(value))

    def scalar(self, value: SSAValue) -> Value:
        """A scalar computed outside every body: a constant, a size, or arithmetic on them."""
        constant = splat_value(value)
        if constant is not None:
            return self.kernel.const(constant, dtype_of(value.type))
        if isinstance(value.type, IndexType):
            return self.kernel.as_value(self.size(value))
        assert isinstance(value, OpResult)
        if isinstance(value.op, tensor.ExtractOp):
            return self.pull(value.op.tensor, [Index(self.size(i)) for i in value.op.indices], 1, None)
        return emit_scalar_op(self.kernel, value.op, [self.scalar(operand) for operand in value.op.operands])

    # affine maps ---------------------------------------------------------------------------------------------------------------------

    def through(self, map_: AffineMap, loops: Sequence[AnyIndex], lanes: int) -> list[AnyIndex]:
        """The coordinates that `map_` gives at the point `loops`."""
        return [self._expression(expr, loops, lanes) for expr in with_safe_divisions(map_).results]

    def _expression(self, expr: AffineExpr, loops: Sequence[AnyIndex], lanes: int) -> AnyIndex:
        if isinstance(expr, AffineDimExpr):
            return loops[expr.position]
        if isinstance(expr, AffineConstantExpr):
            return Index(expr.value)
        if not isinstance(expr, AffineBinaryOpExpr):
            raise FuselineError("E0901", f"an indexing map uses {expr}", node=self.view.entry.sym_name.data)
        frame = self.frame
        a = frame.resolve(self._expression(expr.lhs, loops, lanes), lanes)
        b = frame.resolve(self._expression(expr.rhs, loops, lanes), lanes)
        if expr.kind is AffineBinaryOpKind.Add:
            return frame.plus(a, b, lanes)
        if expr.kind is AffineBinaryOpKind.Mul:
            return frame.scaled(a, b.base, lanes) if isinstance(b.base, int) and b.uniform else frame.scaled(b, a.base, lanes)
        return self._division(expr.kind, a, b.base, lanes)

    def _division(self, kind: AffineBinaryOpKind, a: Index, divisor: Operand, lanes: int) -> Index:
        """Of a coordinate that is not negative."""
        kernel = self.kernel
        whole: Any = a.base if a.uniform else self.frame.vector(a, lanes)
        if kind is AffineBinaryOpKind.Mod:
            result = kernel.rem(whole, divisor)
        elif kind is AffineBinaryOpKind.FloorDiv:
            result = kernel.div(whole, divisor)
        else:
            result = kernel.div(kernel.add(whole, kernel.sub(divisor, 1)), divisor)
        return Index(result) if a.uniform else Index(0, 0, result)


class BodyPoint:
    """The body of one structured op at one point of its loops.

    `accumulators` are the elements of the outputs so far (for ops whose body reads them); None pulls the inits. `wide` computes f16 and bf16
    in f32 without rounding in between, as sums over many elements must be.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        view: StructuredOp,
        loops: Sequence[AnyIndex],
        lanes: int,
        active: Operand | None,
        accumulators: Sequence[Value] | None = None,
        inputs: Mapping[int, Value] | None = None,
        wide: bool = False,
    ) -> None:
        self.evaluator, self.view, self.loops, self.lanes, self.active = evaluator, view, loops, lanes, active
        self.accumulators = accumulators
        self.inputs = inputs or {}
        self.wide = wide
        self._values: dict[SSAValue, Value | Index] = {}
        self._nested = 0

    def yields(self) -> list[Value]:
        """What the body yields, one per output."""
        return [self.value(v) for v in yielded(self.view.op)]

    def value(self, value: SSAValue) -> Value:
        """A scalar of the body as a value; a scalar Value where all lanes agree."""
        found = self._get(value)
        if isinstance(found, Index):
            frame = self.evaluator.frame
            return frame.kernel.as_value(found.base) if found.uniform else frame.vector(found, self.lanes)
        return found

    def _get(self, value: SSAValue) -> Value | Index:
        found = self._values.get(value)
        if found is None:
            if self._nested >= NESTED_PULLS:
                self._prepare(value)
            self._nested += 1
            found = self._compute(value)
            self._nested -= 1
            if self.wide and isinstance(found, Value):
                found = widened(self.evaluator.kernel, found)
            self._values[value] = found
        return found

    def _prepare(self, value: SSAValue) -> None:
        """Compute what `value` needs of the body in the body's order, so that none of it has to wait for another."""
        needed: set[Operation] = set()
        pending = [value]
        while pending:
            one = pending.pop()
            if isinstance(one, OpResult) and _inside(one.op, self.view.body) and one.op not in needed and one not in self._values:
                needed.add(one.op)
                pending += one.op.operands
        outer, self._nested = self._nested, 0
        for op in self.view.body.ops:
            if op in needed and value not in op.results:
                self._get(op.results[0])
        self._nested = outer

    def _compute(self, value: SSAValue) -> Value | Index:
        if isinstance(value, BlockArgument) and value.owner is self.view.body:
            return self._operand(value.index)
        if not isinstance(value, OpResult) or not _inside(value.op, self.view.body):
            return self.evaluator.scalar(value)
        op = value.op
        if isinstance(op, linalg.ops.IndexOp):
            return self.evaluator.frame.resolve(self.loops[op.dim.value.data], self.lanes)
        if isinstance(op, tensor.ExtractOp):
            return self.evaluator.pull(op.tensor, [self._coordinate(i) for i in op.indices], self.lanes, self.active)
        if isinstance(op, arith.ConstantOp):
            return self.evaluator.scalar(value)
        if isinstance(op.results[0].type, IndexType):
            affine = self._affine(op)
            if affine is not None:
                return affine
        return self.evaluator.scalar_op(op, [self.value(operand) for operand in op.operands])

    def _operand(self, position: int) -> Value:
        inputs = self.view.inputs
        if position in self.inputs:
            return self.inputs[position]
        if position >= len(inputs) and self.accumulators is not None:
            return self.accumulators[position - len(inputs)]
        source = self.view.op.operands[position]
        index = self.evaluator.through(self.view.maps[position], self.loops, self.lanes)
        return self.evaluator.pull(source, index, self.lanes, self.active)

    def _coordinate(self, value: SSAValue) -> AnyIndex:
        found = self._get(value)
        if isinstance(found, Index):
            return found
        wide = self.evaluator.kernel.cast(found, "i64")
        return Index(0, 0, wide) if wide.type.lanes > 1 else Index(wide)

    def _affine(self, op: Operation) -> Index | None:
        """Index arithmetic that keeps the form `base + stride * lane`, so that what it addresses stays a plain load."""
        if not isinstance(op, arith.AddiOp | arith.SubiOp | arith.MuliOp):
            return None
        a, b = (self._as_affine(operand) for operand in op.operands)
        if a is None or b is None:
            return None
        frame = self.evaluator.frame
        if isinstance(op, arith.MuliOp):
            if a.uniform:
                a, b = b, a
            return frame.scaled(a, b.base, self.lanes) if b.uniform else None
        return frame.plus(a, b if isinstance(op, arith.AddiOp) else frame.scaled(b, -1, self.lanes), self.lanes)

    def _as_affine(self, value: SSAValue) -> Index | None:
        found = self._get(value)
        if isinstance(found, Value):
            return None if found.type.lanes > 1 else Index(found.attr if found.op == "const" else found)
        return found if found.vector is None else None


def widened(kernel: KernelBuilder, value: Value) -> Value:
    """f16 and bf16 as f32, anything else as it is."""
    return kernel.cast(value, "f32") if value.type.dtype in ("f16", "bf16") else value


def narrowed(kernel: KernelBuilder, value: Value, dtype: str) -> Value:
    """What `widened` gave, rounded to `dtype` again."""
    return kernel.cast(value, dtype) if dtype in ("f16", "bf16") else value


def _inside(op: Operation, body: Block) -> bool:
    return op.parent_block() is body


def point_key(value: SSAValue, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Any:
    """Equal for the same elements of the same value."""
    return (value, tuple(i.key for i in index), lanes, active)


# how each op is pulled -----------------------------------------------------------------------------------------------------------------


def _generic(e: Evaluator, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    op = value.op
    assert isinstance(op, linalg.ops.GenericOp)
    view = StructuredOp(op)
    loops = loops_at(e, view, value.index, index)
    if view.reduction:
        return reduce_at(e, view, loops, lanes, active)[value.index]
    return BodyPoint(e, view, loops, lanes, active).value(yielded(op)[value.index])


def loops_at(e: Evaluator, view: StructuredOp, result: int, index: Sequence[AnyIndex]) -> list[AnyIndex]:
    """The point of the loops of `view` that makes element `index` of a result; reduction loops are at 0."""
    loops: list[AnyIndex] = [Index(0)] * view.rank
    found: set[int] = set()
    for expr, coordinate in zip(view.output_maps[result].results, index, strict=True):
        if isinstance(expr, AffineDimExpr):
            loops[expr.position] = coordinate
            found.add(expr.position)
        elif not isinstance(expr, AffineConstantExpr):
            raise FuselineError("E0901", f"a result is indexed by {expr}", node=e.view.entry.sym_name.data)
    if not found.issuperset(view.parallel):
        raise FuselineError("E0901", "a result does not depend on every parallel loop", node=e.view.entry.sym_name.data)
    return loops


def reduce_at(e: Evaluator, view: StructuredOp, loops: Sequence[AnyIndex], lanes: int, active: Operand | None) -> list[Value]:
    """All results of a reduction at one point of its parallel loops: plain nested loops, the lanes side by side."""
    kernel, extents = e.kernel, view.loops(e.view.shapes)
    inits = [
        widened(kernel, e.value_at(init, e.through(map_, loops, lanes), lanes, active))
        for init, map_ in zip(view.outputs, view.output_maps, strict=True)
    ]

    def nest(remaining: tuple[int, ...], at: list[AnyIndex], accumulators: Sequence[Value]) -> Sequence[Value]:
        if not remaining:
            point = BodyPoint(e, view, at, lanes, active, accumulators, wide=True)
            return [kernel.splat(v, lanes) for v in point.yields()]
        loop, rest = remaining[0], remaining[1:]

        def body(i: Operand, *carried: Value) -> Sequence[Value]:
            return nest(rest, [*at[:loop], Index(i), *at[loop + 1 :]], carried)

        return kernel.loop(0, e.frame.operand(extents[loop]), 1, body, accumulators)

    totals = nest(view.reduction, list(loops), inits)
    return [narrowed(kernel, total, dtype_of(output.type)) for total, output in zip(totals, view.outputs, strict=True)]


def _fill(e: Evaluator, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    del index, lanes, active
    return e.scalar(value.op.operands[0])


def _empty(e: Evaluator, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    """What an uninitialised tensor holds is anything: zero."""
    del index, lanes, active
    return e.kernel.const(0, dtype_of(value.type))


def _constant(e: Evaluator, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    """A small constant that is not one number throughout lies inside the kernel's code."""
    op = value.op
    assert isinstance(op, arith.ConstantOp) and isinstance(value.type, TensorType)
    numbers = cast(tuple[float | int, ...], tuple(op.value.get_values()))  # pyright: ignore[reportAttributeAccessIssue]
    memory = e.kernel.table("constant", numbers, dtype_of(value.type))
    return e.frame.load(memory, e.frame.linear(index, e.frame.dims(value), lanes), lanes, active)


def _moved(e: Evaluator, value: OpResult, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
    """An op that only moves data, with one source that is there everywhere."""
    (source,) = lane_sources(e, value.op, index, lanes)
    return e.pull(source.value, source.at, lanes, active)


_RULES: dict[type[Operation], Callable[[Evaluator, OpResult, Sequence[AnyIndex], int, Operand | None], Value]] = {
    linalg.ops.GenericOp: _generic,
    linalg.ops.FillOp: _fill,
    linalg.ops.TransposeOp: _moved,
    linalg.ops.BroadcastOp: _moved,
    arith.ConstantOp: _constant,
    tensor.EmptyOp: _empty,
    tensor.ExpandShapeOp: _moved,
    tensor.CollapseShapeOp: _moved,
    tensor.CastOp: _moved,
    tensor.ExtractSliceOp: _moved,
    tensor.PadOp: borders.pad,
    tensor.ConcatOp: concats.concat,
    tensor.InsertSliceOp: borders.insert_slice,
}
