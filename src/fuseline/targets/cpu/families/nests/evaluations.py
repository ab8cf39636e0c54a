"""How much code the lanes of a schedule make: values that are not stored are evaluated wherever they are read."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr

from fuseline.analysis.structured import StructuredOp, captured_tensors, is_generic
from fuseline.targets.cpu.families.nests.recompute_cost import body_cost
from fuseline.targets.cpu.families.nests.stages import Staging

MOST_OPERATIONS = 2000
"""Operations per point that may be written for vectors where scalars would do: some 20 bytes each."""

_BORDERED = (tensor.PadOp, tensor.ConcatOp, tensor.InsertSliceOp)
"""What a run of lanes meets in two ways: all lanes inside of one part, or lane by lane."""


def operations_per_point(staging: Staging, most: int = MOST_OPERATIONS) -> int:
    """About how many operations are written for one point of every stage, with lanes; counting ends where they are more
    than `most`.

    Readers at the same loops share what they read; slices, gathers and borders ask elsewhere every time, so that
    cascades of them double.
    """
    shared, elsewhere = dict[SSAValue, int](), dict[SSAValue, int]()
    total = 0
    for op in reversed([op for op in staging.ops if op in staging.live]):
        count = max((_asked(staging, result, shared, elsewhere) for result in op.results), default=1)
        total += count * body_cost(op)
        if total > most:
            break
        for value, alike in _reads(op):
            if alike:
                shared[value] = max(shared.get(value, 0), count)
            else:
                elsewhere[value] = elsewhere.get(value, 0) + count * (2 if isinstance(op, _BORDERED) else 1)
    return total


def _asked(staging: Staging, value: SSAValue, shared: dict[SSAValue, int], elsewhere: dict[SSAValue, int]) -> int:
    return 1 if value in staging.stored else shared.get(value, 0) + elsewhere.get(value, 0)


def _reads(op: Operation) -> Iterator[tuple[SSAValue, bool]]:
    """What an op reads, and whether at its own loops."""
    if not is_generic(op):
        yield from ((value, False) for value in op.operands if isinstance(value.type, TensorType))
        return
    structured = StructuredOp(op)
    for value, map_ in zip(structured.inputs, structured.input_maps, strict=True):
        yield value, all(isinstance(expr, AffineDimExpr | AffineConstantExpr) for expr in map_.results)
    yield from ((value, False) for value in captured_tensors(op))
