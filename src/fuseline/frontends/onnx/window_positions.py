"""Where a window may stand along one axis of an image (ONNX, `Conv` and the poolings)."""

from __future__ import annotations

from fuseline.ir.dim import Dim, add, ceil_div, floor_div, maximum, minimum, mul, sub


def window_positions(size: Dim, span: int, stride: int, padding: tuple[int, int], *, ceil: bool) -> tuple[Dim, Dim]:
    """How many places a window over `span` elements has, and how much more padding at the end it needs for them (where
    sizes are rounded up: `ceil`)."""
    low, high = padding
    room = sub(add(size, low + high), span)
    if not ceil or stride == 1:
        return add(floor_div(room, stride), 1), 0
    count = minimum(
        add(ceil_div(room, stride), 1), ceil_div(add(size, low), stride)
    )  # the last window may not start in the padding at the end
    return count, maximum(0, sub(add(mul(sub(count, 1), stride), span), add(size, low + high)))
