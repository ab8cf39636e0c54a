"""How long a dispatch is predicted to take: the kinds of work it is made of, what a unit of each takes, and the one
function that adds them up.

    work      {"product": 2.1e8, "bytes": 4e5, "operations": 1e5, ...}      dispatch/work.py counts it
    costs     nanoseconds of one thread per unit of each                    fitted: `fuseline tune --fit`
    predicted = launch + barrier + share * sum(work * cost)

Predictions are for reports, for ranking and for searches. Fusion weighs merges with `ir/costs.py`, which is another
question: not how long a dispatch takes, but which of two ways of computing the same takes longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class WorkCosts:
    """Nanoseconds of one thread for a unit of each kind of work.

    `launch`: a dispatch, whatever it does; `barrier`: beyond that one that several threads share. Every other field is
    named as the work is in `DispatchRecord.work`:

    Attributes:
        product: an operation of a contraction or a convolution on floats (a multiply-add is two), its columns counted
        in whole vectors. product_int: the same on integers. filtered: of a convolution,
        counted as if it were direct, that is made by minimal filtering (Winograd). transformed: an element of the image
        and the result of one. depthwise: of a depthwise
        convolution. pooled: an element of a window that is not multiplied. reduced: an operation of any other
        reduction, scan, scatter or sort. operations: one of elementwise ops that a vector unit has; functions: an exp,
        tanh, erf or the like. points: an element that an elementwise op makes. moved: an element of a pad, slice,
        concat or transpose. gathered: an element that is read where an index says. constant_bytes: of constants that
        are read; bytes: of what else is read or written. constant_far, far: those of them that a core's own caches
        do not hold, beyond that. vector_bytes: of the constants that a product multiplies few rows with, per row;
        vector_far: those of them beyond a core's own caches.
    """

    launch: float = 38.2
    barrier: float = 300.0
    product: float = 0.0078
    product_int: float = 0.00585
    filtered: float = 0.00349
    transformed: float = 0.00479
    depthwise: float = 0.00541
    pooled: float = 0.0336
    reduced: float = 0.00927
    operations: float = 0.0195
    functions: float = 0.31
    points: float = 0.0092
    moved: float = 0.0637
    gathered: float = 1.03
    constant_bytes: float = 0.00243
    bytes: float = 0.00436
    constant_far: float = 0.0415
    far: float = 0.0228
    vector_bytes: float = 0.000611
    vector_far: float = 0.00312


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
    alone = sum(amount * float(getattr(costs, kind)) for kind, amount in work.items())
    return costs.launch + (costs.barrier if share < 1 else 0.0) + share * alone
