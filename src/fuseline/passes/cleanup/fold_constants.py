"""Compute at compile time what depends on constants only.

    %w = arith.constant dense_resource<w>     =>   %t = arith.constant dense_resource<w_folded>
    %t = transpose %w

A result may have at most 1.5 times as many elements as the weights it replaces, a pad 4 times (64 KiB are always
allowed), and nothing that is worked with takes more than 64 MiB or what the model's own weights take. All constants
together may take 64 MiB more than the model's, or twice as much (`ir/constant_budget.py`), so that they never blow up.
Splats are one number from end to end. A weight that is stored narrow and computed with wide (dequantised) is widened
here and not in every run. A transposed or sliced weight becomes a view of the old array and moves no data; a result
with one value everywhere becomes a splat.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.context import Context
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseIntOrFPElementsAttr, DenseResourceAttr, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.structured import StructuredOp, captured, is_generic, producer_of, splat_value
from fuseline.errors import FuselineError
from fuseline.evaluation.program import Array, Program, Scope, is_evaluable, run_op
from fuseline.ir.build import Emitter
from fuseline.ir.constant_budget import ConstantBudget, folded_name, of_the_model, words_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.element_types import numpy_dtype
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_constant
from fuseline.ir.fast.direct import body_of, erase, is_unused, operands_of, ops_of, replace_uses
from fuseline.ir.functions import functions
from fuseline.ir.provenance import carry
from fuseline.ir.splats import one_element, single_value, splat_attribute

ALWAYS_BYTES = 64 * 1024
"""Results up to this size are always worth storing."""

GROWTH = 1.5
"""A result may have this many times the elements of the constants it is made from."""

PADDED = 4.0
"""A pad of a constant may have this many times its elements: filters that are padded to a multiple of their strides
come to 2.4 times in three dimensions."""

MOST_BYTES = 64 * 1024 * 1024
"""What an evaluation may take in memory, where the model's own weights are not larger."""

# Not worth a constant by themselves: they say a shape or one value, and consumers read them for free.
_MOVES = frozenset(
    (linalg.ops.TransposeOp, linalg.ops.BroadcastOp, tensor.ExpandShapeOp, tensor.CollapseShapeOp, tensor.CastOp)
)
_SHAPES_AND_SPLATS = frozenset((tensor.EmptyOp, tensor.SplatOp, linalg.ops.FillOp))


class ConstantFolder:
    """Folds the ops of one block in order, so that chains fold in one pass."""

    def __init__(self, ctx: CompilerContext, budget: ConstantBudget) -> None:
        self.ctx = ctx
        self.budget = budget
        self.program = Program(ctx.resources)
        self.constant: dict[Operation, bool] = {}
        self.made: set[Operation] = set()
        self.most_bytes = max(MOST_BYTES, sum(array.nbytes for array in of_the_model(ctx.resources)))

    def run(self, block: Block) -> None:
        """Fold what can be folded in `block`."""
        for op in ops_of(block):
            if self._foldable(op):
                self._fold(op)

    def is_constant(self, value: SSAValue) -> bool:
        """Whether `value` is known at compile time: a constant, or a shape or fill made from one."""
        if type(value) is not OpResult:
            return False
        op = value.op
        if type(op) is arith.ConstantOp:
            return True
        if type(op) not in _SHAPES_AND_SPLATS:
            return False
        if op not in self.constant:
            self.constant[op] = all(self.is_constant(operand) for operand in operands_of(op))
        return self.constant[op]

    def _foldable(self, op: Operation) -> bool:
        if type(op) is arith.ConstantOp or type(op) in _SHAPES_AND_SPLATS or len(op.results) == 0:
            return False
        for value in operands_of(op):  # before what takes a traversal through the body
            if not self.is_constant(value):
                return False
        if not is_evaluable(op) or not all(attributes.is_static(result.type) for result in op.results):
            return False
        return all(self.is_constant(value) for value in _inputs(op)) and self._pays(op)

    def _pays(self, op: Operation) -> bool:
        if _stays_splat(op):
            return True
        made = sum(_bytes(result.type) for result in op.results)
        if made + sum(_bytes(value.type) for value in set(_inputs(op)) if _is_filled(value)) > self.most_bytes:
            return False
        if sum(_bytes(result.type) for result in op.results) <= ALWAYS_BYTES:
            return True
        sources = sum(_elements(value.type) for value in set(_inputs(op)) if _is_stored(value))
        elements = sum(_elements(result.type) for result in op.results)
        made_words = sum(_words(result.type) for result in op.results)
        return elements <= (PADDED if type(op) is tensor.PadOp else GROWTH) * sources and made_words <= self.budget.left

    def _fold(self, op: Operation) -> None:
        try:
            results = self._evaluated(op)
        except FuselineError:
            return  # an access out of bounds: the op stays and fails where the program runs
        emit = Emitter.before(op)
        stem = next((name for name in map(_resource_of, _inputs(op)) if name), "constant")
        values = [
            constant_of(emit, array, result.type, self.ctx, folded_name(stem))
            for array, result in zip(results, op.results, strict=True)
        ]
        carry(
            (op, *(value.op for value in _inputs(op) if type(value) is OpResult)), [_owner(value) for value in values]
        )
        for result, value in zip(op.results, values, strict=True):
            replace_uses(result, value)
        sources = [value.op for value in dict.fromkeys(_inputs(op)) if type(value) is OpResult]
        erase(op)
        self.made.update(_owner(value) for value in values)
        self.budget.left -= sum(_words(value.type) for value in values if _is_stored(value))
        for source in sources:
            self._forget(source)

    def _forget(self, source: Operation) -> None:
        """Give back a weight that nothing reads any more, and its memory where it was made on the way."""
        if not is_unused(source):
            return
        self.budget.left += sum(_words(value.type) for value in source.results if _is_stored(value))
        if source not in self.made:
            return
        name = _resource_of(source.results[0])
        if name is not None:
            del self.ctx.resources[name]
        self.made.remove(source)
        erase(source)

    def _evaluated(self, op: Operation) -> list[Array]:
        scope = Scope(self.program)
        with np.errstate(all="ignore"):
            for value in _inputs(op):
                self._bind(value, scope)
            run_op(op, scope)
        return [scope[result] for result in op.results]

    def _bind(self, value: SSAValue, scope: Scope) -> None:
        if value in scope.values or type(value) is not OpResult:
            return
        for operand in operands_of(value.op):
            self._bind(operand, scope)
        run_op(value.op, scope)


