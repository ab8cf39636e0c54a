"""The op of a dispatch that makes the first NaN or infinity of what is finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import FuncOp
from xdsl.traits import IsTerminator

from fuseline.evaluation.program import Program, Scope, fit_argument, run_op
from fuseline.ir.provenance import node_names
from fuseline.verify.check.agreement import is_float

Array = NDArray[Any]


def not_finite(array: Array) -> int:
    """How many elements are NaN or infinite."""
    return int(array.size - np.count_nonzero(np.isfinite(array.astype(np.float64)))) if is_float(array) else 0


def first_op(entry: FuncOp, operands: Sequence[Array]) -> tuple[str, str]:
    """Name and source nodes of the first op of `entry` whose result is not finite; empty where none is, computed in the
    types that the dispatch has."""
    scope = Scope(Program())
    scope.bind(entry.args, [fit_argument(entry, i, np.asarray(x), scope.program) for i, x in enumerate(operands)])
    with np.errstate(all="ignore"):
        for op in entry.body.block.ops:
            if op.has_trait(IsTerminator):
                break
            run_op(op, scope)
            if op.name != "tensor.empty" and any(not_finite(np.asarray(scope[result])) for result in op.results):
                return op.name, node_names(op) or ""
    return "", ""
