"""How many bands two dispatches are cut into: a pure function of them and the target.

High bands compute few rows twice; what a band keeps must fit a thread's scratch, and there must be bands for all
threads. The two become one for the memory: they may take a little longer so (`MOST_SLOWER`). Behind a window channel by
channel they become one where that takes less time: what a band keeps must stay in the cache then (`MOST_CACHED`). Where
a thread's bands keep the rows that they share there is next to nothing to lose by it, and what is saved depends on the
size of an element: one dispatch is as good as several then, up to `MOST_SLOWER_KEPT`, whatever the type.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import linalg

from fuseline.analysis.cost import flops, num_bytes
from fuseline.analysis.filtered_convolutions import filtered_dims
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, is_reduction, kind
from fuseline.ir.costs import assumed_size
from fuseline.ir.target_description import TargetDescription
from fuseline.passes.dispatch.banded_pair import BandedPair
from fuseline.passes.dispatch.banded_sizes import BandedSizes
from fuseline.passes.dispatch.region_rows import RegionRows
from fuseline.passes.dispatch.row_bands import Bands, cut_rows
from fuseline.targets.target import Refusal

MOST_SLOWER = 0.03
"""The share of their time that two dispatches may take longer as one, by the target's costs."""

MOST_SLOWER_KEPT = 0.05
"""The same where a thread keeps the rows that its bands share: what is left is a band's rows for each thread, and that
is predicted too high (measured, two threads, stems of 80 to 96 rows: predicted .03 to .045, .98 to 1.02 of the time of
three dispatches; of 40 rows: .09 and 1.06)."""

MOST_KEPT = 0.5
"""The share of the image that the bands of all threads may keep: of more there is little to gain."""

UNEVEN = 0.02
"""The share of their time by which bands of two heights must be faster than bands of one: they are twice the code."""

MOST_CACHED = 5 / 8
"""The share of a core's cache that a band may keep between its ops and be faster for it (measured, an image of 258 x
259 x 32, its window and a product: of 1.1 MB and less .77 of the time, of 2.2 .90, of 4.4 1.00)."""

EXPOSED = 1 / 4
"""The share of the time that storing and loading takes which a window and a product do not hide (measured, an image of
112 x 112 x 32 in 4 bands: .82 to .97 of the time of three dispatches, 129 x 129 x 32 with 5 rows for each 3: 1.15)."""

EXPOSED_IN_CACHE, SLOWER_IN_CACHE = 1 / 256, 0.02
"""The same where a core's cache has room for the image and for what is handed on: next to nothing, and the share of
their time that bands take longer (measured, one thread: of 1.6 MB and less 1.04 to 1.25 of the time, from 4.7 MB on .48
to 1.06). Where a thread keeps the rows that its bands share they take no longer (measured, stems of 80 to 112 rows in 8
and 32 bits: .97 to 1.03, on the average 1.003)."""

LOW_FILTERED = 1.2
"""The share of its time that a filtered convolution takes longer in bands of one row, which are no tile high (measured
where a band's result is moved: 1.6 to 2.7 of the time of two dispatches, of 2 rows 1.3 to 1.4, of 4 .83 to 1.2, of 8
.84 to 1.0)."""

MOVED_SINGLY = 0.1
"""The share of the whole by which moving bands takes longer where elements that lie side by side in a product do not in
what is made of it (measured, 4 rows: 1.06 to 1.25 of the time of two dispatches; moved in pieces .83 to .96)."""

LEAST_GAIN = 0.005
"""The share of the time that bands around a window must be predicted to save, or they are not faster."""


