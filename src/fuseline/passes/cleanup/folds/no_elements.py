"""Results without elements: nothing is computed, whatever the op.

linalg.generic ins(%x : 5x0) outs(%e : 5x0) { .. }      =>   %e
"""

from __future__ import annotations

from xdsl.dialects import linalg
from xdsl.dialects.builtin import DYNAMIC_INDEX

from fuseline.ir.build import shape_of
from fuseline.passes.cleanup.folds.worklist import Worklist


def fold_no_elements(op: linalg.ops.GenericOp | linalg.ops.FillOp, work: Worklist) -> bool:
    """An op of which no result has an element is what it was to be written to. All sizes are known: others are still
    to be compared."""
    if not op.results or any(0 not in shape_of(result) for result in op.results):
        return False
    if any(DYNAMIC_INDEX in shape_of(tensor) for tensor in (*op.inputs, *op.outputs) if hasattr(tensor.type, "shape")):
        return False
    work.replace(op, [], list(op.outputs))
    return True
