"""Named ops of linalg."""

from __future__ import annotations

from tests.programs.points import settled
from tests.programs.program import LARGEST, MOST_ELEMENTS, Program, Tensor


def broadcast(p: Program) -> None:
    """`linalg.broadcast` along a new dimension."""
    source = p.pick(lambda v: len(v.dims) < 4)
    if source is None:
        return
    axis, size = int(p.rng.integers(len(source.dims) + 1)), int(p.any([1, 2, 3, 8]))
    dims = (*source.dims[:axis], size, *source.dims[axis:])
    if p.elements(dims) > MOST_ELEMENTS:
        return
    out, made = p.empty(dims, source.dtype), Tensor(p.name("d"), dims, source.dtype)
    p.say(
        f"{made.name} = linalg.broadcast ins({source.name} : {source.type}) outs({out.name} : {out.type}) "
        f"dimensions = [{axis}]"
    )
    p.add(made)


def reduced(p: Program) -> None:
    """`linalg.reduce` along one or more dimensions."""
    source = p.pick(lambda v: len(v.dims) > 0 and v.dtype != "f16")
    if source is None:
        return
    rank = len(source.dims)
    axes = sorted(int(i) for i in p.rng.choice(rank, int(p.rng.integers(1, rank + 1)), replace=False))
    dims = tuple(size for axis, size in enumerate(source.dims) if axis not in axes)
    kind = p.any(["add", "max"])
    out = p.fill(dims, source.dtype, 0 if kind == "add" else -LARGEST)
    op = {"addf": "arith.addf", "maxf": "arith.maximumf", "addi": "arith.addi", "maxi": "arith.maxsi"}[
        kind + source.dtype[0]
    ]
    made = Tensor(p.name("q"), dims, source.dtype)
    p.say(
        f"{made.name} = linalg.reduce {{ {op} }} ins({source.name} : {source.type}) outs({out.name} : {out.type}) "
        f"dimensions = {axes}"
    )
    p.add(made)
    settled(p)


def batches(p: Program) -> None:
    """`linalg.batch_matmul` with an argument, of i8 (into i32) or f32."""
    source = p.pick(
        lambda v: len(v.dims) == 3 and v.dtype in ("f32", "i32") and all(isinstance(n, int) for n in v.dims)
    )
    if source is None:
        return
    (b, m, k), n = (int(size) for size in source.dims), int(p.any([1, 3, 8, 16, 17]))
    right = p.argument([b, k, n], source.dtype)
    out, made = p.fill((b, m, n), source.dtype, 0), Tensor(p.name("m"), (b, m, n), source.dtype)
    p.say(
        f"{made.name} = linalg.batch_matmul ins({source.name}, {right.name} : {source.type}, {right.type}) "
        f"outs({out.name} : {out.type}) -> {made.type}"
    )
    p.add(made)
    settled(p)


def pooled(p: Program) -> None:
    """`linalg.pooling_nhwc_max` or `_sum`, or `linalg.depthwise_conv_2d_nhwc_hwc`."""
    source = p.pick(lambda v: len(v.dims) == 4 and v.dtype == "f32" and all(isinstance(n, int) for n in v.dims))
    if source is None:
        return
    n, h, w, c = (int(size) for size in source.dims)
    kh, kw, sh, sw = (int(p.any([1, 2, 3])) for _ in range(4))
    if kh > h or kw > w:
        return
    dims = (n, (h - kh) // sh + 1, (w - kw) // sw + 1, c)
    kind = p.any(["pooling_nhwc_max", "pooling_nhwc_sum", "depthwise_conv_2d_nhwc_hwc"])
    other = p.argument([kh, kw, c], "f32") if kind[0] == "d" else p.empty((kh, kw), "f32")
    out = p.fill(dims, "f32", -LARGEST if kind.endswith("max") else 0)
    made = Tensor(p.name("o"), dims, "f32")
    p.say(
        f"{made.name} = linalg.{kind} {{dilations = dense<1> : vector<2xi64>, strides = dense<[{sh}, {sw}]> : "
        f"vector<2xi64>}} ins({source.name}, {other.name} : {source.type}, {other.type}) "
        f"outs({out.name} : {out.type}) -> {made.type}"
    )
    p.add(made)
    settled(p)


def named(p: Program) -> None:
    """A named op: a broadcast, a reduction, a product in batches, a pool, a convolution channel by channel."""
    p.any([broadcast, reduced, batches, pooled])(p)
