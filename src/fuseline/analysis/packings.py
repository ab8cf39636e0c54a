"""How often an operand is packed: evaluated into scratch, once per block of rows or columns of the other one."""

from __future__ import annotations

from collections.abc import Collection

from xdsl.dialects.builtin import TensorType, f64, i64
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.cost import num_bytes
from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.reduction_block import steps_of_block
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, kind
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim, product

MOST_BLOCKS = 64
"""Blocks of rows or columns that a launch is divided into, at most: more balance no better."""

BLOCK_FLOPS = 400_000
"""The least arithmetic of such a block, about 4 us of one core: far above the cost of decoding its place in the
grid."""

FLOPS_PER_BYTE = 2
"""Multiply-adds a core does in the time it takes to read a byte from the last-level cache: what a product of one row is
bound by."""

PANELS_PER_PACKING = 4
"""A workgroup that packs its rows has at least so many panels of columns, each of two vectors, to use each: packing a
row costs about a fifth of its tile."""

TILES_PER_PACKING = 12
"""A workgroup that packs its panels has at least so many row tiles to use each: packing one costs about a third of a
tile."""

BLOCKS_OF_THREAD = 8
"""Blocks of rows that each of several threads has: with so many they balance, and no columns need be shared out."""

CACHED_COLUMNS = 512 << 10
"""Bytes of columns that stay in a second-level cache while blocks of rows pass by."""

ROWS_OF_TILE = 14
"""Rows of a register tile, at most."""

PACKED_STEPS = 28 << 10
"""Elements of a block that is packed beside the other one: rows or columns times reduction steps."""


def packings(
    root: StructuredOp, position: int, shapes: ShapeAnalysis, block_uses: int, threads: int | None = None
) -> tuple[float, float]:
    """How often an operand is packed: where the other one is stored, and where that is packed, too, so that its blocks
    are what fits. At the sizes that are assumed; `block_uses` of the machine, whose `threads` (None: any number) share
    the blocks."""
    uses, steps = block_of(root, block_uses), _packed_steps(root, shapes)
    alone = _evaluations(root, position, shapes, uses, _most_groups(root, position, shapes, threads))
    beside = _evaluations(root, position, shapes, min(uses, max(1, PACKED_STEPS // max(steps, 1))), None)
    return alone, max(alone, beside)


def _most_groups(root: StructuredOp, position: int, shapes: ShapeAnalysis, threads: int | None) -> int:
    """Groups of what an operand is reused over, at most: for rows, as many of columns as blocks of rows lack to
    balance, and as stay in a cache."""
    if threads is None or runs_along_columns(root, position, shapes):
        return MOST_BLOCKS
    mine = used_dims(root.input_maps[position])
    rows = assumed_size(extent_of(root, mine & used_dims(root.output_maps[0]), shapes))
    return _most_columns(root, position, shapes, threads, -(-rows // ROWS_OF_TILE))


def _most_columns(root: StructuredOp, position: int, shapes: ShapeAnalysis, threads: int, blocks: int) -> int:
    """In how many groups columns are shared out, at most, beside `blocks` of the rows that input `position` is, as far
    as each has work enough."""
    sizes = [assumed_size(num_bytes(value, shapes)) for value in root.inputs]
    with_work = blocks_with_work(2 * assumed_size(product(root.loops(shapes))), sum(sizes))
    others, blocks = sum(sizes) - sizes[position], max(1, blocks)
    return min(-(-with_work // blocks), groups_of_columns(blocks, threads, others, CACHED_COLUMNS))


def blocks_with_work(flops: int, read_bytes: int) -> int:
    """In how many blocks work is divided, so that each is worth its place in the grid: by arithmetic, or by what is
    read."""
    return min(MOST_BLOCKS, max(1, max(flops, FLOPS_PER_BYTE * read_bytes) // BLOCK_FLOPS))


def groups_of_columns(blocks: int, threads: int, column_bytes: int, cached_bytes: int, outer: int = 1) -> int:
    """In how many groups columns are shared out, at most, beside `blocks` of rows at each of `outer` points, which are
    packed anew for each: what balances, and what keeps a group in a cache while blocks of rows pass by.

    >>> groups_of_columns(8, 4, column_bytes=3000, cached_bytes=1000), groups_of_columns(8, 16, 3000, 1000)
    (4, 8)
    """
    return max(-(-blocks_that_balance(threads, outer) // blocks), -(-column_bytes // cached_bytes))


def blocks_that_balance(threads: int, outer: int = 1) -> int:
    """Blocks of each of `outer` points that `threads` share evenly enough."""
    return 1 if threads == 1 else -(-min(MOST_BLOCKS, BLOCKS_OF_THREAD * threads) // outer)


def _packed_steps(root: StructuredOp, shapes: ShapeAnalysis) -> int:
    """Reduction steps that are packed at a time: all, or those of a block."""
    extents = root.loops(shapes)
    steps = assumed_size(extent_of(root, set(root.reduction), shapes))
    return min(steps, steps_of_block([extents[loop] for loop in root.reduction if extents[loop] != 1]))


def block_of(root: StructuredOp, block_uses: int) -> int:
    """Rows or columns of a block: half as many elements of 64 bits are as many vectors."""
    result = root.op.results[0].type
    wide = isinstance(result, TensorType) and result.element_type in (f64, i64)
    return max(1, block_uses // 2) if wide else block_uses


def _evaluations(root: StructuredOp, position: int, shapes: ShapeAnalysis, uses: int, most: int | None) -> float:
    """How often each element of the operand is evaluated: once per block (of `uses` points, of which there are `most`)
    of what it is reused over, and per window position, on the average of all elements, those between steps of a loop
    that nothing reads among them; at the sizes that are assumed."""
    mine = used_dims(root.input_maps[position])
    reuse = assumed_size(extent_of(root, used_dims(root.output_maps[0]) - mine, shapes))
    iterations = assumed_size(extent_of(root, mine, shapes))
    elements = max(1, assumed_size(product(shapes.dims(root.inputs[position]))))
    blocks = -(-reuse // uses)
    if most is not None:
        blocks = min(blocks if runs_along_columns(root, position, shapes) else blocks_of_panels(reuse, uses), most)
    return iterations / elements * blocks


def blocks_of_panels(columns: int, uses: int) -> int:
    """Blocks of `PANELS_PER_PACKING` panels of columns at the least: what is left over is shared out among them."""
    panels = -(-columns // max(1, uses // PANELS_PER_PACKING))
    return max(1, panels // PANELS_PER_PACKING)


def runs_along_columns(root: StructuredOp, position: int, shapes: ShapeAnalysis) -> bool:
    """Whether the operand is the one that vectors run along: the innermost loop of the result is one of its own. An
    image never is."""
    if kind(root.op) is Kind.CONVOLUTION:
        return all(isinstance(expr, AffineDimExpr) for expr in root.input_maps[position].results)
    extents = root.loops(shapes)
    written = [
        expr.position
        for expr in root.output_maps[0].results
        if isinstance(expr, AffineDimExpr) and extents[expr.position] != 1
    ]
    return bool(written) and written[-1] in used_dims(root.input_maps[position])


def extent_of(root: StructuredOp, loops: Collection[int], shapes: ShapeAnalysis) -> Dim:
    """Iterations of some of the loops."""
    return product(extent for loop, extent in enumerate(root.loops(shapes)) if loop in loops)
