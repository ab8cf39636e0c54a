"""What a comparator of a sort compares, where that are keys one after the other.

    lt(x, y)                                            one key, upwards
    select(eq(x, y), lt(p, q), lt(x, y)), or            two keys
    or(lt(x, y), and(eq(x, y), lt(p, q)))

A key may pass through the ops that make one of both zeros and of all NaN (`select(eq(x, 0), 0, x)`), as jax writes it.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import BlockArgument, OpResult, SSAValue

from fuseline.frontends.onnx.dtypes import is_float
from fuseline.frontends.stablehlo.reading import text_of
from fuseline.frontends.stablehlo.regions import Region
from fuseline.frontends.stablehlo.types import tensor_type_of
from fuseline.ir.hlo.ops import HloOp


@dataclass(frozen=True)
class Key:
    """Operand number `operand`, its largest elements first or last; `canonical`: zeros of both signs are one, and all
    NaN are the largest."""

    operand: int
    largest: bool
    canonical: bool


def keys_of(region: Region) -> list[Key]:
    """The keys in order of significance; none for a comparator that does something else."""
    last = region.block.last_op
    found = None if last is None or len(last.operands) != 1 else _keys(last.operands[0], region)
    return found or []


def _keys(value: SSAValue, region: Region) -> list[Key] | None:
    op = _maker(value)
    if op is None:
        return None
    if op.name == "stablehlo.compare":
        key = _ordered(op, region)
        return None if key is None else [key]
    if op.name == "stablehlo.select":
        return _lexicographic(op.operands[0], op.operands[1], op.operands[2], region)
    if op.name == "stablehlo.or":
        first, rest = op.operands
        both = _maker(rest)
        if both is not None and both.name == "stablehlo.and":
            return _lexicographic(both.operands[0], both.operands[1], first, region)
    return None


def _lexicographic(same: SSAValue, then: SSAValue, first: SSAValue, region: Region) -> list[Key] | None:
    """The keys of `first`, and where `same` says that it is undecided, those of `then`."""
    head, tail, test = _keys(first, region), _keys(then, region), _maker(same)
    if head is None or tail is None or len(head) != 1 or test is None or test.name != "stablehlo.compare":
        return None
    if text_of(test.attribute("comparison_direction")) != "EQ" or _operand_pair(test, region) is None:
        return None
    pair = _operand_pair(test, region)
    return [*head, *tail] if pair is not None and pair[0] // 2 == head[0].operand else None


def _maker(value: SSAValue) -> HloOp | None:
    return value.op if isinstance(value, OpResult) and isinstance(value.op, HloOp) else None


def _operand_pair(op: HloOp, region: Region) -> tuple[int, int] | None:
    """The numbers of the arguments of the region that a comparison compares, an operand's two."""
    left, right = (_argument(value, region) for value in op.operands)
    if left is None or right is None or left == right or left // 2 != right // 2:
        return None
    return left, right


def _ordered(op: HloOp, region: Region) -> Key | None:
    pair, direction = _operand_pair(op, region), text_of(op.attribute("comparison_direction"))
    if pair is None or direction not in ("LT", "GT"):
        return None
    canonical = [_is_canonical(value) for value in op.operands]
    dtype = tensor_type_of(op.operands[0].type)[0]
    total = text_of(op.attribute("compare_type")) == "TOTALORDER"
    if None in canonical or canonical[0] != canonical[1] or (is_float(dtype) and not total):
        return None  # where NaN meets NaN, a comparison of floats is no order
    upwards = (direction == "LT") == (pair[0] < pair[1])
    return Key(pair[0] // 2, largest=not upwards, canonical=bool(canonical[0]))


def _is_canonical(value: SSAValue) -> bool | None:
    """Whether both zeros are one and all NaN are; None where only one of these holds."""
    tests: set[str] = set()
    op = _maker(value)
    while op is not None and op.name == "stablehlo.select":
        test = _maker(op.operands[0])
        tests.add("" if test is None else text_of(test.attribute("comparison_direction")))
        op = _maker(op.operands[2])
    return None if len(tests) == 1 else bool(tests)


def _argument(value: SSAValue, region: Region) -> int | None:
    """The argument that a value is, looked at through ops that make all zeros and all NaN one."""
    if isinstance(value, BlockArgument):
        return value.index if value.owner is region.block else None
    op = _maker(value)
    if op is None or op.name != "stablehlo.select":
        return None
    condition, constant, kept = op.operands
    test = _maker(condition)
    if test is None or test.name != "stablehlo.compare" or _argument_in(constant, region):
        return None
    number = _argument(kept, region)
    return number if number is not None and _is_special(test, region, number) else None


def _argument_in(value: SSAValue, region: Region) -> bool:
    """Whether a value, meant to be a constant, depends on an argument."""
    if isinstance(value, BlockArgument):
        return value.owner is region.block
    op = _maker(value)
    return op is None or any(_argument_in(operand, region) for operand in op.operands)


def _is_special(test: HloOp, region: Region, number: int) -> bool:
    """Whether a test is `x == 0` or `x != x` of that argument."""
    left, right = test.operands
    direction = text_of(test.attribute("comparison_direction"))
    argument = region.block.args[number]
    if direction == "NE":
        return left is argument and right is argument
    return direction == "EQ" and left is argument and not _argument_in(right, region)
