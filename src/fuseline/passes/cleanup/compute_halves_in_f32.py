"""Compute in f32 what a program computes with 16-bit floats, which are then only how tensors at its border and
constants are stored.

    %s = addf %a, %b : f16                  =>   %x = extf %a    %y = extf %b    %s = addf %x, %y : f32
    linalg.generic ins(%t : tensor<..f16>)  =>   ins(%w : tensor<..f32>), %w = %t widened

Arguments, results, constants and what host operators exchange keep their types: a widening follows, or a narrowing
precedes, and `fold-constants` widens weights. A `truncf` to 16 bits, or a conversion of an integer, that the model
itself asks for rounds as before. Elements gathered from a stored table are widened behind the gather, so that a table
never grows. Under `--numerics strict` nothing changes: every op rounds its result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from xdsl.context import Context
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import DenseResourceAttr, ModuleOp, TensorType, f32
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, SSAValue, Use
from xdsl.passes import ModulePass

from fuseline.analysis.structured_op import input_count
from fuseline.ir.build import Emitter, element_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast.direct import (
    body_of,
    operand_of,
    operands_of,
    ops_of,
    result_of,
    set_operand,
    set_type,
)
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.halves import is_half, is_storage, widened
from fuseline.passes.cleanup.half_conversions import (
    extended,
    is_init,
    replace_op,
    truncated,
    widen_arguments,
    widen_results,
    widened_number,
)
from fuseline.passes.cleanup.halves_in_place import kept_narrow, moved_half, only_converts, scatters_halves

Types = tuple[Attribute, ...]


@dataclass(frozen=True)
class ComputeHalvesInF32Pass(ModulePass):
    """Compute in f32 what a program computes with 16-bit floats."""

    name = "compute-halves-in-f32"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Widen every function that has 16-bit floats; those that only are declared keep their types. Nothing under
        strict numerics."""
        strict = isinstance(ctx, CompilerContext) and ctx.target.numerics == "strict"
        functions = {function.sym_name.data: function for function in op.ops if isinstance(function, FuncOp)}
        if strict or not any(_has_halves(function) for function in functions.values()):
            return
        declared = {
            name: tuple(function.function_type.inputs)
            for name, function in functions.items()
            if function.is_declaration
        }
        for function in functions.values():
            if not function.is_declaration:
                _Widening(function, declared).run()


def _has_halves(function: FuncOp) -> bool:
    """Whether some tensor of `function` has 16-bit floats; what a body computes with in between does not count."""
    if any(is_half(type_) for type_ in (*function.function_type.inputs, *function.function_type.outputs)):
        return True
    return not function.is_declaration and any(
        is_half(result.type) for op in ops_of(body_of(function)) for result in op.results
    )


