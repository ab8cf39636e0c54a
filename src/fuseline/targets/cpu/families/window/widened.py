"""Images that are stored as integers or 16-bit floats: windows over them are of f32, which each element is made when it
is loaded."""

from __future__ import annotations

from collections.abc import Mapping, Set

from xdsl.dialects import arith
from xdsl.ir import Operation

from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.structured import StructuredOp, multiply_add_operands
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.combining import combiners

STORED: Mapping[str, type[Operation]] = {
    "i8": arith.SIToFPOp, "i16": arith.SIToFPOp, "f16": arith.ExtFOp, "bf16": arith.ExtFOp,
}  # fmt: skip
"""What widens elements that are f32 numbers, by their type: those that vectors are widened from in one step."""


def widened_image(root: StructuredOp) -> Set[int]:
    """The input of `root`, an image, that the body reads as a float and nothing else; empty where there is none, or
    where the body does more than to multiply it with a filter and add, or to combine it."""
    image = max(range(len(root.inputs)), key=lambda i: len(used_dims(root.input_maps[i])))
    uses = list(root.body.args[image].uses)
    op = uses[0].operation if len(uses) == 1 else None
    widens = STORED.get(dtype_of(root.inputs[image].type))
    return {image} if op is not None and type(op) is widens and _is_plain(root, op) else set()


def _is_plain(root: StructuredOp, conversion: Operation) -> bool:
    """Whether the body has no ops beside the conversion, the product if there is one, what combines, and the yield."""
    sides, combiner = multiply_add_operands(root.op), combiners(root.op)
    if sides is not None:
        return sides[0] != sides[1] and len(root.body.ops) == 4
    return combiner is not None and combiner[0].element is conversion.results[0] and len(root.body.ops) == 3
