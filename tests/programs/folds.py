"""Reductions in any order and in that of the loops, with two results that know of one another, and over windows."""

from __future__ import annotations

from collections.abc import Sequence

from tests.programs.body import Body, generic
from tests.programs.points import identity, map_onto
from tests.programs.program import LARGEST, Program

FOLDS = ("sum", "max", "min", "last", "first above", "drain", "place of best", "count", "sum of products", "two")


def fold(p: Program) -> None:
    """Along some loops: in any order, in the order of the loops, or with two results that know of one another."""
    source = p.pick(lambda v: len(v.dims) > 0 and v.dtype != "f16")
    if source is None:
        return
    rank, kind = len(source.dims), p.any(FOLDS)
    order = [int(i) for i in p.rng.permutation(rank)] if p.chance(0.4) else list(range(rank))
    extents = [source.dims[i] for i in order]
    folded = {int(i) for i in p.rng.choice(rank, int(p.rng.integers(1, rank + 1)), replace=False)}
    kept = [loop for loop in range(rank) if loop not in folded]
    if p.chance(0.3):
        kept = [kept[int(i)] for i in p.rng.permutation(len(kept))]
    places = [""] * rank
    for loop, axis in enumerate(order):
        places[axis] = f"d{loop}"
    inputs = [(source, ", ".join(places))]
    other = p.pick(lambda v: v.dtype == source.dtype)
    read = map_onto(p, other, extents) if other is not None else None
    if kind == "sum of products" and other is not None and read is not None:
        inputs.append((other, read))
    dtype, dims, written = source.dtype, [extents[loop] for loop in kept], ", ".join(f"d{loop}" for loop in kept)
    start = int(p.rng.integers(-2, 3))
    outputs = [(p.fill(dims, dtype, -LARGEST if kind in ("max", "place of best") else start), written)]
    if kind in ("place of best", "two"):
        outputs.append((p.fill(dims, "i64", 0), written))
    kinds = ["reduction" if loop in folded else "parallel" for loop in range(rank)]
    generic(p, inputs, outputs, kinds, lambda b, x, acc: fold_body(b, kind, dtype, x, acc, sorted(folded)), extents)


def fold_body(b: Body, kind: str, dtype: str, x: list[str], acc: list[str], folded: Sequence[int]) -> list[str]:
    one = b.number(1, dtype)
    if kind in ("max", "min"):
        return [b.binary(kind, x[0], acc[0], dtype)]
    if kind == "last":
        return [b.select(b.less(acc[0], acc[0], dtype), acc[0], x[0], dtype)]
    if kind == "first above":
        return [b.select(b.less(acc[0], b.number(2, dtype), dtype), x[0], acc[0], dtype)]
    if kind == "drain":
        return [b.select(b.less(acc[0], x[0], dtype), x[0], b.binary("sub", acc[0], one, dtype), dtype)]
    if kind == "count":
        hit = b.select(b.less(x[0], one, dtype), one, b.number(0, dtype), dtype)
        return [b.binary("add", acc[0], hit, dtype)]
    if kind in ("place of best", "two"):
        better = b.less(acc[0], x[0], dtype)
        place = b.index(folded[0])
        for loop in folded[1:]:
            scaled = b.op(f"arith.muli {place}, {b.number(64, 'i64')} : i64")
            place = b.op(f"arith.addi {scaled}, {b.index(loop)} : i64")
        if kind == "two":
            place = b.op(f"arith.addi {acc[1]}, {b.number(1, 'i64')} : i64")
        return [b.select(better, x[0], acc[0], dtype), b.select(better, place, acc[1], "i64")]
    term = b.binary("mul", x[0], x[-1], dtype) if kind == "sum of products" else x[0]
    return [b.binary("add", acc[0], term, dtype)]


def window(p: Program) -> None:
    """A pool or a fold in order over places of one axis, with a stride and a dilation."""
    source = p.pick(lambda v: v.dtype != "f16" and any(isinstance(n, int) and n > 2 for n in v.dims))
    if source is None:
        return
    axis = p.any([i for i, n in enumerate(source.dims) if isinstance(n, int) and n > 2])
    size, stride, dilation = int(p.rng.integers(2, 4)), int(p.rng.integers(1, 3)), int(p.rng.integers(1, 3))
    whole = source.dims[axis]
    assert isinstance(whole, int)
    reach = (size - 1) * dilation + 1
    if reach > whole:
        return
    rank, count = len(source.dims), (whole - reach) // stride + 1
    dims = tuple(count if i == axis else n for i, n in enumerate(source.dims))
    read = ", ".join(f"d{i} * {stride} + d{rank} * {dilation}" if i == axis else f"d{i}" for i in range(rank))
    shape, kind = p.empty([size], source.dtype), p.any(["sum", "max", "drain", "last"])
    generic(
        p, [(source, read), (shape, f"d{rank}")],
        [(p.fill(dims, source.dtype, -LARGEST if kind == "max" else 0), identity(rank))],
        [*["parallel"] * rank, "reduction"],
        lambda b, x, acc: fold_body(b, kind, source.dtype, x[:1], acc, [rank]), [*dims, size],
    )  # fmt: skip
