"""How much code an evaluation of an op is: operations of about 20 bytes, for several vectors and what is left of
them."""

from __future__ import annotations

from xdsl.dialects import linalg
from xdsl.ir import Operation

from fuseline.analysis.structured import body_ops

ELEMENTARY = 20
"""Operations of a function like exp, several vectors and a rest of them, in terms of one addition of the same (about 20
bytes)."""

DEARER = {
    "math.sin": 400,
    "math.cos": 400,
    "math.tan": 400,
    "math.powf": 180,
    "math.sinh": 160,
    "math.cosh": 160,
    "math.asinh": 180,
    "math.acosh": 180,
    "math.atanh": 100,
    "math.asin": 110,
    "math.acos": 110,
    "math.atan": 70,
    "math.atan2": 90,
    "arith.remf": 100,
}
"""Functions that take arguments of any size: measured like `ELEMENTARY`, on AVX2 and AVX-512."""

CHEAP = frozenset(
    f"math.{name}"
    for name in ("absf", "absi", "floor", "ceil", "roundeven", "fma", "sqrt", "rsqrt", "trunc", "copysign")
)


def body_operations(op: linalg.ops.GenericOp) -> int:
    """Operations of one evaluation of the body, at least 1."""
    return 1 + sum(_weight(inner) for inner in body_ops(op))


def _weight(op: Operation) -> int:
    known = DEARER.get(op.name)
    if known is not None:
        return known
    return ELEMENTARY if op.name.startswith("math.") and op.name not in CHEAP else 1
