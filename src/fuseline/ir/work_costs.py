"""How long a dispatch is predicted to take: the kinds of work it is made of, what a unit of each takes, and the one
function that adds them up.

    work      {"product": 2.1e8, "bytes": 4e5, "operations": 1e5, ...}      dispatch/work.py counts it
    costs     nanoseconds of one thread per unit of each                    fitted: `fuseline tune --fit`
    predicted = launch + barrier + share * overlapped(sum of arithmetic * cost, sum of traffic * cost)

Predictions are for reports, for ranking and for searches. Fusion weighs merges with `ir/costs.py`, which is another
question: not how long a dispatch takes, but which of two ways of computing the same takes longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeVar

from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import Dim

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class WorkCosts:
    """Nanoseconds of one thread for a unit of each kind of work.

    `launch`: a dispatch, whatever it does; `barrier`: beyond that one that several threads share. Every other field is
    named as the work is in `DispatchRecord.work`:

    Attributes:
        product: an operation of a contraction or a convolution on floats (a multiply-add is two), its columns counted
        in whole vectors. product_int: the same on integers. filtered: of a convolution that is made by minimal
        filtering (Winograd), counted as if it were direct and all tiles were of 4x4 outputs and a window of 3x3.
        transformed: an element of a tile that it transforms. depthwise: of a depthwise convolution. pooled: an element
        of a window that is not multiplied. reduced: an operation of any other reduction, scan, scatter or sort.
        operations: one of elementwise ops that a vector unit has; functions: an exp, tanh, erf or the like. followed:
        an operation of elementwise ops, once for each one before it in its chain (`dispatch/chains.py`). points: an
        element that an elementwise op makes. moved: an element of a pad, slice, concat or transpose. gathered: an
        element that is read, or combined by a scatter, where an index says. constant_bytes: of constants that are read;
        bytes: of what else is read or written. constant_far, far: those of them that a core's own caches do not hold,
        beyond that. vector_bytes: of the constants that a product multiplies few rows with, per row; vector_far: those
        of them beyond a core's own caches. panels: bytes of columns that the register tiles of a product read, each
        tile all of its panel. again: bytes of rows that it reads again for a further panel of columns, and that a
        core's own caches did not keep.
    """

    launch: float = 61.2
    barrier: float = 300.0
    product: float = 0.00927
    product_int: float = 0.00736
    filtered: float = 0.00292
    transformed: float = 0.057
    depthwise: float = 0.00703
    pooled: float = 0.0279
    reduced: float = 0.0269
    operations: float = 0.0144
    functions: float = 0.285
    followed: float = 0.000599
    points: float = 0.0276
    moved: float = 0.138
    gathered: float = 1.42
    constant_bytes: float = 9.19e-05
    bytes: float = 0.00124
    constant_far: float = 0.0331
    far: float = 0.0955
    vector_bytes: float = 8.33e-05
    vector_far: float = 0.00214
    panels: float = 0.00379
    again: float = 0.0174


OVERLAP = 4.0
"""How much of the shorter of arithmetic and traffic hides behind the longer: 1 nothing (the ECM model's sum), infinity
all of it (the roofline's maximum). Cores that run out of order lie between; models left out were ranked equally well
from 3 to 6, worse at 2, worst at 1."""

TRAFFIC = ("bytes", "far")
"""The kinds of work that hide: streams of tensors. Constants of products are read in step with the arithmetic."""

KINDS = tuple(field.name for field in fields(WorkCosts))[2:]
"""The kinds of work, in the order of `WorkCosts`: without the launch and the barrier."""

ASSUMED_WORK_COSTS = WorkCosts()
"""Of a machine that nobody has measured: fitted to AVX2 code of 17 models, one thread; the barrier is a guess."""


def share_of(threads: int, workgroups: int | None) -> float:
    """The part of a dispatch that its busiest thread does; None: more workgroups than anyone has threads.

    >>> share_of(4, 6), share_of(4, 1), share_of(2, None)
    (0.3333333333333333, 1.0, 0.5)
    """
    if workgroups is None:
        return 1 / max(threads, 1)
    return -(-max(workgroups, 1) // max(threads, 1)) / max(workgroups, 1)


def predicted_ns(work: Mapping[str, float], costs: WorkCosts, share: float = 1.0) -> float:
    """Nanoseconds from launch to end of a dispatch of this `work`, of which the busiest thread does `share`.

    >>> predicted_ns({"product": 1e6}, WorkCosts(launch=100, barrier=50, product=0.01), share=0.5)
    5150.0
    """
    spent = {kind: amount * float(getattr(costs, kind)) for kind, amount in work.items()}
    traffic = sum(spent.get(kind, 0.0) for kind in TRAFFIC)
    alone = overlapped(sum(spent.values()) - traffic, traffic)
    return costs.launch + (costs.barrier if share < 1 else 0.0) + share * alone


Time = TypeVar("Time", float, "NDArray[np.float64]")


def overlapped(arithmetic: Time, traffic: Time) -> Time:
    """The time of both, of which some goes on at once: numbers, or arrays of them.

    >>> overlapped(3.0, 0.0), round(overlapped(1.0, 1.0), 3)
    (3.0, 1.189)
    """
    both: Any = arithmetic**OVERLAP + traffic**OVERLAP
    return both ** (1 / OVERLAP)


USUAL_GAIN, USUAL_POINTS = 4.0, 2.25
"""Of tiles of 4x4 outputs and a window of 3x3: 144 multiplications are 36, which are 2.25 for each pixel."""

FILTERED = "filtered"
"""The note of a kernel that minimal filtering makes: what `filtered_work` answers."""

MADE = "made"
"""The note of a kernel that says what it does beside what its dispatch counts, by kind; less where it is negative."""


def filtered_work(tiles: Dim, points: int, channels: int, columns: int, longer: float = 1.0) -> dict[str, float]:
    """The work of a convolution by minimal filtering: for each of `points` elements of each of `tiles` a product of
    `channels` by `columns`, which take `longer` than their operations; and the elements that are transformed, of the
    image and of the products.

    >>> filtered_work(2, 36, 8, 16) == {"filtered": 2 * (2 * 16) * 9 * 8 * 16, "transformed": 2 * 36 * (8 + 16)}
    True
    """
    count = assumed_size(tiles) * points
    return {
        "filtered": 2.0 * count * USUAL_GAIN * channels * columns * longer,
        "transformed": float(count * (channels + columns)),
    }
