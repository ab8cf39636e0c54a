"""The body of a structured op at one point of its loops, scalar by scalar."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from fuseline.analysis.structured import StructuredOp, yielded
from fuseline.ir.reachable import reachable
from fuseline.targets.cpu.emit.bordered_reads import bordered
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.puller import Puller
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

NESTED_VALUES = 20
"""Values of a body inside each other; behind that they are made in the body's order, so that chains do not exhaust
Python's stack."""


class BodyPoint:
    """The body of one structured op at one point of its loops.

    `accumulators` are the elements of the outputs so far (for ops whose body reads them); None pulls the inits. `wide`
    computes f16 and bf16 in f32 without rounding in between, as sums over many elements must be.
    """

    def __init__(
        self,
        puller: Puller,
        view: StructuredOp,
        loops: Sequence[AnyIndex],
        lanes: int,
        active: Operand | None,
        accumulators: Sequence[Value] | None = None,
        inputs: Mapping[int, Value] | None = None,
        wide: bool = False,
    ) -> None:
        self.puller, self.view, self.loops, self.lanes, self.active = puller, view, loops, lanes, active
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
            buffers = self.puller.buffers
            return buffers.kernel.as_value(found.base) if found.uniform else buffers.vector(found, self.lanes)
        return found

    def _get(self, value: SSAValue) -> Value | Index:
        found = self._values.get(value)
        if found is None:
            if self._nested >= NESTED_VALUES:
                self._prepare(value)
            self._nested += 1
            found = self._compute(value)
            self._nested -= 1
            if self.wide and isinstance(found, Value):
                found = widened(self.puller.kernel, found)
            self._values[value] = found
        return found

    def _prepare(self, value: SSAValue) -> None:
        """Compute what `value` needs of the body in the body's order, so that none of it has to wait for another."""
        needed = set(reachable(self._waiting([value]), lambda op: self._waiting(op.operands)))
        outer, self._nested = self._nested, 0
        for op in self.view.body.ops:
            if op in needed and value not in op.results:
                self._get(op.results[0])
        self._nested = outer

    def _waiting(self, values: Iterable[SSAValue]) -> list[Operation]:
        """The ops of the body that `values` still need."""
        return [
            value.op
            for value in values
            if isinstance(value, OpResult) and _inside(value.op, self.view.body) and value not in self._values
        ]

    def _compute(self, value: SSAValue) -> Value | Index:
        if isinstance(value, BlockArgument) and value.owner is self.view.body:
            return self._operand(value.index)
        if not isinstance(value, OpResult) or not _inside(value.op, self.view.body):
            return self.puller.scalar(value)
        op = value.op
        if isinstance(op, linalg.ops.IndexOp):
            return self.puller.buffers.resolve(self.loops[op.dim.value.data], self.lanes)
        if isinstance(op, tensor.ExtractOp):
            return self._extracted(op)
        if isinstance(op, arith.ConstantOp):
            return self.puller.scalar(value)
        if isinstance(op.results[0].type, IndexType):
            affine = self._affine(op)
            if affine is not None:
                return affine
        return self.puller.scalar_op(op, [self.value(operand) for operand in op.operands])

    def _operand(self, position: int) -> Value:
        inputs = self.view.inputs
        if position in self.inputs:
            return self.inputs[position]
        if position >= len(inputs) and self.accumulators is not None:
            return self.accumulators[position - len(inputs)]
        source = self.view.op.operands[position]
        index = self.puller.through(self.view.maps[position], self.loops, self.lanes)
        return self.puller.pull(source, index, self.lanes, self.active)

    def _extracted(self, op: tensor.ExtractOp) -> Value:
        found = bordered(self.puller, self.view.op, self.loops, self.lanes, self.active)
        if found is not None:
            return found
        return self.puller.pull(op.tensor, [self._coordinate(i) for i in op.indices], self.lanes, self.active)

    def _coordinate(self, value: SSAValue) -> AnyIndex:
        found = self._get(value)
        if isinstance(found, Index):
            return found
        wide = self.puller.kernel.cast(found, "i64")
        return Index(0, 0, wide) if wide.type.lanes > 1 else Index(wide)

    def _affine(self, op: Operation) -> Index | None:
        """Index arithmetic that keeps the form `base + stride * lane`, so that what it addresses stays a plain load."""
        if not isinstance(op, arith.AddiOp | arith.SubiOp | arith.MuliOp):
            return None
        a, b = (self._as_affine(operand) for operand in op.operands)
        if a is None or b is None:
            return None
        buffers = self.puller.buffers
        if isinstance(op, arith.MuliOp):
            if a.uniform:
                a, b = b, a
            return buffers.scaled(a, b.base, self.lanes) if b.uniform else None
        return buffers.plus(a, b if isinstance(op, arith.AddiOp) else buffers.scaled(b, -1, self.lanes), self.lanes)

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