def _owner(value: SSAValue) -> Operation:
    assert type(value) is OpResult
    return value.op


def _inputs(op: Operation) -> Sequence[SSAValue]:
    """Operands and captured values."""
    return [*operands_of(op), *(captured(op) if op.regions else ())]


def _elements(type_: Attribute) -> int:
    if not isinstance(type_, TensorType):
        return 0
    shape = attributes.shape(cast(TensorType[Any], type_))
    return 0 if DYNAMIC_INDEX in shape else prod(shape)


def _words(type_: Attribute) -> int:
    if not isinstance(type_, TensorType):
        return 0
    return words_of(_elements(type_), numpy_dtype(type_.get_element_type()))


def _bytes(type_: Attribute) -> int:
    return _elements(type_) * numpy_dtype(type_.get_element_type()).itemsize if isinstance(type_, TensorType) else 0


def _stays_splat(op: Operation) -> bool:
    """Whether the results are one number everywhere, which is computed once: splats through what does the same to every
    element."""
    if any(splat_value(value) is None for value in _inputs(op) if type(producer_of(value)) is not tensor.EmptyOp):
        return False
    if not is_generic(op):
        return type(op) in _MOVES
    alike = not any(isinstance(inner, linalg.ops.IndexOp | tensor.ExtractOp) for inner in op.body.block.ops)
    return alike and not StructuredOp(op).reduction


def _is_stored(value: SSAValue) -> bool:
    """Whether `value` is a constant that takes memory: not a splat."""
    op = value.op if type(value) is OpResult else None
    if type(op) is not arith.ConstantOp:
        return False
    return not (isinstance(op.value, DenseIntOrFPElementsAttr) and one_element(op.value) is not None)


def _is_filled(value: SSAValue) -> bool:
    """Whether an evaluation fills an array for `value`: it is no weight, and no memory that nobody has written to."""
    return not _is_stored(value) and not (type(value) is OpResult and type(value.op) is tensor.EmptyOp)


def _resource_of(value: SSAValue) -> str | None:
    op = value.op if type(value) is OpResult else None
    return (
        op.value.resource_handle.data
        if type(op) is arith.ConstantOp and isinstance(op.value, DenseResourceAttr)
        else None
    )


def constant_of(emit: Emitter, array: Array, type_: Attribute, ctx: CompilerContext, stem: str) -> SSAValue:
    """`array` as a constant of `type_`: a splat where all elements are equal, else a resource that shares the array's
    memory."""
    assert isinstance(type_, TensorType)
    single = single_value(array)
    if single is not None and array.dtype.kind in "biuf":
        return emit.add(create_constant(splat_attribute(type_, single), type_)).result
    name = ctx.add_resource(stem, array)
    return emit.add(create_constant(DenseResourceAttr.from_params(name, type_), type_)).result


@dataclass(frozen=True)
class FoldConstantsPass(ModulePass):
    """Compute at compile time what depends on constants only."""

    name = "fold-constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fold function by function; all share one budget of bytes."""
        assert isinstance(ctx, CompilerContext)
        bodies = [body_of(function) for function in functions(op)]
        budget = ConstantBudget(ctx.resources, (constant for body in bodies for constant in ops_of(body)))
        for body in bodies:
            ConstantFolder(ctx, budget).run(body)


EXPORT = FoldConstantsPass
