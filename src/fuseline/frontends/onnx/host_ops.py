"""Operators without a native lowering: calls that run on the host at run time, counted and named in the records.

    func.call @host.<OpType>.<n>(tensors and boxed values) -> tensors and boxed values

A value that a tensor of the IR cannot be is boxed on the host: it passes from call to call as `!flow.host`, by
reference.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, IndexType, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Region, SSAValue

from fuseline import executors
from fuseline.frontends.onnx.dtypes import holds_dtype, is_unsigned, mlir_element
from fuseline.frontends.onnx.host_models import (
    HostModel,
    HostNode,
    constant_model,
    evaluate,
    host_model,
    sequence_model,
)
from fuseline.frontends.onnx.host_types import outputs_of
from fuseline.frontends.onnx.host_values import (
    HostValue,
    KnownSequence,
    Value,
    describe,
    dtype_text,
    known_value,
    type_text,
)
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.read_numbers import ComputedNumbers
from fuseline.frontends.onnx.subgraphs import inner_nodes
from fuseline.frontends.onnx.tensors import NoNativeLowering, OneWay, Tensor, known, static_sizes
from fuseline.ir.build import Emitter, tensor_type
from fuseline.ir.constant_budget import folded_name
from fuseline.ir.context import CompilerContext
from fuseline.ir.declared_types import declare_dtypes
from fuseline.ir.dim import Dim, symbols, upper_bound
from fuseline.ir.dim_json import to_name
from fuseline.ir.flow import HostType
from fuseline.report.records import HostOpRecord

BOXED = HostType()
CONTROL_FLOW = ("Loop", "Scan", "If")


class HostOps:
    """Makes host calls; `declarations` are the functions they call."""

    def __init__(self, program: Program, ctx: CompilerContext) -> None:
        self.program, self.ctx = program, ctx
        self.declarations: list[FuncOp] = []
        self._numbers, self._read = ComputedNumbers(), dict[tuple[int, Dim | None], list[Dim]]()

    def run(self, node: HostNode, refusal: NoNativeLowering) -> list[Value | None]:
        """The outputs of `node`, computed now where all inputs are known, else by a call; None for one that is not
        asked for."""
        found = evaluate(node)
        values = None if found is None else self._known_values(found, node.label)
        if values is None:
            values = self._call(node, refusal)
        by_position = dict(zip(node.asked, values, strict=True))
        return [by_position.get(position) for position in range(len(node.source.outputs))]

    def _known_values(self, found: Sequence[Any], label: str) -> list[Value] | None:
        """Results of an evaluation as known values; None where one is no array, or where constants may not take so
        much."""
        arrays = [np.asarray(item) if isinstance(item, np.generic) else item for item in found]
        if not all(
            isinstance(array, np.ndarray) and self.program.may_make(array.size, array.dtype) for array in arrays
        ):
            return None
        return [_known(array, folded_name(label)) for array in arrays]

    def loops_since(self, first: int) -> bool:
        """Whether a call from number `first` on is control flow: worse than the operator as a whole, whose sizes are
        better known."""
        return any(declaration.sym_name.data.split(".")[1] in CONTROL_FLOW for declaration in self.declarations[first:])

    def read_sizes(self, program: Program, label: str, tensors: Sequence[tuple[Tensor, Dim | None]]) -> list[Dim]:
        """The numbers in tensors of integers and known shapes as sizes that the run learns: 0 to what is given beside
        each. Raises NoNativeLowering inside of a loop: no run could learn the sizes of each iteration."""
        if program is not self.program or self.ctx.evaluated:
            raise NoNativeLowering("runtime-value", "sizes are computed where no run can learn them")
        emit = Emitter.at_end(program.block, (label,))
        values = [self.ssa(t, emit) for t, _ in tensors]
        keys = [(self._numbers.number(value), most) for value, (_, most) in zip(values, tensors, strict=True)]
        new = [i for i, key in enumerate(keys) if key not in self._read and key not in keys[:i]]
        if new:
            made = self._new_sizes(label, [(values[i], *tensors[i]) for i in new], emit)
            self._read.update({keys[i]: sizes for i, sizes in zip(new, made, strict=True)})
            self.program.on_rollback(lambda: [self._read.pop(keys[i], None) for i in new])
        return [size for key in keys for size in self._read[key]]

    def _new_sizes(
        self, label: str, reads: Sequence[tuple[SSAValue, Tensor, Dim | None]], emit: Emitter
    ) -> list[list[Dim]]:
        """Sizes that a call reads."""
        program = self.program
        highs = [(_count(t), None if most is None else upper_bound(most)) for _, t, most in reads]
        sizes: list[list[Dim]] = [
            [program.fresh_symbol(f"{label}_size", lo=0, hi=high) for _ in range(count)] for count, high in highs
        ]
        each = [size for line in sizes for size in line]
        operands = [value for value, _, _ in reads]
        call = emit.add(CallOp(self._index_reads(label, operands, len(each)), operands, [IndexType()] * len(each)))
        call.attributes["fuseline.dims"] = ArrayAttr([ArrayAttr([StringAttr(to_name(size))]) for size in each])
        for size, value in zip(each, call.res, strict=True):
            for item in symbols(size):
                program.bind_size(item, value)
        return sizes

    def _index_reads(self, label: str, operands: Sequence[SSAValue], count: int) -> str:
        """The name of a declared function that reads `count` numbers, all of `operands`."""
        declared = FuncOp.external(
            f"host.Index.{len(self.declarations)}", [value.type for value in operands], [IndexType()] * count
        )
        node = base64.b64encode(label.encode()).decode()
        for key, text in (("host_op", "Index"), ("onnx_node", node), ("executor", executors.INDEX)):
            declared.attributes[f"fuseline.{key}"] = StringAttr(text)
        self.declarations.append(declared)
        self.program.on_rollback(lambda: self.declarations.remove(declared))
        return declared.sym_name.data

    def ssa(self, value: Value, emit: Emitter) -> SSAValue:
        """`value` as an SSA value; a constant that no tensor can hold, or a known sequence, is made by a call."""
        if isinstance(value, Tensor):
            return self.program.ssa(value, emit)
        if value.value is None:
            value.value = self._given_out(value, emit)
            self.program.on_rollback(lambda: setattr(value, "value", None))
        return value.value

    def _call(self, node: HostNode, refusal: NoNativeLowering) -> list[Value]:
        model = host_model(node)
        outputs = self._results(refusal) or outputs_of(node, model, self.program)
        self._emit(node.op_type, model, outputs, Emitter.at_end(self.program.block, (node.label,)))
        self._record(node.label, node.op_type, str(refusal) if refusal.detail else refusal.reason)
        for inner in inner_nodes(node.attributes):
            self._record(node.label, inner.op_type, f"inside {node.op_type}")
        return outputs

    def _results(self, refusal: NoNativeLowering) -> list[Value]:
        """What a refusal knows of the outputs; none where it knows nothing, or sizes that are gone with what was taken
        back."""
        results = refusal.results if isinstance(refusal, OneWay) else ()
        if not all(self.program.is_bound(dim) for t in results for dim in t.dims):
            return []
        return [Tensor(t.dtype, t.dims) for t in results]

    def _emit(self, op_type: str, model: HostModel, outputs: Sequence[Value], emit: Emitter) -> None:
        """A call that gives `outputs` their SSA values."""
        operands = [self.ssa(value, emit) for value in model.operands]
        types = [
            BOXED if isinstance(value, HostValue) else tensor_type(mlir_element(value.dtype), value.dims)
            for value in outputs
        ]
        declaration = _declaration(f"host.{op_type}.{len(self.declarations)}", op_type, model, operands, types, outputs)
        self.declarations.append(declaration)
        self.program.on_rollback(lambda: self.declarations.remove(declaration))
        call = emit.add(CallOp(declaration.sym_name.data, operands, types))
        call.attributes["fuseline.dims"] = ArrayAttr([ArrayAttr(_sizes(value)) for value in outputs])
        for value, result in zip(outputs, call.res, strict=True):
            value.value = result
            if isinstance(value, Tensor):
                self.program.bind_symbols(result, value.dims)

    def _given_out(self, value: HostValue, emit: Emitter) -> SSAValue:
        """The known content of `value`, or the items of a sequence, handed out by a call."""
        model = sequence_model(value) if isinstance(value, KnownSequence) else constant_model(value)
        op_type, label = model.proto.graph.node[0].op_type, value.name or "constant"
        made = HostValue(value.type, value.dims)
        self._emit(op_type, model, [made], Emitter(emit.point, (label,)))
        self._record(label, op_type, f"host-value: a {type_text(value)} is given out")
        assert made.value is not None
        return made.value

    def _record(self, node: str, op_type: str, reason: str) -> None:
        record = HostOpRecord(node=node, op_type=op_type, reason=reason)
        self.ctx.records.host_ops.append(record)
        self.program.on_rollback(lambda: self.ctx.records.host_ops.remove(record))


def boxed_inputs(node: HostNode) -> NoNativeLowering:
    """Why a node with boxed inputs is not native."""
    return NoNativeLowering("host-value", describe(node.inputs))


def border_attributes(value: HostValue, name: str) -> dict[str, Attribute]:
    """What an argument or result of `@main` says of a boxed value."""
    texts: dict[str, Attribute] = {
        key: StringAttr(text)
        for key, text in (("name", name), ("type", type_text(value)), ("dtype", dtype_text(value)))
    }
    return {f"fuseline.{key}": text for key, text in {**texts, "dims": ArrayAttr(_sizes(value))}.items()}


def _count(t: Tensor) -> int:
    return prod(static_sizes(t.dims))


def _sizes(value: Value) -> list[StringAttr]:
    return [StringAttr(to_name(dim)) for dim in value.dims or ()]


def _known(array: Any, name: str) -> Value:
    if array.dtype.kind in "USO":
        return known_value(array.astype(object))
    return known(array, name=name) if holds_dtype(array.dtype) else known_value(array)


def _declaration(
    name: str,
    op_type: str,
    model: HostModel,
    operands: Sequence[SSAValue],
    types: Sequence[Attribute],
    outputs: Sequence[Value],
) -> FuncOp:
    function = FuncOp(name, ([value.type for value in operands], list(types)), Region(), "private")
    declare_dtypes(function, [_unsigned_dtype(value) for value in model.operands], [*map(_unsigned_dtype, outputs)])
    function.attributes["fuseline.host_op"] = StringAttr(op_type)
    function.attributes["fuseline.onnx_node"] = StringAttr(base64.b64encode(model.proto.SerializeToString()).decode())
    return function


def _unsigned_dtype(value: Value) -> str:
    """The type that the IR has no word for; empty for others."""
    if not isinstance(value, Tensor):
        return ""
    return value.dtype.name if is_unsigned(value.dtype) and value.dtype.kind != "b" else ""
