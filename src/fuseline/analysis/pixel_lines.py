"""Windows over images whose channels come first: whether the pixels of a line are neighbours, as the loops of the
result are written."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.operand_access import Segment
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_generic


def runs_along_lines(root: StructuredOp, segment: Segment, shapes: ShapeAnalysis) -> bool:
    """Whether a window of known sizes goes over lines of pixels that are neighbours, its lines copied one by one."""
    extents = root.loops(shapes)
    window = [loop for loop in root.reduction if extents[loop] != 1]
    if len(window) > 2 or segment.access.floordiv_terms:
        return False
    for written in _written(root):
        moving = [loop for loop in written if extents[loop] != 1]
        known = all(isinstance(extents[loop], int) for loop in (*moving[-2:], *window))
        if known and len(moving) > 1 and segment.access.stride(moving[-1]) == 1:
            return True
    return False


def _written(root: StructuredOp) -> Iterator[list[int]]:
    """The orders in which the loops of a root are written: by itself, and by an only reader that turns its result."""
    loops = [expr.position for expr in root.output_maps[0].results if isinstance(expr, AffineDimExpr)]
    yield loops
    uses = list(root.op.results[0].uses)
    reader = uses[0].operation if len(uses) == 1 else None
    if reader is None or not is_generic(reader) or len(loops) != len(root.output_maps[0].results):
        return
    view = StructuredOp(reader)
    loop_of = {expr: loop for expr, loop in zip(view.maps[uses[0].index].results, loops, strict=True)}
    turned = [loop_of.get(expr) for expr in view.output_maps[0].results]
    if not view.reduction and uses[0].index < len(view.inputs):
        yield [loop for loop in turned if loop is not None]
