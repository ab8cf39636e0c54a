"""Products of matrices and convolutions, as named ops and as generics."""

from __future__ import annotations

from tests.programs.body import generic
from tests.programs.points import settled
from tests.programs.program import SIZES, Program, Tensor


def product(p: Program) -> None:
    """`linalg.matmul`, or a generic with a transposed operand."""
    a = p.pick(lambda v: len(v.dims) == 2 and v.dtype in ("f32", "i32"))
    if a is None:
        return
    b = p.pick(lambda v: len(v.dims) == 2 and v.dtype == a.dtype and a.dims[1] in v.dims)
    if b is None or p.chance(0.4):
        n = int(p.any(SIZES))
        b = p.argument([p.size(a.dims[1]), n][:: p.any([1, -1])], a.dtype)
        if isinstance(a.dims[1], str):
            return
    swapped = b.dims[0] != a.dims[1] or (b.dims[1] == a.dims[1] and p.chance(0.5))
    n = b.dims[0] if swapped else b.dims[1]
    out = p.fill([a.dims[0], n], a.dtype, int(p.rng.integers(-1, 2)))
    if not swapped and p.chance(0.5):
        made = Tensor(p.name("m"), out.dims, a.dtype)
        p.say(
            f"{made.name} = linalg.matmul ins({a.name}, {b.name} : {a.type}, {b.type}) "
            f"outs({out.name} : {out.type}) -> {made.type}"
        )
        p.add(made)
    else:
        inputs = [(a, "d0, d2"), (b, "d1, d2" if swapped else "d2, d1")]
        generic(
            p, inputs, [(out, "d0, d1")], ["parallel", "parallel", "reduction"],
            lambda e, x, acc: [e.binary("add", acc[0], e.binary("mul", x[0], x[1], a.dtype), a.dtype)],
            [a.dims[0], n, a.dims[1]],
        )  # fmt: skip
    settled(p)


def convolution(p: Program) -> None:
    """Of `[n, channels, pixels]` or `[n, pixels, channels]`, or channel by channel; the filter is an argument."""
    image = p.pick(lambda v: len(v.dims) == 3 and v.dtype == "f32" and all(isinstance(n, int) for n in v.dims))
    if image is None:
        return
    first, deep = p.chance(0.5), p.chance(0.3)  # channels first, a filter for each
    n, a, b = (int(size) for size in image.dims)
    (channels, pixels), size, stride, dilation = (a, b) if first else (b, a), *(int(p.any([1, 2, 3])) for _ in range(3))
    reach = (size - 1) * dilation + 1
    if reach > pixels:
        return
    out, filters = (pixels - reach) // stride + 1, channels if deep else int(p.any([1, 3, 4, 8, 16]))
    weights = p.argument([channels, size] if deep else [filters, channels, size], "f32")
    place, dims = f"d2 * {stride} + d3 * {dilation}", (n, filters, out) if first else (n, out, filters)
    channel = "d1" if deep else "d4"
    inputs = [
        (image, f"d0, {channel}, {place}" if first else f"d0, {place}, {channel}"),
        (weights, "d1, d3" if deep else "d1, d4, d3"),
    ]
    generic(
        p, inputs, [(p.fill(dims, "f32", 0), "d0, d1, d2" if first else "d0, d2, d1")],
        ["parallel", "parallel", "parallel", *["reduction"] * (1 if deep else 2)],
        lambda e, x, acc: [e.binary("add", acc[0], e.binary("mul", x[0], x[1], "f32"), "f32")],
        [n, filters, out, size, channels][: 4 if deep else 5],
    )  # fmt: skip
    settled(p)
