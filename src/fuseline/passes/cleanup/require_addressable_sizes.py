"""Pass `require-addressable-sizes`: no tensor has more elements than a process can address.

A declared size of 2^62, or a padding by as much, is well-formed and can be computed with, but sizes, strides and byte
counts of such a tensor leave 64 bits. What is not known before a run is checked when the program is fed.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.shapes import argument_attribute
from fuseline.errors import OutOfMemoryError
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.provenance import node_names

LARGEST = 1 << 47
"""Elements: user space has 2^47 bytes (x86-64 with four levels of page tables)."""


@dataclass(frozen=True)
class RequireAddressableSizesPass(ModulePass):
    """Changes nothing. Raises FuselineError: E0405, naming the node, for a tensor whose known sizes multiply to 2^47
    and more."""

    name = "require-addressable-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every type once. Raises OutOfMemoryError: E0405 for a tensor that no memory can hold."""
        seen: dict[int, object] = {}
        for inner in (op, *ops_inside(op)):
            for value in (
                *inner.results,
                *(argument for region in inner.regions for block in region.blocks for argument in block.args),
            ):
                if id(value.type) not in seen:
                    seen[id(value.type)] = value.type
                    _check(value, inner)


def _check(value: SSAValue, op: Operation) -> None:
    if not isinstance(value.type, TensorType):
        return
    shape = value.type.get_shape()
    if prod(max(size, 1) for size in shape) >= LARGEST:  # 0 beside 2^62 would leave 64 bits in a stride
        sizes = "x".join("?" if size < 0 else str(size) for size in shape)
        node = _feed_name(value, op) or node_names(op) or value.name_hint
        raise OutOfMemoryError(
            "E0405", f"a tensor of {sizes} elements is larger than memory can be", node=node, hint="use smaller sizes"
        )


def _feed_name(value: SSAValue, op: Operation) -> str | None:
    """What a feed is called; None for what is no argument of a function."""
    if not isinstance(value, BlockArgument) or not isinstance(op, FuncOp):
        return None
    given = argument_attribute(op, value.index, "fuseline.name")
    return given.data if isinstance(given, StringAttr) else None


EXPORT = RequireAddressableSizesPass