@dataclass(frozen=True, slots=True)
class BandChoice:
    """The bands of `cut` that keep `scratch_bytes` each at the most; `loss_ns` is what one thread takes longer, or,
    below 0, less, `whole_ns` what the arithmetic takes it without bands.
    `recompute`: how often the rows of the image and of its border are computed, on the average. `keeps`: whether a
    thread keeps those that its bands share."""

    cut: tuple[Bands, ...]
    scratch_bytes: int
    recompute: float
    loss_ns: float
    whole_ns: float
    keeps: bool = False

    @property
    def count(self) -> int:
        """How many bands there are."""
        return sum(bands.count for bands in self.cut)

    @property
    def heights(self) -> str:
        """How many bands there are, and their heights."""
        return f"{self.count} bands of {' or '.join(str(bands.rows) for bands in self.cut)} rows"

    @property
    def numbers(self) -> dict[str, float]:
        """What was weighed, for a record."""
        return {
            "predicted_loss_ns": float(round(self.loss_ns)),
            "bands": float(self.count),
            "recompute": round(self.recompute, 3),
            "scratch_bytes": float(self.scratch_bytes),
        }

    def is_within(self, most_slower: float | None = None) -> bool:
        """Whether one dispatch is predicted to take no more than this share of the time apart longer (below 0: to save
        so much; None: what `default` allows)."""
        return self.loss_ns <= (self.most_slower if most_slower is None else most_slower) * self.whole_ns

    @property
    def most_slower(self) -> float:
        """The share of the time apart that one dispatch around a window may take longer; below 0, what it must save."""
        return MOST_SLOWER_KEPT if self.keeps else -LEAST_GAIN


def choose_bands(pair: BandedPair, shapes: ShapeAnalysis, target: TargetDescription) -> BandChoice | Refusal:
    """The bands that take least time, or why there are none."""
    sizes = sizes_of(pair, shapes, target)
    limit = min(target.band_bytes_limit, int(MOST_KEPT * sizes.image_bytes / target.threads))
    best = _best(sizes, target, limit)
    if isinstance(best, Refusal):
        return best
    most = MOST_SLOWER * best.whole_ns
    if best.loss_ns <= most:
        return best
    why = f"{best.count} bands take {best.loss_ns:.0f} ns longer, {most:.0f} are allowed"
    return Refusal("too-dear", why, best.numbers)


def choose_cached_bands(sizes: BandedSizes, target: TargetDescription) -> BandChoice | Refusal:
    """The bands that take least time of those that a core's cache keeps, or why there are none."""
    cached = target.costs.cached_bytes
    limit = min(target.band_bytes_limit, int(MOST_CACHED * cached))
    if sizes.image_bytes + sizes.handed_on > cached:
        return _best(sizes, target, limit, EXPOSED)
    slower = 0.0 if sizes.keeps else SLOWER_IN_CACHE
    return _best(sizes, target, limit, EXPOSED_IN_CACHE, slower)


def sizes_of(pair: BandedPair, shapes: ShapeAnalysis, target: TargetDescription) -> BandedSizes:
    """What bands of `pair` are weighed by."""
    maker, *others = (roots_ns(rows.loops, shapes, target) for rows in pair.parts)
    filters = _is_filtered(pair.maker, shapes, target)
    return BandedSizes(
        image_bytes=assumed_size(num_bytes(pair.image, shapes)),
        image_rows=pair.image_rows,
        rows=pair.rows,
        read=pair.read,
        maker_ns=maker,
        reader_ns=sum(others),
        handed_on=pair.handed_on(shapes),
        beside=pair.kept_beside(shapes),
        is_outermost=pair.is_outermost,
        low_loss=LOW_FILTERED if pair.is_moved and filters else 0.0,
        moved_loss=MOVED_SINGLY if pair.moves_singly else 0.0,
        makes_rows=not filters and any(kind(op) is Kind.CONVOLUTION for op in pair.maker.loops),
    )


def _is_filtered(rows: RegionRows, shapes: ShapeAnalysis, target: TargetDescription) -> bool:
    return any(_filters(op, shapes, target) for op in rows.loops if is_reduction(op))


def roots_ns(ops: Iterable[linalg.ops.GenericOp], shapes: ShapeAnalysis, target: TargetDescription) -> float:
    """Time of the arithmetic of those of `ops` that reduce, on one thread."""
    return sum(_product_ns(op, shapes, target) for op in ops if is_reduction(op))


