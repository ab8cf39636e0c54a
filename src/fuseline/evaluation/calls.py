"""Calls and flow: functions, host ops, dispatch regions and outlined executables."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.traits import SymbolTable

from fuseline.evaluation.program import (
    Array,
    Program,
    Scope,
    box,
    call_function,
    evaluates,
    failure,
    is_integer,
    lookup,
    unbox,
)
from fuseline.ir import flow
from fuseline.ir.declared_types import operand_dtypes


@evaluates("func.call")
def call(op: Operation, scope: Scope) -> list[Array]:
    """A function of the module, or a host op through the caller's `host_call`."""
    assert isinstance(op, func.CallOp)
    callee = lookup(op, op.callee.root_reference.data)
    if not isinstance(callee, func.FuncOp):
        raise failure(op, f"no function {op.callee}")
    operands = [scope[value] for value in op.operands]
    return (
        _host(op, callee, operands, scope.program)
        if callee.is_declaration
        else call_function(callee, operands, scope.program)
    )


def _host(op: Operation, callee: func.FuncOp, operands: list[Array], program: Program) -> list[Array]:
    if program.host_call is None:
        raise failure(
            op, f"{callee.sym_name.data} runs on the host and no host was given", "pass host_call to the evaluation"
        )
    types = callee.function_type.inputs
    arguments = [
        unbox(x) if isinstance(t, flow.HostType) else _as_declared(x, name)
        for x, t, name in zip(operands, types, operand_dtypes(callee), strict=True)
    ]
    results = program.host_call(callee, arguments)
    if len(results) != len(op.results):
        raise failure(op, f"{callee.sym_name.data} gave {len(results)} results, expected {len(op.results)}")
    return [_stored(result, value.type, program) for result, value in zip(results, op.results, strict=True)]


def _as_declared(array: Array, name: str | None) -> Array:
    """An operand under the dtype its declaration names."""
    if name is None or not is_integer(array.dtype):
        return array
    return np.ascontiguousarray(array).view(name).reshape(array.shape)  # a scalar would come out with an axis


def _stored(result: Any, type_: Any, program: Program) -> Array:
    if isinstance(type_, flow.HostType):
        return box(result)
    array, dtype = np.asarray(result), program.dtype(type_)
    if is_integer(array.dtype) and is_integer(dtype) and array.dtype.itemsize == dtype.itemsize:
        return np.ascontiguousarray(array).view(dtype).reshape(array.shape)
    return array.astype(dtype, copy=False)


@evaluates("flow.dispatch.region")
def dispatch_region(op: Operation, scope: Scope) -> list[Array]:
    """The region's ops, in a scope that sees the values around it."""
    assert isinstance(op, flow.DispatchRegionOp)
    return scope.program.run_block(op.body.block, Scope(scope.program, scope))


@evaluates("flow.dispatch")
def dispatch(op: Operation, scope: Scope) -> list[Array]:
    """The entry function of an outlined executable; raises E0305 when there is none."""
    assert isinstance(op, flow.DispatchOp)
    return call_function(entry_function(op), [scope[value] for value in op.arguments], scope.program)


def entry_function(op: flow.DispatchOp) -> func.FuncOp:
    """The function that a dispatch launches; raises E0305 when the executable has no such entry."""
    executable = lookup(op, op.executable)
    if isinstance(executable, flow.ExecutableOp):
        for inner in executable.body.block.ops:
            entry = SymbolTable.lookup_symbol(inner, op.entry) if isinstance(inner, ModuleOp) else None
            if isinstance(entry, func.FuncOp):
                return entry
    raise failure(op, f"no executable entry @{op.executable}::@{op.entry}")
