"""Which tensors of a declared function are unsigned: those of the IR have no sign, and what a declaration says of its
arguments is lost when it is printed and read again.

    func.func private @host.Unique.0(tensor<5xi64>) -> tensor<?xi64>
        attributes {fuseline.operand_dtypes = ["uint64"], fuseline.result_dtypes = ["uint64"]}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp

OPERANDS, RESULTS = "fuseline.operand_dtypes", "fuseline.result_dtypes"


def declare_dtypes(function: FuncOp, operands: Sequence[str], results: Sequence[str]) -> None:
    """Say the NumPy names of the types of all operands and results; empty ones are those of the IR."""
    for key, names in ((OPERANDS, operands), (RESULTS, results)):
        if any(names):
            function.attributes[key] = ArrayAttr([StringAttr(name) for name in names])


def operand_dtypes(function: FuncOp) -> list[str | None]:
    """The name of each operand's type, None where that of the IR says it."""
    return _names(function, OPERANDS, len(function.function_type.inputs))


def result_dtypes(function: FuncOp) -> list[str | None]:
    """The same of results."""
    return _names(function, RESULTS, len(function.function_type.outputs))


def _names(function: FuncOp, key: str, count: int) -> list[str | None]:
    found: Any = function.attributes.get(key)
    return [item.data or None for item in found.data] if isinstance(found, ArrayAttr) else [None] * count
