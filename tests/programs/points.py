"""Ops that compute each element by itself, through any maps, and at places that another tensor holds."""

from __future__ import annotations

from collections.abc import Sequence

from tests.programs.body import Body, generic
from tests.programs.program import MOST_ELEMENTS, Program, Size, Tensor


def map_onto(p: Program, tensor: Tensor, extents: Sequence[Size]) -> str | None:
    """A random map with which loops of `extents` read all or some of `tensor`; None where no loop fits a dimension."""
    left, places = list(range(len(extents))), list[str]()
    for size in tensor.dims:
        fits = [loop for loop in left if extents[loop] == size]
        if size == 1 and (not fits or p.chance(0.5)):
            places.append("0")
        elif fits:
            loop = p.any(fits)
            left.remove(loop)
            places.append(f"d{loop}")
        else:
            return None
    return ", ".join(places)


def identity(rank: int) -> str:
    return ", ".join(f"d{i}" for i in range(rank))


def elementwise(p: Program) -> None:
    """Of one to three operands, through any maps; one or two results, perhaps transposed."""
    first = p.pick()
    if first is None:
        return
    loops = list(p.rng.permutation(len(first.dims))) if p.chance(0.3) else list(range(len(first.dims)))
    extents: list[Size] = [first.dims[0]] * len(loops) if loops else []
    for axis, loop in enumerate(loops):
        extents[loop] = first.dims[axis]
    if p.chance(0.15) and p.elements(extents) * 3 < MOST_ELEMENTS:  # a broadcast
        extents.append(3)
    inputs = [(first, ", ".join(f"d{loop}" for loop in loops))]
    for _ in range(int(p.rng.integers(0, 3))):
        other = p.pick()
        read = map_onto(p, other, extents) if other is not None else None
        if other is not None and read is not None:
            inputs.append((other, read))
    outputs: list[tuple[Tensor, str]] = []
    for _ in range(1 + p.chance(0.2)):
        order = [int(i) for i in p.rng.permutation(len(extents))] if p.chance(0.25) else list(range(len(extents)))
        dtype = p.any(["f32", "f32", first.dtype, "f16", "i64", "i32"])
        outputs.append((p.empty([extents[i] for i in order], dtype), ", ".join(f"d{i}" for i in order)))

    def body(b: Body, given: list[str], _: list[str]) -> list[str]:
        pairs = [(name, tensor.dtype) for name, (tensor, _) in zip(given, inputs, strict=True)]
        return [b.expression(pairs, tensor.dtype, len(extents)) for tensor, _ in outputs]

    generic(p, inputs, outputs, ["parallel"] * len(extents), body, extents)


def settled(p: Program) -> None:
    """A value between -LARGEST and LARGEST again: sums and products grow."""
    source = p.pick()
    if source is not None:
        rank = len(source.dims)
        generic(
            p, [(source, identity(rank))], [(p.empty(source.dims, source.dtype), identity(rank))],
            ["parallel"] * rank, lambda b, x, _: [b.clamped(x[0], source.dtype)], source.dims,
        )  # fmt: skip


def gather(p: Program) -> None:
    """A generic that extracts elements of one tensor at places that another holds."""
    source = p.pick(lambda v: len(v.dims) > 0 and all(isinstance(n, int) for n in v.dims))
    places = p.pick(lambda v: v.dtype in ("i64", "i32"))
    if source is None or places is None:
        return
    rank = len(places.dims)

    def body(b: Body, x: list[str], _: list[str]) -> list[str]:
        at: list[str] = []
        for size in source.dims:
            value = b.cast(x[0], places.dtype, "i64")
            if rank and p.chance(0.5):
                value = b.op(f"arith.addi {value}, {b.index(int(p.rng.integers(rank)))} : i64")
            low = b.op(f"arith.maxsi {value}, {b.number(0, 'i64')} : i64")
            low = b.op(f"arith.minsi {low}, {b.number(int(size) - 1, 'i64')} : i64")
            at.append(b.op(f"arith.index_cast {low} : i64 to index"))
        return [b.op(f"tensor.extract {source.name}[{', '.join(at)}] : {source.type}")]

    out = p.empty(places.dims, source.dtype)
    generic(p, [(places, identity(rank))], [(out, identity(rank))], ["parallel"] * rank, body, places.dims)