def _best(
    sizes: BandedSizes, target: TargetDescription, limit: int, exposed: float = 1.0, slower: float = 0.0
) -> BandChoice | Refusal:
    """Of bands that keep no more than `limit` bytes those that take least time as if nothing were kept: high ones,
    which share few rows, kept or not. `exposed`: the share of the time of what is not stored that shows; `slower`: that
    of the whole that bands take longer."""
    saved = sum(_saved_ns(size, target, exposed) for size in (sizes.image_bytes, sizes.handed_on) if size)

    def weighed(cut: tuple[Bands, ...], *, keeps: bool) -> BandChoice:
        return _weighed(sizes, cut, target.threads, slower, saved, keeps=keeps)

    fitting = [weighed(cut, keeps=False) for cut in _cuts(sizes, target) if sizes.kept_bytes(cut[-1]) <= limit]
    if not fitting:
        return Refusal("scratch", f"no band of it keeps {limit:,} bytes or less")
    best = min(fitting, key=_rank)
    return weighed(best.cut, keeps=True) if sizes.keeps else best


def _rank(choice: BandChoice) -> tuple[float, int]:
    """What orders choices, the best first."""
    uneven = UNEVEN * choice.whole_ns if len(choice.cut) > 1 else 0.0
    return choice.loss_ns + uneven, choice.scratch_bytes


def _cuts(sizes: BandedSizes, target: TargetDescription) -> Iterator[tuple[Bands, ...]]:
    """Bands, at least one for each thread."""
    for count in range(max(2, target.threads), sizes.rows + 1):
        cut = cut_rows(sizes.rows, count)
        if len(cut) == 1 or (sizes.is_outermost and target.arms_limit >= len(cut)):
            yield cut


def _weighed(
    sizes: BandedSizes, cut: tuple[Bands, ...], threads: int, slower: float, saved: float, *, keeps: bool
) -> BandChoice:
    """Bands that save a thread so many nanoseconds beside the arithmetic."""
    whole, of_image = (sizes.maker_ns + sizes.reader_ns) / threads, [bands.read_by(sizes.read) for bands in cut]
    loss = (
        sizes.maker_ns / sizes.image_rows * _busiest(of_image, threads, keeps=keeps)
        + sizes.reader_ns * _busiest(cut, threads, keeps=False) / sizes.rows
        + sizes.low_ns(cut) / threads
        - (1 - slower - sizes.moved_loss) * whole
        - saved
    )
    made = sum(_made(bands, bands.count, threads, keeps=keeps) for bands in of_image)
    return BandChoice(cut, sizes.kept_bytes(cut[-1]), made / of_image[-1].end, loss, whole, keeps)


def _busiest(cut: Sequence[Bands], threads: int, *, keeps: bool) -> int:
    """Rows of the thread that has most: in turn each takes a band, the highest first."""
    rows = taken = 0
    for bands in reversed(cut):
        left = taken + bands.count
        rows += _made(bands, -(-left // threads) - -(-taken // threads), 1, keeps=keeps)
        taken = left
    return rows


def _made(bands: Bands, count: int, threads: int, *, keeps: bool) -> int:
    """Rows of so many of the bands, by so many threads; one that `keeps` them makes those that two share once."""
    return count * bands.rows - (max(0, count - threads) * bands.shared if keeps else 0)


def _saved_ns(size: int, target: TargetDescription, exposed: float) -> float:
    """What each thread saves that so many bytes are neither stored nor loaded, and a launch."""
    costs = target.costs
    return exposed * 2 * size / costs.intermediate_bytes_per_ns(size) / target.threads + costs.launch_ns


def _product_ns(root: linalg.ops.GenericOp, shapes: ShapeAnalysis, target: TargetDescription) -> float:
    gain = target.costs.filtering_gain if _filters(root, shapes, target) else 1.0
    return assumed_size(flops(root, shapes)) / target.costs.flops_per_ns / gain


def _filters(root: linalg.ops.GenericOp, shapes: ShapeAnalysis, target: TargetDescription) -> bool:
    view = StructuredOp(root)
    return target.numerics != "strict" and filtered_dims(view, view.loops(shapes), target.costs) is not None
