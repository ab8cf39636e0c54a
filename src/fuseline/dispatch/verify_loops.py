"""Derive the loops of all dispatches of a program afresh, and compare: what `verify-each` asks beside the rules of the
ops."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, require_match
from fuseline.dispatch.loop_claims import require_shared
from fuseline.dispatch.loops_attribute import from_attribute
from fuseline.dispatch.region_names import region_name
from fuseline.dispatch.view import DispatchView
from fuseline.ir.context import CompilerContext
from fuseline.ir.flow import DispatchRegionOp


def verify_loops(module: ModuleOp, ctx: CompilerContext) -> None:
    """Raises FuselineError that names a dispatch whose `fuseline.loops` cannot be those of its body (E0302), or are not
    shared by it (E0901)."""
    for node, attribute, body, shapes in _claims(module, ctx):
        loops = from_attribute(attribute, shapes.symbols, node)
        require_match(loops, body, shapes, node)
        require_shared(loops, body, shapes, node)


def _claims(module: ModuleOp, ctx: CompilerContext) -> Iterator[tuple[str, Attribute, Block, ShapeAnalysis]]:
    """Per dispatch that says its loops: its name, what it says, its body, and the sizes in it."""
    shapes: ShapeAnalysis | None = None
    for op in module.walk():
        attribute = op.attributes.get(LOOPS_ATTRIBUTE)
        if attribute is None:
            continue
        if isinstance(op, DispatchRegionOp):
            shapes = shapes or ShapeAnalysis(ctx.symbols)
            yield region_name(op), attribute, op.body.block, shapes
        elif isinstance(op, FuncOp):
            yield op.sym_name.data, attribute, op.body.block, DispatchView(op).shapes
