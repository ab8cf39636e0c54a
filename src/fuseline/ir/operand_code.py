"""What a declared host operator computes of its operands before it runs, as an attribute of the declaration.

    func.func private @host.index.0(tensor<2xi32>) -> index attributes {fuseline.operand_code =
        ["element i32 0 1", "constant i32 9", "minsi i32 0 1", "extsi i64 2", "= int64 [] 3"]}

One text for each operation of the code (`fuseline.scalar_code`), then one for each operand that the operator gets: what
it is made of, or the number of a tensor alone (`"= 0"`). The tensors that the code reads are the operands that are no
index values, its sizes those that are, both in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, IndexType, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from fuseline.ir.fast import attributes
from fuseline.scalar_code import Computed, ScalarCode, check_code, code_from_json, types_of

CODE_ATTRIBUTE = "fuseline.operand_code"

_OPERAND = "="


def declare_code(function: FuncOp, code: ScalarCode) -> None:
    """Say what `function` computes; `code` has no sizes of its own."""
    types = types_of(code.ops)
    ops = [f"{op.name} {type_} {_listed(op.operands)}" for op, type_ in zip(code.ops, types, strict=True)]
    operands = [f"{_OPERAND} {_operand_text(operand)}" for operand in code.operands]
    function.attributes[CODE_ATTRIBUTE] = ArrayAttr([StringAttr(line) for line in (*ops, *operands)])


def code_of(function: FuncOp) -> ScalarCode | None:
    """What `function` computes, None where it says nothing. Raises ValueError for what is no code, or reads what the
    function is not given."""
    said = function.attributes.get(CODE_ATTRIBUTE)
    if said is None:
        return None
    lines = [line.data for line in said.data if isinstance(line, StringAttr)] if isinstance(said, ArrayAttr) else []
    if not isinstance(said, ArrayAttr) or len(lines) < len(said.data):
        raise ValueError("the code is no list of texts")
    words = [line.split() for line in lines]
    ops, operands = ([line for line in words if (line[:1] == [_OPERAND]) == last] for last in (False, True))
    code = code_from_json([[*map(_op, ops)], [_operand(line[1:]) for line in operands], []], lambda size: size)
    if [line[1] for line in ops] != types_of(code.ops):
        raise ValueError("operations of other types than they have")
    given = list(function.function_type.inputs)
    tensors = [_elements(type_) for type_ in given if not isinstance(type_, IndexType)]
    check_code(code, tensors, len(given) - len(tensors))
    return code


def _operand_text(operand: int | Computed) -> str:
    if isinstance(operand, int):
        return str(operand)
    return f"{operand.dtype} [{','.join(map(str, operand.shape))}] {_listed(operand.elements)}".rstrip()


def _listed(numbers: Sequence[int]) -> str:
    return " ".join(map(str, numbers))


def _op(words: Sequence[str]) -> Any:
    """The JSON form of an operation."""
    name, bits, *operands = words
    return [name, int(bits[1:]), [*map(int, operands)]]


def _operand(words: Sequence[str]) -> Any:
    if len(words) == 1:
        return int(words[0])
    dtype, shape, *elements = words
    sizes = shape.removeprefix("[").removesuffix("]")
    return [dtype, [*map(int, sizes.split(","))] if sizes else [], [*map(int, elements)]]


def _elements(type_: Attribute) -> tuple[str, int] | None:
    if not isinstance(type_, TensorType) or not attributes.is_static(type_):
        return None
    element = type_.get_element_type()
    return "i64" if isinstance(element, IndexType) else str(element), prod(attributes.shape(type_))
