"""The body emitter: the value of any tensor of a dispatch at any point, pulled through the ops that make it.

`value_at` recurses from a value to the loads it needs: through elementwise bodies, pads, slices, concats, reshapes and
gathers, and, where it must, through a reduction. Nothing is stored on the way, so whatever is pulled is fused. A family
stops the recursion with `known`: values it holds already (accumulators, a row in scratch). A point is evaluated once
per block: asking again gives the same vector.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from fuseline.analysis.structured import splat_value
from fuseline.dispatch.view import DispatchView
from fuseline.errors import FuselineError
from fuseline.ir.affine_forms import with_safe_divisions
from fuseline.targets.cpu.emit.body_ops import emit_scalar_op
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index, as_index
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.emit.pulled_ops import PULLED_OPS
from fuseline.targets.cpu.emit.puller import point_key
from fuseline.targets.cpu.emit.shared_layouts import shared_index
from fuseline.targets.cpu.emit.shortcuts import shortcuts
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Block as KernelBlock
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

ValueSource = Callable[[Sequence[AnyIndex], int, "Operand | None"], Value]
"""Gives a value the family holds: `(index, lanes, active) -> vector` (a scalar where all lanes agree)."""

_Wanted: TypeAlias = "tuple[SSAValue, Sequence[AnyIndex], int, Operand | None]"

NESTED_PULLS = 20
"""Pulls inside each other in one block of a kernel; behind that they are made one by one, so that chains do not exhaust
Python's stack."""


class _FirstError(Exception):
    """A value that has to be made before the pull that needs it goes on."""

    def __init__(self, wanted: _Wanted) -> None:
        super().__init__()
        self.wanted = wanted


class BodyEmitter:
    """Pulls values of one dispatch.

    Args:
        kernel: the kernel under construction.
        view: the dispatch.
        known: values the family supplies itself; may change between calls only for points not asked for yet.
    """

    def __init__(
        self, kernel: KernelBuilder, view: DispatchView, known: Mapping[SSAValue, ValueSource] | None = None
    ) -> None:
        self.kernel, self.view = kernel, view
        self.buffers = DispatchBuffers(kernel, view)
        self.known: dict[SSAValue, ValueSource] = dict(known or {})
        self.shortcuts = shortcuts(view)
        self._home: KernelBlock | None = None
        self._nested = 0

    def scalar_op(self, op: Operation, operands: Sequence[Value]) -> Value:
        """The result of one op of a body."""
        rule = self.shortcuts.get(op)
        return rule(self.kernel, *operands) if rule is not None else emit_scalar_op(self.kernel, op, operands)

    # points -----------------------------------------------------------------------------------------------------------

    def value_at(
        self, value: SSAValue, index: Sequence[AnyIndex | Operand], lanes: int = 1, active: Operand | None = None
    ) -> Value:
        """The elements of `value` at `index`, `lanes` wide.

        Args:
            index: one coordinate per dimension; at most one of them differs between lanes. active: how many lanes count
            (None: all); memory behind the others is not touched, what they hold is undefined.
        """
        return self.kernel.splat(self.pull(value, [as_index(i) for i in index], lanes, active), lanes)

    def pull(self, value: SSAValue, index: Sequence[AnyIndex], lanes: int, active: Operand | None) -> Value:
        """`value_at`, but a scalar where all lanes are known to agree. Raises FuselineError: E0901 for an op without a
        rule."""
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
        source = self.known.get(value)
        if source is not None:
            return source(index, lanes, active)
        splat = splat_value(value)
        if splat is not None:
            return self.kernel.const(splat, dtype_of(value.type))
        if isinstance(value, BlockArgument):
            return self.buffers.load(self.buffers.argument(value), self._place(value, index, lanes), lanes, active)
        assert isinstance(value, OpResult)
        rule = PULLED_OPS.get(type(value.op))
        if rule is None:
            raise FuselineError(
                "E0901", f"the CPU target cannot evaluate {value.op.name}", node=self.view.entry.sym_name.data
            )
        return rule(self, value, index, lanes, active)

    def _place(self, value: BlockArgument, index: Sequence[AnyIndex], lanes: int) -> Index:
        shared = self.view.shared_layout(value)
        if shared is not None:
            return shared_index(self.buffers, shared, index, lanes)
        return self.buffers.linear(index, self.buffers.dims(value), lanes)

    # sizes and scalars ------------------------------------------------------------------------------------------------

    def size(self, value: SSAValue) -> Operand:
        """An index value that the dispatch computes from its sizes."""
        return self.buffers.operand(self.view.shapes.index(value))

    def scalar(self, value: SSAValue) -> Value:
        """A scalar computed outside every body: a constant, a size, or arithmetic on them."""
        constant = splat_value(value)
        if constant is not None:
            return self.kernel.const(constant, dtype_of(value.type))
        if isinstance(value.type, IndexType):
            return self.kernel.as_value(self.size(value))
        assert isinstance(value, OpResult)
        if isinstance(value.op, tensor.ExtractOp):
            if self.view.is_scalar(value.op.tensor):
                return self.kernel.load_once(self.buffers.argument(value.op.tensor))
            return self.pull(value.op.tensor, [Index(self.size(i)) for i in value.op.indices], 1, None)
        return emit_scalar_op(self.kernel, value.op, [self.scalar(operand) for operand in value.op.operands])

    # affine maps ------------------------------------------------------------------------------------------------------

    def through(self, map_: AffineMap, loops: Sequence[AnyIndex], lanes: int) -> list[AnyIndex]:
        """The coordinates that `map_` gives at the point `loops`. Raises FuselineError: E0901 for an expression that is
        no affine one."""
        return [self._expression(expr, loops, lanes) for expr in with_safe_divisions(map_).results]

    def _expression(self, expr: AffineExpr, loops: Sequence[AnyIndex], lanes: int) -> AnyIndex:
        if isinstance(expr, AffineDimExpr):
            return loops[expr.position]
        if isinstance(expr, AffineConstantExpr):
            return Index(expr.value)
        if not isinstance(expr, AffineBinaryOpExpr):
            raise FuselineError("E0901", f"an indexing map uses {expr}", node=self.view.entry.sym_name.data)
        buffers = self.buffers
        a = buffers.resolve(self._expression(expr.lhs, loops, lanes), lanes)
        b = buffers.resolve(self._expression(expr.rhs, loops, lanes), lanes)
        if expr.kind is AffineBinaryOpKind.Add:
            return buffers.plus(a, b, lanes)
        if expr.kind is AffineBinaryOpKind.Mul:
            return (
                buffers.scaled(a, b.base, lanes)
                if isinstance(b.base, int) and b.uniform
                else buffers.scaled(b, a.base, lanes)
            )
        return self._division(expr.kind, a, b.base, lanes)

    def _division(self, kind: AffineBinaryOpKind, a: Index, divisor: Operand, lanes: int) -> Index:
        """Of a coordinate that is not negative."""
        kernel = self.kernel
        whole: Any = a.base if a.uniform else self.buffers.vector(a, lanes)
        if kind is AffineBinaryOpKind.Mod:
            result = kernel.rem(whole, divisor)
        elif kind is AffineBinaryOpKind.FloorDiv:
            result = kernel.div(whole, divisor)
        else:
            result = kernel.div(kernel.add(whole, kernel.sub(divisor, 1)), divisor)
        return Index(result) if a.uniform else Index(0, 0, result)
