"""The text of a program for IREE: `flow.dispatch.region`s as fusion formed them, around them ops of `tensor`, weights
as parameters. iree-opt 3.13 verifies it and iree-compile 3.13 takes it as it takes any input; a region is one dispatch
there.

What only our passes know (the loops that members share, roots, sizes by name) is left out. What IREE has no word for is
refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.flow import DispatchRegionOp, HostType
from fuseline.ir.provenance import node_names
from fuseline.ir.text import print_module
from fuseline.targets.iree.flow.concats import concats_in_place
from fuseline.targets.iree.flow.parameters import INLINE_BYTES, weights_to_parameters
from fuseline.targets.iree.flow.regions import inline_executables

KEPT = ("fuseline.name",)
"""Attributes of ours that stay: IREE takes no notice of them, and they say what the model calls things."""


@dataclass(frozen=True, eq=False)
class FlowProgram:
    """`text`, and the arrays of its parameters by key; `regions`: the executable that each region of the text was, in
    order; `in_place`: those of them whose regions write or read a part of a concat where it belongs."""

    text: str
    parameters: Mapping[str, NDArray[Any]]
    regions: Sequence[str] = ()
    in_place: frozenset[str] = frozenset()


def flow_program(
    module: ModuleOp, ctx: CompilerContext, loose: Collection[str] = (), apart: Collection[str] = ()
) -> FlowProgram:
    """The program of `module`, whose dispatches are outlined, and which stays as it is. The ops of executables in
    `loose` stand outside of any region: IREE forms their dispatches; parts of concats among them are written by the
    regions that make them, those of executables in `apart` excepted.

    Raises FuselineError: E0306 for a value that IREE has no type for, and for an operator of the host.
    """
    require_no_host(module)
    copy = module.clone()
    regions = inline_executables(copy, loose)
    in_place = _write_concats(copy, regions, apart)
    parameters = weights_to_parameters(copy, ctx.resources)
    drop_attributes(copy)
    return FlowProgram(print_module(copy, ctx, embed_limit=INLINE_BYTES), parameters, regions, in_place)


def _write_concats(module: ModuleOp, regions: Sequence[str], apart: Collection[str]) -> frozenset[str]:
    """Write parts of concats in place; answers the executables whose regions write or read a part of a larger
    tensor."""
    named = dict(zip((op for op in module.walk() if isinstance(op, DispatchRegionOp)), regions, strict=True))
    changed = concats_in_place(module, {op for op, name in named.items() if name in apart})
    return frozenset(named[op] for op in changed if isinstance(op, DispatchRegionOp))


def require_no_host(module: ModuleOp) -> None:
    """Raises FuselineError (E0306) for an operator that runs on the host: IREE's dialect has no such op."""
    declared = {op.sym_name.data for op in module.ops if isinstance(op, FuncOp) and op.is_declaration}
    for op in module.walk():
        if isinstance(op, CallOp) and op.callee.root_reference.data in declared:
            name = op.callee.root_reference.data
            what = name.split(".")[1] if name.startswith("host.") else name
            hint = "--target iree runs such operators between dispatches"
            message = f"{what} runs on the host, which the flow dialect has no op for"
            raise FuselineError("E0306", message, node=node_names(op), hint=hint)
        if any(isinstance(value.type, HostType) for value in _values(op)):
            raise FuselineError("E0306", "IREE has no type for a value of the host", node=node_names(op) or None)


def _values(op: Operation) -> Iterator[SSAValue]:
    """What an op reads and makes, arguments of its blocks included."""
    yield from (*op.operands, *op.results)
    for region in op.regions:
        for block in region.blocks:
            yield from block.args


def drop_attributes(module: ModuleOp) -> None:
    """Leave of our attributes only those in `KEPT`."""
    for op in module.walk():
        for name in _ours(op.attributes):
            del op.attributes[name]
        if isinstance(op, FuncOp):
            op.arg_attrs, op.res_attrs = _kept(op.arg_attrs), _kept(op.res_attrs)


def _ours(attributes: Mapping[str, Attribute]) -> list[str]:
    return [name for name in attributes if name.startswith("fuseline.") and name not in KEPT]


def _kept(entries: Any) -> ArrayAttr[DictionaryAttr] | None:
    if entries is None:
        return None
    return ArrayAttr(list(_kept_entries(entries)))


def _kept_entries(entries: ArrayAttr[DictionaryAttr]) -> Iterator[DictionaryAttr]:
    for entry in entries:
        yield DictionaryAttr({name: value for name, value in entry.data.items() if name not in _ours(entry.data)})
