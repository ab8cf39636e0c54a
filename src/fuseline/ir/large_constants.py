"""Large constants written out in a text (`dense<"0x..">`): cut out before the parser sees them, which takes hundreds of
bytes for each letter, and kept as arrays."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.element_types import numpy_dtype
from fuseline.ir.resource_section import resource_constants

LARGE = 1 << 14
"""Digits from which on a constant is cut out."""

_START = 'dense<"0x'
_NAME = "fuseline.digits."


def cut_constants(text: str) -> tuple[str, dict[str, str]]:
    """The text with a name (`dense_resource<..>`) in place of each large constant, and the digits of these; lines stay
    the same.

    >>> cut_constants("dense<0> : tensor<2xi8>")
    ('dense<0> : tensor<2xi8>', {})
    """
    pieces: list[str] = []
    digits: dict[str, str] = {}
    done, start = 0, text.find(_START)
    while start >= 0:
        first = start + len(_START)
        end = text.find('"', first)
        if end - first >= LARGE:
            name = f"{_NAME}{len(digits)}"
            digits[name] = text[first:end]
            pieces += [text[done:start], f"dense_resource<{name}"]
            done = end + 1
        start = text.find(_START, first)
    return ("".join([*pieces, text[done:]]), digits) if digits else (text, digits)


def store_constants(module: Operation, digits: dict[str, str], ctx: CompilerContext) -> None:
    """Put the constants that were cut out into `ctx.resources`. Raises FuselineError (E0301) for one of another size
    than its type says."""
    for attribute in resource_constants(module) if digits else ():
        name = attribute.resource_handle.data
        if name in digits and isinstance(attribute.type, TensorType):
            ctx.resources[name] = _decoded(digits.pop(name), attribute.type)


def _decoded(digits: str, type_: TensorType) -> NDArray[np.generic]:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    """The elements, little-endian; truth values are a byte each, or eight in a byte."""
    dtype, shape = numpy_dtype(type_.get_element_type()), type_.get_shape()
    count = int(np.prod(shape, dtype=np.int64))
    try:
        data = bytes.fromhex(digits)
    except ValueError as error:
        raise FuselineError("E0301", "a constant is not written in pairs of hexadecimal digits") from error
    if dtype.kind == "b" and len(data) == -(-count // 8):
        return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little", count=count).astype(bool).reshape(shape)
    if len(data) != count * dtype.itemsize:
        raise FuselineError("E0301", f"a constant of type {type_} has {len(data)} bytes")
    return np.frombuffer(data, dtype).reshape(shape)
