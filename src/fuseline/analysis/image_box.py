"""What a block of a convolution reads of its image: a box, of which each element is evaluated once. So does a product
whose rows lie across memory.

    out[y, x, f] += image[2 * y + i, 2 * x + j, c] * filter[i, j, c, f]        a window of 7 x 7

    2 lines of 112 pixels:      9 rows of 229 columns        read 2 * 112 * 49 times
    the next two lines:         9 rows, 5 of which the lines before read as well

So rows between two blocks are evaluated by both, and blocks are as high as makes that cheap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import gcd, prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.indexing_maps import dims_of, is_projected_permutation, used_dims
from fuseline.analysis.linear_forms import Linear
from fuseline.analysis.narrow_products import multiplies_narrow
from fuseline.analysis.segment_boundaries import stored_strides
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.source_paths import coordinates_of
from fuseline.analysis.structured import Kind, StructuredOp, kind
from fuseline.ir.costs import LINE_BYTES, assumed_size
from fuseline.ir.dim import Dim
from fuseline.ir.element_types import element_bits

BOX_BYTES = 112 * 1024
"""Bytes of scratch that a box may take."""

LONG_RUN_LINES = 4
"""Cache lines of a run from which on it begins with one."""

CROWDING_LINES = 16
"""Runs of so many cache lines, or multiples, would share a quarter of the sets of the first-level cache or less."""

LEAST_PIXELS = 32
"""Neighbouring pixels of a line that a box must have room for: a register tile has no more."""


@dataclass(frozen=True, slots=True)
class BoxAxis:
    """A dimension of the image, read at `constant + sum(coefficient * loop)`: by loops that go on inside a block, every
    `step`-th element."""

    terms: Mapping[int, int]
    constant: int
    step: int

    def size(self, counts: Mapping[int, int]) -> int:
        """The elements that lie under so many steps of the loops; those without a count stay where they are."""
        return 1 + sum(self.steps(loop) * (counts[loop] - 1) for loop in self.terms if loop in counts)

    def steps(self, loop: int) -> int:
        """Elements of the box between two steps of a loop."""
        return self.terms.get(loop, 0) // self.step


@dataclass(frozen=True, slots=True)
class ImageBox:
    """The dimensions of the image, and in which order they lie in the box, outermost first: along the last one, most
    tensors that the image is made of lie element by element.

    `rows` are the loops of the result over pixels, as they are written; `window` those of the reduction, with their
    extents. `element_bytes`: of what is evaluated. `cut`: loops of the window that go on in blocks, one box each, of so
    many steps as `window` has, and how far they go in all (assumed where only the run knows); `most_rows`: pixels of a
    block, as many as have their sums in scratch meanwhile.
    """

    axes: tuple[BoxAxis, ...]
    order: tuple[int, ...]
    rows: tuple[int, ...]
    window: Mapping[int, int]
    element_bytes: int
    cut: Mapping[int, int] = field(default_factory=dict[int, int])
    most_rows: int | None = None

    def counts(self, lines: int, pixels: int) -> dict[int, int]:
        """How far the loops go in a block of so many lines and pixels of each."""
        ends = dict(zip(self.rows[-2:], (lines, pixels)[-len(self.rows) :], strict=False)) if self.rows else {}
        return {**self.window, **ends}

    def evaluated(self, counts: Mapping[int, int]) -> int:
        """Elements that a box is filled with; of one that goes on in blocks, that all of them are."""
        found = prod(axis.size(counts) for axis in self.axes)
        for loop, whole in self.cut.items():
            found = found * max(whole, self.window[loop]) // self.window[loop]
        return found

    def elements(self, counts: Mapping[int, int]) -> int:
        """Elements that a box takes."""
        outermost = self.order[0]
        return self.axes[outermost].size(counts) * self.strides(counts)[outermost]

    def fits(self, counts: Mapping[int, int]) -> bool:
        """Whether a box takes no more scratch than it may."""
        rows = prod(counts.get(loop, 1) for loop in self.rows[-2:])
        return self.bytes(counts) <= BOX_BYTES and (self.most_rows is None or rows <= self.most_rows)

    def bytes(self, counts: Mapping[int, int]) -> int:
        """Scratch that a box takes."""
        return self.elements(counts) * self.element_bytes

    def strides(self, counts: Mapping[int, int]) -> tuple[int, ...]:
        """Elements between two of each dimension; long runs along the last one begin with cache lines."""
        found, step = [0] * len(self.axes), 1
        for axis in reversed(self.order):
            found[axis] = step
            step *= self.axes[axis].size(counts)
            if axis == self.order[-1]:
                step = self._apart(step)
        return tuple(found)

    def _apart(self, elements: int) -> int:
        """`elements` in whole cache lines, and one more where so many runs would share few sets of the first-level
        cache."""
        lines = -(-elements * self.element_bytes // LINE_BYTES)
        if lines < LONG_RUN_LINES:
            return elements
        return (lines if lines % CROWDING_LINES else lines + 1) * LINE_BYTES // self.element_bytes

    def runs_along(self, loop: int) -> bool:
        """Whether the steps of a loop lie element by element in a box, however wide."""
        innermost = self.order[-1:]
        return all(axis.steps(loop) == (number in innermost) for number, axis in enumerate(self.axes))

    @property
    def run(self) -> int:
        """Steps of the window that lie element by element in a box: the most of one loop."""
        return max((extent for loop, extent in self.window.items() if self.runs_along(loop)), default=1)

    def stride(self, loop: int, counts: Mapping[int, int]) -> int:
        """Elements between two steps of a loop."""
        return sum(axis.steps(loop) * stride for axis, stride in zip(self.axes, self.strides(counts), strict=True))


def image_box(
    root: StructuredOp,
    position: int,
    shapes: ShapeAnalysis,
    is_stored: Callable[[SSAValue], bool],
    extents: Sequence[Dim] | None = None,
    *,
    whole: bool = True,
    blocks: Mapping[int, int] | None = None,
) -> ImageBox | None:
    """The box of input `position` of a convolution, or of a product whose rows lie across memory, from which it can be
    evaluated; None where it is neither, or does not go plainly along its dimensions. `is_stored`: where evaluation
    ends. `extents`: how far each loop runs, where neighbours that are one in memory run as one (the outer ones once,
    the inner one through all of it); else those of the root. `whole`: None where one register tile would need too much
    of it; else that is for the caller to see to. `blocks`: how many steps at a time loops of the window go
    that are cut.
    """
    map_, value = root.input_maps[position], root.inputs[position]
    extents, coordinates = extents or root.loops(shapes), coordinates_of(map_)
    rows = _rows(root, position, extents)
    if not isinstance(value.type, TensorType) or not (_is_image(root, map_) or _lies_across(root, map_, rows, extents)):
        return None
    blocks = blocks or {}
    window = {loop: blocks.get(loop, extents[loop]) for loop in root.reduction if loop in used_dims(map_)}
    known = {loop: extent for loop, extent in window.items() if isinstance(extent, int)}
    if coordinates is None or len(known) < len(window):
        return None
    axes = [_axis(form, [loop for loop in (*rows[-2:], *known) if extents[loop] != 1]) for form in coordinates]
    found = [axis for axis in axes if axis is not None]
    if len(found) < len(axes) or sum(len(axis.terms) for axis in found) > len(
        {loop for a in found for loop in a.terms}
    ):
        return None
    bits = element_bits(value)
    bits = max(bits, 16) if multiplies_narrow(root.op) else bits  # those of 8 bits are widened on the way
    order = lying_order(value, shapes, is_stored, _paired(root, map_, known))
    cut = {loop: assumed_size(extents[loop]) for loop in known if loop in blocks}
    box = ImageBox(tuple(found), order, rows, known, max(1, bits // 8), cut)
    return box if not whole or holds_a_tile(box, extents) else None


def holds_a_tile(box: ImageBox, extents: Sequence[Dim]) -> bool:
    """Whether there is room in a box for the pixels of a register tile; `extents` of the root's loops."""
    pixels = extents[box.rows[-1]] if box.rows else 1
    least = min(pixels, LEAST_PIXELS) if isinstance(pixels, int) else LEAST_PIXELS
    return box.fits(box.counts(1, least))


