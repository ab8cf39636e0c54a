"""The plainest evaluation of a structured op: one Python step per point of the loops. What the vectorised one is
compared with."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.linalg.abstract_ops import LinalgStructuredOperation

from fuseline.evaluation.access import loop_sizes
from fuseline.evaluation.program import Program, Scope, run_op

Array = NDArray[Any]


def evaluate_point_by_point(
    op: LinalgStructuredOperation, operands: Sequence[Array], outer: Scope | None = None
) -> list[Array]:
    """The results of `op` on `operands` (inputs, then outputs)."""
    maps = [attribute.data for attribute in op.get_indexing_maps()]
    sizes = loop_sizes(maps, [np.shape(array) for array in operands], len(op.get_iterator_types()))
    arrays = [np.array(array) for array in operands]
    first = len(arrays) - len(op.outputs)
    for point in itertools.product(*(range(size) for size in sizes)):
        scope = Scope(Program(), outer, [np.int64(i) for i in point])  # pyright: ignore[reportArgumentType]
        places = [tuple(map_.eval(list(point), [])) for map_ in maps]
        scope.bind(op.body.block.args, [array[place] for array, place in zip(arrays, places, strict=True)])
        last = op.body.block.last_op
        for inner in op.body.block.ops:
            if inner is not last:
                run_op(inner, scope)
        assert last is not None
        for k, value in enumerate(last.operands):
            arrays[first + k][places[first + k]] = scope[value]
    return arrays[first:]
