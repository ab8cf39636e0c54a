"""What a window pays for reading its image, or the filter of a depthwise convolution, through the ops that make it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import tensor
from xdsl.ir import Operation

from fuseline.analysis.borders import border_read
from fuseline.analysis.computed_images import ComputedImage, computed_image
from fuseline.analysis.cost import operations
from fuseline.analysis.element_operations import operations_of_element
from fuseline.analysis.image_strips import combines_floats, strips_of
from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.operand_access import Segment, segments
from fuseline.analysis.pixel_lines import runs_along_lines
from fuseline.analysis.producers import is_stored
from fuseline.analysis.prologue_kind import Prologue
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.staged_filters import is_filter, stagings, why_not_staged
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind
from fuseline.ir.costs import MachineCosts, assumed_size


def of_window_operand(
    root: StructuredOp,
    position: int,
    found: Sequence[Segment],
    chain: Sequence[Operation],
    shapes: ShapeAnalysis,
    costs: MachineCosts,
) -> Prologue:
    """Of an input of a window, whose stored parts are `found` behind `chain` (none where it is computed)."""
    if is_filter(root, position):
        return _of_filter(root, position, found, chain, shapes, costs)
    stored = _of_image(root, position, found, shapes) if found else None
    if stored is not None and stored.kind is not None:
        return stored
    strips = _in_strips(root, position, chain, shapes)
    return strips if stored is None or strips.kind is not None else stored


def reduces(chain: Sequence[Operation]) -> bool:
    """Whether any of the ops sums or combines elements."""
    return any(is_generic(op) and StructuredOp(op).reduction for op in chain)


def _of_image(root: StructuredOp, position: int, found: Sequence[Segment], shapes: ShapeAnalysis) -> Prologue:
    extents = root.loops(shapes)
    channels = [
        loop for loop in root.parallel if extents[loop] != 1 and all(_is_lane(segment, loop) for segment in found)
    ]
    if not channels and len(found) == 1 and runs_along_lines(root, position, found[0], shapes):
        return Prologue("addressed")
    if not channels or any(segment.access.floordiv_terms for segment in found):
        return Prologue(None, reason="no loop walks the image element by element")
    if found[0].loop is None:
        return Prologue("addressed")
    if found[0].loop in channels:
        return Prologue("segmented", pieces=len(found))
    return Prologue(None, reason="a window reads the parts of a concat along its channels only")


def _in_strips(root: StructuredOp, position: int, chain: Sequence[Operation], shapes: ShapeAnalysis) -> Prologue:
    """Of an image that is computed."""
    if reduces(chain) or any(isinstance(op, tensor.ConcatOp) or _gathers(op, shapes) for op in chain):
        return Prologue(None, reason="what a window evaluates is computed element by element")
    if not combines_floats(root, position):
        return Prologue(None, reason="a window of this type, or with this body, reads its image from stored tensors")
    image = computed_image(root, position, shapes, lambda value: is_stored(value, chain))
    strips = strips_of(root, position, image, shapes) if image is not None else None
    if image is None or strips is None:
        return Prologue(None, reason="the window does not go plainly along lines and pixels, or too long ones")
    often = strips.often * _inside(root, position, image, shapes)
    return Prologue("strips", often, often, sum(operations(op) for op in chain))


def _gathers(op: Operation, shapes: ShapeAnalysis) -> bool:
    """Whether an op picks elements in another way than a border does."""
    return kind(op) is Kind.GATHER and border_read(op, shapes) is None


def _inside(root: StructuredOp, position: int, image: ComputedImage, shapes: ShapeAnalysis) -> float:
    """The share of the operand that is no padding."""
    sizes = prod(map(assumed_size, image.sizes)), prod(map(assumed_size, shapes.dims(root.inputs[position])))
    return min(1.0, sizes[0] / max(1, sizes[1]))


def _of_filter(
    root: StructuredOp,
    position: int,
    found: Sequence[Segment],
    chain: Sequence[Operation],
    shapes: ShapeAnalysis,
    costs: MachineCosts,
) -> Prologue:
    """Of a filter: read where it lies, or staged."""
    if len(found) == 1 and not (found[0].access.bounds or found[0].access.floordiv_terms):
        return Prologue("addressed")
    reason = (
        "a reduction would be repeated for every block" if reduces(chain) else why_not_staged(root, position, shapes)
    )
    if reason is None and _differs_between_pixels(root, position, shapes):
        reason = "the filter differs between pixels"
    if reason is not None:
        return Prologue(None, reason=reason)
    often = float(stagings(root, position, shapes, costs))
    return Prologue("staged", often, often, operations_of_element(root.inputs[position], chain, shapes, costs.lanes))


def _differs_between_pixels(root: StructuredOp, position: int, shapes: ShapeAnalysis) -> bool:
    """Whether a window over the image as it is stored would meet several filters along the line or the pixels of a
    tile, or has no lanes that it could tell them by."""
    image = next(i for i in range(len(root.inputs)) if i != position)
    extents, map_ = root.loops(shapes), root.input_maps[image]
    found = segments(shapes, root.inputs[image], map_, extents, lambda value: is_stored(value, ()))
    mine = used_dims(root.input_maps[position])
    moving = [loop for loop in root.parallel if extents[loop] != 1]
    lanes = [loop for loop in moving if found and all(_is_lane(segment, loop) for segment in found)]
    others = [loop for loop in moving if loop in mine and loop not in lanes[-1:]]
    along_lines = bool(found) and not lanes and _of_image(root, image, found, shapes).kind is not None
    few = sum(loop not in mine for loop in moving) < 2
    return (not lanes and not along_lines) or (few and (along_lines or bool(others)))


def _is_lane(segment: Segment, loop: int) -> bool:
    """Whether `loop` steps to the next element, and never into padding."""
    return segment.access.stride(loop) == 1 and not any(
        loop in bound.coordinate.terms for bound in segment.access.bounds
    )
