"""What differs first between two pieces of code that look alike (`loose_key`), in words."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation

from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import body_of, operands_of
from fuseline.ir.fast.nesting import ops_inside

LONGEST = 80
"""Letters of an attribute in an explanation."""


def first_difference(one: FuncOp, other: FuncOp) -> str:
    """The first extent, or attribute of an op, that is not the same; empty where there is none but constants."""
    for number, (a, b) in enumerate(zip(body_of(one).args, body_of(other).args, strict=False)):
        if a.type != b.type:
            return f"argument {number} is {_text(a.type)}, {_text(b.type)}"
    found = (text for a, b in zip(_ops(one), _ops(other), strict=False) for text in _of_ops(a, b))
    return next(found, "")


def _ops(entry: FuncOp) -> list[Operation]:
    return [op for op in ops_inside(entry) if type(op) is not ConstantOp]


def _of_ops(one: Operation, other: Operation) -> Iterator[str]:
    if one.name != other.name:
        yield f"an op is {one.name}, {other.name}"
    for a, b in zip((*operands_of(one), *one.results), (*operands_of(other), *other.results), strict=False):
        if a.type != b.type:
            yield f"a value of {one.name} is {_text(a.type)}, {_text(b.type)}"
    for name, value in {**one.properties, **one.attributes}.items():
        said = other.properties.get(name, other.attributes.get(name))
        if value != said:
            yield f"{name} of {one.name} is {_text(value)}, {_text(said)}"


def _text(attribute: Attribute | None) -> str:
    text = attributes.text(attribute) if attribute is not None else "nothing"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}.."
