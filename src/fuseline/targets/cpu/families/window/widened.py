"""Images that are stored as integers: windows over them are of floats, which each element is made when it is loaded."""

from __future__ import annotations

from collections.abc import Set

from xdsl.dialects import arith

from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.structured import StructuredOp, multiply_add_operands
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.combining import combiners

STORED = ("i8", "i16")
"""Element types of integers that are f32 numbers, as wide as vectors are widened from in one step."""


def widened_image(root: StructuredOp) -> Set[int]:
    """The input of `root`, an image, that the body reads as a float and nothing else; empty where there is none, or
    where the body does more than to multiply it with a filter and add, or to combine it."""
    image = max(range(len(root.inputs)), key=lambda i: len(used_dims(root.input_maps[i])))
    uses = list(root.body.args[image].uses)
    op = uses[0].operation if len(uses) == 1 else None
    stored = dtype_of(root.inputs[image].type) in STORED
    return {image} if stored and isinstance(op, arith.SIToFPOp) and _is_plain(root, op) else set()


def _is_plain(root: StructuredOp, conversion: arith.SIToFPOp) -> bool:
    """Whether the body has no ops beside the conversion, the product if there is one, what combines, and the yield."""
    sides, combiner = multiply_add_operands(root.op), combiners(root.op)
    if sides is not None:
        return sides[0] != sides[1] and len(root.body.ops) == 4
    return combiner is not None and combiner[0].element is conversion.result and len(root.body.ops) == 3
