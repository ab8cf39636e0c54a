"""Element types of a node's inputs and outputs against its schema and against what the model declares; sizes that
cannot be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx import defs

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import from_onnx, holds
from fuseline.frontends.onnx.host_values import Value
from fuseline.frontends.onnx.operator_sets import NEWEST, is_earlier, version_of
from fuseline.frontends.onnx.tensors import Tensor

_TEXTS = {"float32": "float", "float64": "double"}


@dataclass(frozen=True)
class _Formal:
    """One input of a schema: its type variable, the element types it may have, and whether several inputs that it
    stands for agree."""

    name: str
    variable: str
    allowed: frozenset[str]
    alike: bool


def check_inputs(op_type: str, domain: str, opsets: Mapping[str, int], inputs: Sequence[Value | None]) -> None:
    """Refuse element types that the operator does not take, or that differ where it has one type variable.

    A type that only a later version of the operator takes is let through: nothing else can be meant.

    Raises:
        FuselineError: E0105.
    """
    version, mixed = version_of(opsets, domain, op_type), is_earlier(opsets, domain, op_type)
    formals = _formals(op_type, version, domain)
    bound: dict[str, np.dtype[Any]] = {}
    for number, value in enumerate(inputs if formals else ()):
        formal = formals[min(number, len(formals) - 1)]
        if not isinstance(value, Tensor):
            continue
        text = f"tensor({_TEXTS.get(value.dtype.name, value.dtype.name)})"
        if text not in formal.allowed:
            raise FuselineError(
                "E0105",
                f"input {number} ({formal.name}) is {value.dtype.name}, which {op_type} (version {version}) does not "
                f"take",
            )
        if formal.alike and not mixed and bound.setdefault(formal.variable, value.dtype) != value.dtype:
            other = bound[formal.variable].name
            raise FuselineError(
                "E0105",
                f"input {number} ({formal.name}) is {value.dtype.name}, another one {other}: {op_type} takes them of "
                f"one type",
            )


def check_output(declared: ir.Value, value: Value) -> None:
    """Refuse what the model declares with another element type than it is computed in, and sizes that no tensor has.

    Raises:
        FuselineError: E0105, E0107 for a size below 0.
    """
    if any(isinstance(size, int) and size < 0 for size in value.dims or ()):
        raise FuselineError(
            "E0107", f"{declared.name!r} would have the shape {list(value.dims or ())}", hint="sizes are at least 0"
        )
    if not isinstance(value, Tensor) or declared.dtype is None or not isinstance(declared.type, ir.TensorType):
        return
    if declared.dtype != ir.DataType.UNDEFINED and (
        not holds(declared.dtype) or from_onnx(declared.dtype) != value.dtype
    ):
        raise FuselineError(
            "E0105",
            f"{declared.name!r} is declared {declared.dtype.name.lower()}, but is computed in {value.dtype.name}",
        )


@cache
def _formals(op_type: str, version: int, domain: str) -> tuple[_Formal, ...]:
    """The inputs of a schema; none where the standard does not have the operator."""
    if not defs.has(op_type, version, domain):
        return ()
    schema = defs.get_schema(op_type, version, domain)
    newest = defs.get_schema(op_type, max(version, NEWEST.get(domain, 1)), domain)
    later = {formal.name: set[str](formal.types) for formal in newest.inputs}
    return tuple(
        _Formal(
            formal.name,
            formal.type_str,
            frozenset(formal.types) | later.get(formal.name, set()),
            formal.option != defs.OpSchema.FormalParameterOption.Variadic or formal.is_homogeneous,
        )
        for formal in schema.inputs
    )
