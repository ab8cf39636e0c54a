"""What a root pays for reading an operand through the ops that make it, instead of from a stored tensor.

A root (contraction, convolution, depthwise convolution, pooling) reads each element of an operand many times. Seven
ways to read through producers keep that cheap, in this order:

    addressed   slices, reshapes, transposes, broadcasts, whole-factor upsampling and pads lie in the addresses: nothing
                is evaluated
    segmented   a concat along one loop of the root (the reduction; the channels of a window) is that loop cut into
                pieces: likewise
    filtered    the image of a convolution by minimal filtering is evaluated tile by tile, where pixels are copied to be
                transformed
    boxed       that of any other convolution, and rows across memory, once per block of lines (`image_box.py`)
    staged      the filter of a window is evaluated into scratch, once per block of lines (`staged_filters.py`)
    strips      the image of a window is evaluated into scratch, once per strip of lines (`image_strips.py`)
    packed      anything else is evaluated into scratch, once per block of rows or columns, and the register tiles read
                the scratch

A block spans `block_uses` rows or columns of the other operand where there are as many (a figure of the machine), so
each evaluation is paid for by as many multiply-adds; more where there would be more than `MOST_BLOCKS`, or less than
`BLOCK_FLOPS` in a block of lines, since a launch has no more workgroups than that; fewer where the other operand is
packed, too, and so many do not fit beside it. What overlapping windows share is evaluated once per window position.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from math import prod

from xdsl.ir import Operation, OpResult, SSAValue

from fuseline.analysis.box_blocks import blocks_of, choose_box_block, lines_of_block, root_ns
from fuseline.analysis.cut_boxes import box_beside_packed, groups_of_columns
from fuseline.analysis.element_operations import operations_of_element
from fuseline.analysis.filtered_convolutions import filtered_dims, tile_overlap
from fuseline.analysis.image_box import ImageBox, image_box
from fuseline.analysis.indexing_maps import dims_of, is_projected_permutation, used_dims
from fuseline.analysis.operand_access import Segment, segments
from fuseline.analysis.packings import block_of, blocks_of_panels, extent_of, packings, runs_along_columns
from fuseline.analysis.producers import is_stored, producers_of
from fuseline.analysis.prologue_kind import Prologue
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import (
    CHANNEL_WINDOWS,
    DENSE,
    Kind,
    StructuredOp,
    kind,
    multiply_add_operands,
)
from fuseline.analysis.window_prologue import of_window_operand, reduces
from fuseline.ir.costs import ASSUMED_COSTS, MachineCosts, assumed_size
from fuseline.ir.dim import product, upper_bound


def is_constant_op(value: SSAValue) -> bool:
    """Whether a value of a whole program is known at compile time."""
    return isinstance(value, OpResult) and kind(value.op) is Kind.CONSTANT


def prologue(
    root: StructuredOp,
    position: int,
    members: Collection[Operation],
    shapes: ShapeAnalysis,
    costs: MachineCosts = ASSUMED_COSTS,
    is_constant: Callable[[SSAValue], bool] = is_constant_op,
    threads: int = 1,
) -> Prologue:
    """How `root` would read its input `position` if the ops of `members` that make it were part of its dispatch: as if
    it lay in memory where a loop never runs, and nothing is read.

    Args:
        members: the producers to be read through; what they read is stored. Ops that cost nothing to repeat (reshapes,
            fills, constants, index arithmetic) are looked through whether they are in it or not.
        shapes: of the function that holds them.
        costs: of the machine.
        is_constant: of a value, at compile time.
        threads: that share the blocks.
    """
    if any(upper_bound(extent) == 0 for extent in root.loops(shapes)):
        return Prologue("addressed")
    chain = list(producers_of(root.inputs[position], members))
    operand, map_ = root.inputs[position], root.input_maps[position]
    found = segments(shapes, operand, map_, root.loops(shapes), lambda value: is_stored(value, members))
    if kind(root.op) in DENSE:
        sides = multiply_add_operands(root.op)
        if sides is None or position not in sides:
            return Prologue(None, reason="the operand is no side of the product")
        side = _of_product(root, position, found or (), shapes, costs)
        if side is not None:
            return side
        packs = not all(is_constant(value) for i, value in enumerate(root.inputs) if i != position)
        image = _in_blocks(root, position, chain, shapes, costs, packs=packs, threads=threads)
        return image or _packed(root, position, chain, shapes, costs, None if packs else threads)
    if kind(root.op) in CHANNEL_WINDOWS:
        return of_window_operand(root, position, found or (), chain, shapes, costs)
    return Prologue(None, reason="the root reads each element in a way of its own")


# products -------------------------------------------------------------------------------------------------------------


def _of_product(
    root: StructuredOp, position: int, found: Sequence[Segment], shapes: ShapeAnalysis, costs: MachineCosts
) -> Prologue | None:
    """Of an operand that is read where it lies, None of others."""
    extents = root.loops(shapes)
    reduction = [loop for loop in root.reduction if extents[loop] != 1]
    readable = bool(found) and all(_is_addressable(segment, reduction) for segment in found)
    borders = [bound for segment in found for bound in segment.access.borders]
    if borders and not _is_image(root, position):
        readable = False
    if any(not isinstance(bound.size, int) for bound in borders) and filtered_dims(root, extents, costs) is None:
        # each row of a tile would be folded at each tap (3x3 in groups of 4: 1.6 of the time of boxes)
        readable = False
    if readable and len(found) == 1:
        return Prologue("addressed")
    if readable and found[0].loop in reduction and not runs_along_columns(root, position, shapes):
        return Prologue("segmented", pieces=len(found))
    return None


def _is_addressable(segment: Segment, reduction: Collection[int]) -> bool:
    """Whether each edge check and each rounded term is decided by one loop of the reduction at most, and another is
    left to be the innermost."""
    access = segment.access
    if access.borders and (access.padding or access.floordiv_terms):
        return False  # what a border adds is no way back from the padding row, nor one through rounded addresses
    if (
        access.floordiv_terms and access.bounds and access.pad != 0
    ):  # padding that is read, not left out, would need a page for each way to round
        return False
    if any(sum(loop in q.numerator.loops for loop in reduction) > 1 for q in access.floordiv_terms):
        return False
    if reduction and all(access.has_floordiv(loop) for loop in reduction):
        return False
    return all(len([loop for loop in bound.coordinate.loops if loop in reduction]) <= 1 for bound in access.bounds)


def _is_image(root: StructuredOp, position: int) -> bool:
    """Whether an input is what a convolution slides over."""
    return kind(root.op) is Kind.CONVOLUTION and not is_projected_permutation(root.input_maps[position])


def _in_blocks(
    root: StructuredOp,
    position: int,
    chain: Sequence[Operation],
    shapes: ShapeAnalysis,
    costs: MachineCosts,
    *,
    packs: bool,
    threads: int,
) -> Prologue | None:
    """Of an image beside a constant filter: evaluated tile by tile, or in boxes. `packs`: the filter is no constant,
    and packed for each box, where those are few."""
    members, extents = set(chain), root.loops(shapes)
    stored = partial(is_stored, members=members)
    if reduces(chain):
        return None
    if packs:
        box = box_beside_packed(root, position, shapes, stored, extents, threads)
    else:
        box = image_box(root, position, shapes, stored)
    if box is None:
        return None
    if packs or filtered_dims(root, extents, costs) is None:
        return _boxed(root, position, chain, shapes, costs, box, highest=packs, threads=threads)
    often = tile_overlap([extents[loop] for loop in box.window if _slides(root, position, loop)])
    evaluated = operations_of_element(root.inputs[position], chain, shapes, costs.lanes)
    return Prologue("filtered", often, often, evaluated)


def _slides(root: StructuredOp, position: int, loop: int) -> bool:
    """Whether a loop of the reduction is the tap of a window."""
    return any(loop in dims_of(expr) and len(dims_of(expr)) > 1 for expr in root.input_maps[position].results)


def _boxed(
    root: StructuredOp,
    position: int,
    chain: Sequence[Operation],
    shapes: ShapeAnalysis,
    costs: MachineCosts,
    box: ImageBox,
    *,
    highest: bool,
    threads: int,
) -> Prologue:
    extents = [assumed_size(extent) for extent in root.loops(shapes)]
    total = operations_of_element(root.inputs[position], chain, shapes, costs.lanes)
    elements = max(1, assumed_size(product(shapes.dims(root.inputs[position]))))
    element_ns = costs.packing_ns + total * costs.operation_ns
    least, whole_ns = lines_of_block(box, extents), root_ns(extents, costs)
    block = choose_box_block(box, extents, element_ns, whole_ns, highest=highest, least=least, threads=threads)
    columns = extent_of(root, used_dims(root.output_maps[0]) - used_dims(root.input_maps[position]), shapes)
    lines = max(1, prod(extents[loop] for loop in box.rows[:-1]))
    groups = blocks_of_panels(assumed_size(columns), block_of(root, costs.block_uses))
    groups = min(groups, -(-blocks_of(box, extents) // lines))
    if box.cut:
        groups = groups_of_columns(box, block.lines * block.pixels, assumed_size(columns))
    often = block.evaluated * groups / elements
    return Prologue("boxed", often, often, total)


def _packed(
    root: StructuredOp, position: int, chain: Sequence[Operation], shapes: ShapeAnalysis, costs: MachineCosts,
    threads: int | None,
) -> Prologue:  # fmt: skip
    """`threads` share the blocks beside a constant; None: beside what may be packed, too, in as many blocks as there
    are."""
    if reduces(chain):
        return Prologue(None, reason="a reduction would be repeated for every block")
    gathered = _reads_across_memory(root, position, shapes)
    often = packings(root, position, shapes, costs.block_uses, None if gathered else threads)
    evaluated = operations_of_element(root.inputs[position], chain, shapes, costs.lanes)
    return Prologue("packed", *often, evaluated, gathered=gathered)


def _reads_across_memory(root: StructuredOp, position: int, shapes: ShapeAnalysis) -> bool:
    """Whether rows lie along no loop of the reduction: panels of columns are turned in registers, rows are not."""
    if runs_along_columns(root, position, shapes):
        return False
    extents, sizes = root.loops(shapes), shapes.dims(root.inputs[position])
    reduction = [loop for loop in root.reduction if extents[loop] != 1]
    stored = [expr for expr, size in zip(root.input_maps[position].results, sizes, strict=True) if size != 1]
    return bool(reduction and stored) and dims_of(stored[-1]).isdisjoint(reduction)
