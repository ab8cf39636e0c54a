"""What elementwise ops make of every number that 8 bits hold: two that do the same are the same, however written."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import linalg
from xdsl.ir import SSAValue

from fuseline.analysis.stored_integers import STORED_BITS
from fuseline.analysis.structured import yielded
from fuseline.evaluation.program import Array, Program, Scope, run_op
from fuseline.ir.fast.direct import body_of, ops_of


def all_numbers() -> NDArray[np.int8]:
    """Each number of 8 bits."""
    return np.arange(1 << STORED_BITS).astype(np.uint8).view(np.int8)


def numbers_behind(ops: Iterable[linalg.ops.GenericOp]) -> Array:
    """What `ops`, each of which reads the one before element by element, make of each number."""
    numbers: Array = all_numbers()
    for op in ops:
        numbers = _computed(op, numbers)
    return numbers


def _computed(op: linalg.ops.GenericOp, numbers: Array) -> Array:
    scope = Scope(Program())
    scope.values[body_of(op).args[0]] = numbers
    last: SSAValue = yielded(op)[0]
    with np.errstate(all="ignore"):
        for inner in ops_of(body_of(op))[:-1]:
            run_op(inner, scope)
    return np.broadcast_to(np.asarray(scope[last]), numbers.shape)
