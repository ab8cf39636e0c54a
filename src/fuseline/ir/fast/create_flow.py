"""Ops of the flow dialect made straight from their parts, as `create.py` makes others: a program has one of each for
every dispatch."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import LocationAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from fuseline.ir.fast import attributes
from fuseline.ir.fast.build import block_with, create_op, region_with
from fuseline.ir.fast.direct import append
from fuseline.ir.flow import DispatchOp, ExecutableEndOp, ExecutableExportOp, ExecutableOp, entry_points

_PUBLIC, _PRIVATE = StringAttr("public"), StringAttr("private")


def create_executable(name: str, entry: FuncOp, location: LocationAttr) -> ExecutableOp:
    """A private executable whose public entry point is `entry`; both are called `name`."""
    symbol = StringAttr(name)
    export: dict[str, Attribute] = {
        "sym_name": symbol,
        "function_ref": SymbolRefAttr(symbol),
        "sym_visibility": _PUBLIC,
    }
    inner, outer = block_with(()), block_with(())
    append(entry, inner)
    append(create_op(ExecutableExportOp, (), (), export), outer)
    append(create_op(ModuleOp, (), (), {}, [region_with(inner)]), outer)
    append(create_op(ExecutableEndOp, (), (), {}), outer)
    return create_op(
        ExecutableOp, (), (), {"sym_name": symbol, "sym_visibility": _PRIVATE}, [region_with(outer)], location
    )


def create_dispatch(
    executable: str,
    entry: str,
    arguments: Sequence[SSAValue],
    types: Sequence[Attribute],
    argument_dims: Sequence[SSAValue],
    result_dims: Sequence[SSAValue],
) -> DispatchOp:
    """A launch of `entry` in `executable` with `arguments`; `*_dims` are the unknown sizes of the arguments and of the
    results, in order."""
    properties: dict[str, Attribute] = {
        "entry_points": entry_points(executable, entry),
        "operandSegmentSizes": attributes.segments((0, len(arguments), len(argument_dims), len(result_dims))),
    }
    return create_op(DispatchOp, [*arguments, *argument_dims, *result_dims], types, properties)