class _Widening:
    """Widens one function; `declared` are the types that host operators take."""

    def __init__(self, function: FuncOp, declared: dict[str, Types]) -> None:
        self.function, self.declared = function, declared
        self.kept = set[Operation]()
        self.bits = {
            op: operand_of(op, 0).type
            for op in ops_inside(function)
            if isinstance(op, arith.BitcastOp) and is_half(operand_of(op, 0).type)
        }
        self.scattered = {op: element_of(result_of(op)) for op in ops_of(body_of(function)) if scatters_halves(op)}
        self.is_border = function.sym_visibility is None or function.sym_visibility.data == "public"

    def run(self) -> None:
        """Widen every value but those at the border; a private function has none."""
        if not self.is_border:
            types = self.function.function_type
            wide = [[widened(type_) for type_ in side] for side in (types.inputs, types.outputs)]
            self.function.function_type = type(types).from_lists(*wide)
        block = body_of(self.function)
        for argument in block.args:
            if not self.is_border:
                set_type(argument, widened(argument.type))
            elif is_half(argument.type):
                self._keep_narrow(argument)
        self._widen_ops(block)
        self._keep_scattered_halves()
        self._keep_moved_halves(block)

    def _keep_moved_halves(self, block: Block) -> None:
        """Let what is only moved from border to border stay narrow (`halves_in_place.py`)."""
        for op in ops_of(block):
            if isinstance(op, linalg.ops.GenericOp) and is_half(result_of(op).type) and self._leaves_narrow(op):
                element = element_of(result_of(op))
                moved = moved_half(operand_of(op, 0), element, partial(truncated, element=element))
                if moved is not None:
                    replace_op(op, moved)

    def _keep_scattered_halves(self) -> None:
        """Let halves that are scattered stay narrow while they lie there, whoever computes with them in f32: so that
        what is computed can be written over them."""
        for op, element in self.scattered.items():
            if op.parent is None or is_half(result_of(op).type):
                continue
            value = kept_narrow(cast(Any, op), element, partial(truncated, element=element))
            readers = [use for use in value.uses if not isinstance(use.operation, tensor.DimOp)]
            wide = extended(value, readers)
            for use in readers:
                set_operand(use.operation, use.index, wide)

    def _widen_ops(self, block: Block) -> None:
        for op in ops_of(block):
            handler = _HANDLERS.get(type(op))
            if handler is not None:
                handler(self, op)
            else:
                widen_results(op)
            if op not in self.kept:
                self._widen_inside(op)

    def _widen_inside(self, op: Operation) -> None:
        for region in op.regions:
            for block in region.blocks:
                widen_arguments(op, block)
                self._widen_ops(block)

    # what stays narrow ------------------------------------------------------------------------------------------------

    def _keep_narrow(self, value: SSAValue) -> None:
        """Let what computes with `value` read it widened."""
        uses = [use for use in value.uses if not self._reads_narrow(use)]
        if not uses:
            return
        wide = extended(value, uses)
        for use in uses:
            set_operand(use.operation, use.index, wide)

    def _reads_narrow(self, use: Use) -> bool:
        op = use.operation
        if isinstance(op, ReturnOp):
            return self.is_border
        if isinstance(op, CallOp):
            return op.callee.root_reference.data in self.declared
        if isinstance(op, linalg.ops.GenericOp):
            return use.index == 0 and only_converts(op, arith.ExtFOp)
        return isinstance(op, arith.ExtFOp | arith.BitcastOp | tensor.DimOp) or (
            isinstance(op, tensor.ExtractOp) and use.index == 0
        )

    def _leaves_narrow(self, op: linalg.ops.GenericOp) -> bool:
        """Whether `op` narrows for the border, and for nobody else."""
        return only_converts(op, arith.TruncFOp) and all(self._at_border(use) for use in result_of(op).uses)

    def _at_border(self, use: Use) -> bool:
        return isinstance(use.operation, ReturnOp | CallOp) and self._reads_narrow(use)

    def _narrow_operands(self, op: Operation, wanted: Types) -> None:
        for index, (value, type_) in enumerate(zip(operands_of(op), wanted, strict=True)):
            if is_half(type_) and value.type != type_:
                set_operand(op, index, truncated(value, op, cast("TensorType[Attribute]", type_).element_type))

    # ops --------------------------------------------------------------------------------------------------------------

    def visit_return(self, op: ReturnOp) -> None:
        if self.is_border:
            self._narrow_operands(op, tuple(self.function.function_type.outputs))

    def visit_call(self, op: CallOp) -> None:
        wanted = self.declared.get(op.callee.root_reference.data)
        if wanted is None:
            return widen_results(op)
        self._narrow_operands(op, wanted)
        self.keep_results(op)

    def visit_constant(self, op: arith.ConstantOp) -> None:
        if isinstance(op.value, DenseResourceAttr):
            return self.keep_results(op)
        if is_half(op.result.type):
            type_ = widened(op.result.type)
            op.properties["value"] = widened_number(op.value, type_)
            set_type(op.result, type_)

    def visit_empty(self, op: tensor.EmptyOp) -> None:
        if not all(is_init(use) and self._leaves_narrow(cast(Any, use.operation)) for use in op.tensor.uses):
            widen_results(op)

    def visit_generic(self, op: linalg.ops.GenericOp) -> None:
        if is_half(result_of(op).type) and self._leaves_narrow(op):
            init = operand_of(op, -1)
            if init.type != result_of(op).type:
                emit = Emitter.before(op)
                set_operand(op, 1, emit.empty_like(init, element_of(result_of(op))))
            return self.kept.add(op)
        for result, init in zip(op.results, operands_of(op)[input_count(op) :], strict=True):
            set_type(result, init.type)

    def visit_narrowing(self, op: arith.TruncFOp) -> None:
        if not is_half(op.result.type) or not is_storage(op):
            return self.keep_results(op)
        if operand_of(op, 0).type == f32:
            return replace_op(op, operand_of(op, 0))
        op.attributes.clear()
        widen_results(op)

    def visit_widening(self, op: arith.ExtFOp) -> None:
        if operand_of(op, 0).type == op.result.type:
            replace_op(op, operand_of(op, 0))

    def visit_extract(self, op: tensor.ExtractOp) -> None:
        if is_half(op.tensor.type):
            self.keep_results(op)
        else:
            widen_results(op)

    def visit_bitcast(self, op: arith.BitcastOp) -> None:
        stored = self.bits.get(op)
        if stored is not None and operand_of(op, 0).type != stored:
            set_operand(op, 0, Emitter.before(op).add(arith.TruncFOp(operand_of(op, 0), stored)).result)
        self.keep_results(op)

    def keep_results(self, op: Operation) -> None:
        for result in op.results:
            if is_half(result.type):
                self._keep_narrow(result)


_HANDLERS: dict[type[Operation], Callable[[_Widening, Any], None]] = {
    ReturnOp: _Widening.visit_return,
    CallOp: _Widening.visit_call,
    arith.ConstantOp: _Widening.visit_constant,
    tensor.EmptyOp: _Widening.visit_empty,
    linalg.ops.GenericOp: _Widening.visit_generic,
    arith.TruncFOp: _Widening.visit_narrowing,
    arith.ExtFOp: _Widening.visit_widening,
    arith.SIToFPOp: _Widening.keep_results,
    arith.UIToFPOp: _Widening.keep_results,
    arith.BitcastOp: _Widening.visit_bitcast,
    tensor.ExtractOp: _Widening.visit_extract,
}
"""Ops whose results or operands may stay narrow; of all others, the results are f32."""


EXPORT = ComputeHalvesInF32Pass
