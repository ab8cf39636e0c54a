"""How many bands two dispatches are cut into: a pure function of them and the target.

High bands compute few rows twice; what a band keeps must fit a thread's scratch, and there must be bands for all
threads. The two become one for the memory: they may take a little longer so (`MOST_SLOWER`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from fuseline.analysis.cost import flops, num_bytes
from fuseline.analysis.filtered_convolutions import filtered_dims
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import StructuredOp, is_reduction
from fuseline.ir.costs import assumed_size
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.dispatch.banded_pair import BandedPair
from fuseline.passes.dispatch.region_rows import RegionRows
from fuseline.targets.target import Refusal

MOST_SLOWER = 0.03
"""The share of their time that two dispatches may take longer as one, by the target's costs."""

MOST_KEPT = 0.5
"""The share of the image that the bands of all threads may keep: of more there is little to gain."""


@dataclass(frozen=True, slots=True)
class BandChoice:
    """`count` bands that keep `scratch_bytes` each; `loss_ns` is what one thread takes longer, or, below 0, less.
    `recompute`: how often the rows of the image are computed, on the average."""

    count: int
    scratch_bytes: int
    recompute: float
    loss_ns: float


def choose_bands(pair: BandedPair, shapes: ShapeAnalysis, target: TargetDescription) -> BandChoice | Refusal:
    """The bands that take least time, or why there are none."""
    image = assumed_size(num_bytes(pair.image, shapes))
    limit = min(target.band_bytes_limit, int(MOST_KEPT * image / target.threads))
    fitting = [one for one in _choices(pair, image, shapes, target) if one.scratch_bytes <= limit]
    if not fitting:
        return Refusal("scratch", f"no band of it keeps {limit:,} bytes or less")
    best = min(fitting, key=lambda one: (one.loss_ns, one.scratch_bytes))
    most = MOST_SLOWER * _roots_ns(pair, shapes, target) / target.threads
    if best.loss_ns <= most:
        return best
    numbers = {"predicted_loss_ns": float(round(best.loss_ns)), "recompute": best.recompute}
    return Refusal("too-dear", f"{best.count} bands take {best.loss_ns:.0f} ns longer, {most:.0f} are allowed", numbers)


def _choices(pair: BandedPair, image: int, shapes: ShapeAnalysis, target: TargetDescription) -> Iterator[BandChoice]:
    """Bands of equal height, at least one for each thread, of an image of so many bytes."""
    maker, reader = (_root_ns(rows, shapes, target) for rows in (pair.maker, pair.reader))
    for count in range(max(2, target.threads), pair.rows + 1):
        if pair.rows % count == 0:
            rows = pair.bands(count)[0].rows
            recompute = rows * count / pair.image_rows
            rounds = -(-count // target.threads)
            loss = (maker * recompute + reader) * rounds / count - (maker + reader) / target.threads
            yield BandChoice(count, image // pair.image_rows * rows, recompute, loss - _saved_ns(image, target))


def _saved_ns(image: int, target: TargetDescription) -> float:
    """What each thread saves that the image is neither stored nor loaded, and a launch."""
    costs = target.costs
    return 2 * image / costs.intermediate_bytes_per_ns(image) / target.threads + costs.launch_ns


def _roots_ns(pair: BandedPair, shapes: ShapeAnalysis, target: TargetDescription) -> float:
    return _root_ns(pair.maker, shapes, target) + _root_ns(pair.reader, shapes, target)


def _root_ns(rows: RegionRows, shapes: ShapeAnalysis, target: TargetDescription) -> float:
    """Time of the root's arithmetic on one thread."""
    (root,) = (op for op in rows.loops if is_reduction(op))
    view = StructuredOp(root)
    filtered = target.numerics != "strict" and filtered_dims(view, view.loops(shapes), target.costs) is not None
    gain = target.costs.filtering_gain if filtered else 1.0
    return assumed_size(flops(root, shapes)) / target.costs.flops_per_ns / gain
