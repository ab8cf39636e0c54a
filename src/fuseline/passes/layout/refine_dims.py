"""refine-dims: two ops that see one buffer in different shapes traverse it in sizes that fit both.

    x + b over (4, 6) ── reshape ──> y * c over (12, 2)      =>      both over (4, 3, 2)

Each operand of either side keeps telling its dimensions apart, so neither can take the shape of the other; both are
split at the cuts of either (`rewriting/common_refinement.py`), and the reshape between them is gone. A group norm with
a scale per channel is such a pair: groups x (channels of a group, height, width) and channels x height x width. The
moments of its channels behind a convolution, which keeps its channels together, are made in groups as well: of the
reshaped image that the norm reads (`SplitsTogether`, `joining`).

A product whose rows a depthwise window reads as an image makes that image:

    x · w over (900, 144) ── reshape ──> window over (30, 30, 144)      =>      the product over (30, 30, 144)

A reshape stays where no sizes fit both (4 x 6 and 3 x 8), where a window or a summed loop of a contraction would be
split, where an op beyond would get a reshape that it has not, where two contractions are on its two sides (they never
share a dispatch, and the reshape is a free view of a buffer), where an image is larger than what a product and a window
may keep between them and has no bands of rows (`rewriting/image_bands.py`), or where one side has long rows of many
elements and the other rows too short for vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import linalg

from fuseline.analysis.structured import Kind, StructuredOp, kind
from fuseline.ir.costs import LINE_BYTES, assumed_size
from fuseline.ir.fast.direct import ops_of
from fuseline.ir.rounds import rounds
from fuseline.passes.dispatch.band_height import BandChoice
from fuseline.passes.layout.rewriting.image_bands import image_bands
from fuseline.passes.layout.rewriting.kept_apart import images_between, reshapes_between
from fuseline.passes.layout.rewriting.loops import can_collapse
from fuseline.passes.layout.rewriting.reshapes import ReshapeOp, is_reshape
from fuseline.passes.layout.rewriting.rows_together import rows_together
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass
from fuseline.passes.layout.rewriting.splits_together import SplitsTogether

VECTOR = 8
"""Elements of a row below which it is traversed one by one: measured 1.8 ns an element, in vectors .3."""

FEW_ELEMENTS = 256
"""Elements that one by one cost no more than the launch that is saved."""


@dataclass(frozen=True)
class RefineDimsPass(ScopedPass):
    """Has no options."""

    name = "refine-dims"

    def rewrite(self, scope: Scope) -> None:
        """Refine on both sides of each reshape, in order; then what makes images."""
        scope.lift_sizes()
        scope.sweep()
        reshapes = sum(is_reshape(op) for op in ops_of(scope.block))
        for _ in rounds("refining dimensions", most=reshapes + 1):  # one that changes its sizes is another reshape then
            if not _refine(scope):
                break
        for reshape in images_between(scope):
            together = SplitsTogether(scope, reshape.result)
            makers = [op for op in together.splits if kind(op) is Kind.CONTRACTION]
            if together.granted and makers and _is_shared(scope, reshape, makers):
                together.apply()


def _refine(scope: Scope) -> bool:
    """Refine on both sides of each reshape once; whether there was any to refine."""
    changed = False
    for reshape in reshapes_between(scope):
        together = _together(scope, reshape)
        if together.granted and not _slows(scope, together):
            together.apply()
            changed = True
    return changed


def _together(scope: Scope, reshape: ReshapeOp) -> SplitsTogether:
    """The splits that leave no reshape, or none within what may be a dispatch, or only one that is read by others,
    too."""
    found = SplitsTogether(scope, reshape.result)
    if found.granted:
        return found
    return rows_together(scope, reshape) or SplitsTogether(scope, reshape.result, joining=True)


def _is_shared(scope: Scope, image: ReshapeOp, makers: Sequence[linalg.ops.GenericOp]) -> bool:
    """Whether a product and a window may keep an image between them: some channels of it, or bands of its rows."""
    return _fits(scope, image) or isinstance(image_bands(scope, image.result, makers), BandChoice)


def _fits(scope: Scope, image: ReshapeOp) -> bool:
    """Whether some channels of an image, which come last, may lie between what makes it and the window over it."""
    pixels = prod(map(assumed_size, scope.dims(image.result)[:-1]))
    return pixels * LINE_BYTES <= scope.ctx.target.image_bytes_limit


def _slows(scope: Scope, together: SplitsTogether) -> bool:
    """Whether an op of many elements in long rows would be traversed in the short rows of another."""
    views = [StructuredOp(op) for op in together.splits]
    rows = [_row(scope, view) for view in views]
    elements = max(prod(map(assumed_size, view.loops(scope.shapes))) for view in views)
    return min(rows) < VECTOR <= max(rows) and elements > FEW_ELEMENTS


def _row(scope: Scope, view: StructuredOp) -> int:
    """The innermost elements that lie side by side in all operands of an op."""
    extents = view.loops(scope.shapes)
    row, loop = assumed_size(extents[-1]), view.rank - 1
    for outer in reversed(range(loop)):
        if not can_collapse(scope, view, [outer, outer + 1]):
            break
        row *= assumed_size(extents[outer])
    return row


EXPORT = RefineDimsPass
