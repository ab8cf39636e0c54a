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
from fuseline.targets.iree.flow.lanes import put_channels_innermost
from fuseline.targets.iree.flow.parameters import INLINE_BYTES, weights_to_parameters
from fuseline.targets.iree.flow.regions import inline_executables

KEPT = ("fuseline.name",)
"""Attributes of ours that stay: IREE takes no notice of them, and they say what the model calls things."""


@dataclass(frozen=True, eq=False)
class FlowProgram:
    """`text`, and the arrays of its parameters by key; `regions`: the executable that each region of the text was, in
    order; `changed`: those of them whose regions are not as fusion formed them, for the sake of IREE's code."""

    text: str
    parameters: Mapping[str, NDArray[Any]]
    regions: Sequence[str] = ()
    changed: frozenset[str] = frozenset()


def flow_program(
    module: ModuleOp,
    ctx: CompilerContext,
    loose: Collection[str] = (),
    apart: Collection[str] = (),
    *,
    lanes: bool = False,
) -> FlowProgram:
    """The program of `module`, whose dispatches are outlined, and which stays as it is. The ops of executables in
    `loose` stand outside of any region: IREE forms their dispatches; parts of concats among them are written by the
    regions that make them. `lanes`: products have their channels innermost. Neither changes executables in `apart`.

    Raises FuselineError: E0306 for a value that IREE has no type for, and for an operator of the host.
    """
    require_no_host(module)
    copy = module.clone()
    regions = inline_executables(copy, loose)
    regions, changed = _for_iree(copy, regions, apart, lanes)
    parameters = weights_to_parameters(copy, ctx.resources)
    drop_attributes(copy)
    return FlowProgram(print_module(copy, ctx, embed_limit=INLINE_BYTES), parameters, regions, changed)


def _for_iree(
    module: ModuleOp, regions: Sequence[str], apart: Collection[str], lanes: bool
) -> tuple[list[str], frozenset[str]]:
    """Change regions to what IREE makes better code of; answers which executable each region is now, and those that
    were changed."""
    named: dict[Operation, str] = dict(zip(_regions_in(module), regions, strict=True))
    left = {op for op, name in named.items() if name in apart}
    changed = set(concats_in_place(module, left))
    for op, reader in (put_channels_innermost(module, left) if lanes else {}).items():
        named[op] = named[reader]
        changed.add(op)
    return [named[op] for op in _regions_in(module)], frozenset(named[op] for op in changed)


def _regions_in(module: ModuleOp) -> list[Operation]:
    return [op for op in module.walk() if isinstance(op, DispatchRegionOp)]


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