def _is_image(root: StructuredOp, map_: AffineMap) -> bool:
    """Whether a window slides over what is read by `map_`."""
    return kind(root.op) is Kind.CONVOLUTION and not is_projected_permutation(map_)


def _lies_across(root: StructuredOp, map_: AffineMap, rows: Sequence[int], extents: Sequence[Dim]) -> bool:
    """Whether the rows of a product lie across memory, as those of a 1x1 convolution over channels far apart: along
    the last dimension lie neighbouring rows."""
    written = [expr.position for expr in root.output_maps[0].results if isinstance(expr, AffineDimExpr)]
    columns = [loop for loop in written if extents[loop] != 1]
    stored = [used for used in map(dims_of, map_.results) if any(extents[loop] != 1 for loop in used)]
    is_product = kind(root.op) is Kind.CONTRACTION and bool(rows and stored) and columns[-1:] != [rows[-1]]
    return is_product and set(stored[-1]) == {rows[-1]}


def _rows(root: StructuredOp, position: int, extents: Sequence[Dim]) -> tuple[int, ...]:
    """The loops of the result that go along the image alone."""
    others = {loop for i, map_ in enumerate(root.input_maps) if i != position for loop in used_dims(map_)}
    written = [expr.position for expr in root.output_maps[0].results if isinstance(expr, AffineDimExpr)]
    mine = used_dims(root.input_maps[position]) - others
    return tuple(loop for loop in written if loop in mine and extents[loop] != 1)


def _axis(form: Linear, moving: Sequence[int]) -> BoxAxis | None:
    """A dimension by its coordinate; None where that goes backwards."""
    terms = {loop: step for loop, step in form.loops.items() if isinstance(step, int) and step > 0}
    if not form.plain or len(terms) < len(form.terms) or not isinstance(form.constant, int):
        return None
    return BoxAxis(terms, form.constant, gcd(*(step for loop, step in terms.items() if loop in moving)) or 1)


def _paired(root: StructuredOp, map_: AffineMap, known: Mapping[int, int]) -> int | None:
    """The dimension along which a product of narrow integers multiplies pairs, none of which stands alone; None where
    there is none."""
    if not multiplies_narrow(root.op):
        return None
    whole = [
        axis
        for axis, expr in enumerate(map_.results)
        if isinstance(expr, AffineDimExpr) and expr.position in known and known[expr.position] % 2 == 0
    ]
    return whole[-1] if whole else None


def lying_order(
    value: SSAValue, shapes: ShapeAnalysis, is_stored: Callable[[SSAValue], bool], paired: int | None = None
) -> tuple[int, ...]:
    """The dimensions of a value as they are, but the one last that pairs are along, or that most of what is stored lies
    along; of equals, the last."""
    sizes = shapes.dims(value)
    whole = AffineMap.identity(len(sizes))

    def lying(axis: int) -> tuple[bool, int, int]:
        strides = stored_strides(shapes, value, whole, axis, sizes, is_stored)
        return sizes[axis] != 1, strides.count(1), axis

    if not sizes:
        return ()
    last = max(range(len(sizes)), key=lying) if paired is None else paired
    return (*(axis for axis in range(len(sizes)) if axis != last), last)
