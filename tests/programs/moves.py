"""Ops that move data: transposes, reshapes, slices, pads, concats, insertions."""

from __future__ import annotations

from math import prod

from tests.programs.program import MOST_ELEMENTS, Program, Size, Tensor


def transposed(p: Program) -> None:
    """`linalg.transpose`."""
    source = p.pick(lambda v: len(v.dims) > 1)
    if source is None:
        return
    order = [int(i) for i in p.rng.permutation(len(source.dims))]
    out = p.empty([source.dims[i] for i in order], source.dtype)
    made = Tensor(p.name("t"), out.dims, out.dtype)
    p.say(
        f"{made.name} = linalg.transpose ins({source.name} : {source.type}) outs({out.name} : {out.type}) "
        f"permutation = {order}"
    )
    p.add(made)


def collapsed(p: Program) -> None:
    """Neighbouring dimensions as one."""
    source = p.pick(lambda v: len(v.dims) > 1)
    if source is None:
        return
    groups = [[0]]
    for axis in range(1, len(source.dims)):
        groups[-1].append(axis) if p.chance(0.5) else groups.append([axis])
    if len(groups) == len(source.dims):
        return
    sizes = [p.elements([source.dims[i] for i in group]) for group in groups]
    dims: list[Size] = [
        source.dims[group[0]] if len(group) == 1 else size if all(isinstance(source.dims[i], int) for i in group)
        else "?" for group, size in zip(groups, sizes, strict=True)
    ]  # fmt: skip
    made = Tensor(p.name("r"), tuple(dims), source.dtype)
    p.say(f"{made.name} = tensor.collapse_shape {source.name} {groups} : {source.type} into {made.type}")
    p.add(p.named(made, sizes))


def expanded(p: Program) -> None:
    """One dimension as two."""
    source = p.pick(lambda v: 0 < len(v.dims) < 5 and any(isinstance(n, int) and n > 3 for n in v.dims))
    if source is None:
        return
    axis = p.any([i for i, n in enumerate(source.dims) if isinstance(n, int) and n > 3])
    size = int(source.dims[axis])
    factors = [n for n in range(1, size + 1) if size % n == 0]
    outer = int(p.any(factors))
    dims = (*source.dims[:axis], outer, size // outer, *source.dims[axis + 1 :])
    groups = [[i + (i > axis)] if i != axis else [i, i + 1] for i in range(len(source.dims))]
    made = Tensor(p.name("r"), dims, source.dtype)
    p.say(
        f"{made.name} = tensor.expand_shape {source.name} {groups} output_shape [{', '.join(map(str, dims))}] : "
        f"{source.type} into {made.type}"
    )
    p.add(made)


def sliced(p: Program) -> None:
    """Every one, second or third of some elements along known axes."""
    source = p.pick(lambda v: any(isinstance(n, int) and n > 1 for n in v.dims))
    if source is None:
        return
    offsets, sizes, strides = [], list[Size](), []
    for size in source.dims:
        step = int(p.rng.integers(1, 4)) if isinstance(size, int) else 1
        first = int(p.rng.integers(0, size)) if isinstance(size, int) and p.chance(0.6) else 0
        most = (size - first - 1) // step + 1 if isinstance(size, int) else 0
        offsets.append(first)
        sizes.append(int(p.rng.integers(1, most + 1)) if isinstance(size, int) else size)
        strides.append(step)
    made = Tensor(p.name("s"), tuple(sizes), source.dtype)
    p.say(
        f"{made.name} = tensor.extract_slice {source.name}{offsets} [{', '.join(map(str, sizes))}] {strides} : "
        f"{source.type} to {made.type}"
    )
    p.add(made)


def padded(p: Program) -> None:
    """`tensor.pad` with a constant."""
    source = p.pick(lambda v: len(v.dims) > 0 and all(isinstance(n, int) for n in v.dims))
    if source is None:
        return
    low, high = ([int(p.any([0, 0, 1, 2])) for _ in source.dims] for _ in range(2))
    dims = tuple(int(n) + a + b for n, a, b in zip(source.dims, low, high, strict=True))
    if prod(dims) > MOST_ELEMENTS:
        return
    value, made = p.constant(int(p.rng.integers(-2, 3)), source.dtype), Tensor(p.name("p"), dims, source.dtype)
    p.say(f"{made.name} = tensor.pad {source.name} low{low} high{high} {{")
    indices = ", ".join(p.name("i") + ": index" for _ in dims)
    p.say(f"^bb0({indices}):")
    p.say(f"  tensor.yield {value} : {source.dtype}")
    p.say(f"}} : {source.type} to {made.type}")
    p.add(made)


def joined(p: Program) -> None:
    """`tensor.concat` of two or three along a known axis."""
    first = p.pick(lambda v: any(isinstance(n, int) for n in v.dims))
    if first is None:
        return
    axis = p.any([i for i, n in enumerate(first.dims) if isinstance(n, int)])

    def fits(other: Tensor) -> bool:
        return (
            other.dtype == first.dtype
            and len(other.dims) == len(first.dims)
            and all(i == axis or n == other.dims[i] for i, n in enumerate(first.dims))
            and isinstance(other.dims[axis], int)
        )

    parts = [first, *(p.pick(fits) or first for _ in range(int(p.rng.integers(1, 3))))]
    total = sum(int(part.dims[axis]) for part in parts)
    dims = tuple(total if i == axis else n for i, n in enumerate(first.dims))
    if p.elements(dims) > MOST_ELEMENTS:
        return
    made = Tensor(p.name("j"), dims, first.dtype)
    p.say(
        f"{made.name} = tensor.concat dim({axis}) {', '.join(part.name for part in parts)} : "
        f"({', '.join(part.type for part in parts)}) -> {made.type}"
    )
    p.add(made)


def inserted(p: Program) -> None:
    """A slice of a tensor (a fill, another value) is replaced by a value."""
    source = p.pick(lambda v: len(v.dims) > 0 and all(isinstance(n, int) for n in v.dims))
    if source is None:
        return
    strides = [int(p.any([1, 1, 2])) for _ in source.dims]
    low, high = ([int(p.any([0, 0, 1, 2])) for _ in source.dims] for _ in range(2))
    reach = [(int(n) - 1) * step + 1 for n, step in zip(source.dims, strides, strict=True)]
    dims = tuple(n + a + b for n, a, b in zip(reach, low, high, strict=True))
    if prod(dims) > MOST_ELEMENTS:
        return
    other = p.pick(lambda v: v.dims == dims and v.dtype == source.dtype)
    into = other if other is not None and p.chance(0.7) else p.fill(dims, source.dtype, int(p.rng.integers(-2, 3)))
    made = Tensor(p.name("w"), dims, source.dtype)
    p.say(
        f"{made.name} = tensor.insert_slice {source.name} into {into.name}{low} "
        f"[{', '.join(map(str, source.dims))}] {strides} : {source.type} into {made.type}"
    )
    p.add(made)


def moving_slice(p: Program) -> None:
    """A slice whose first place an argument says, or an insertion there."""
    source = p.pick(lambda v: len(v.dims) > 0 and isinstance(v.dims[0], int) and v.dims[0] > 1)
    if source is None:
        return
    rows = int(source.dims[0])
    count = int(p.rng.integers(1, rows))
    at = p.argument([1], "i64")
    p.feeds[at.name[1:]] = p.rng.integers(0, rows - count + 1, 1)
    first, zero = p.name("n"), p.number(0)
    element = p.name("k")
    p.say(f"{element} = tensor.extract {at.name}[{zero}] : {at.type}")
    p.say(f"{first} = arith.index_cast {element} : i64 to index")
    rest = "".join(", 0" for _ in source.dims[1:])
    sizes = ", ".join(map(str, (count, *source.dims[1:])))
    ones = [1] * len(source.dims)
    part = Tensor(p.name("s"), (count, *source.dims[1:]), source.dtype)
    p.say(
        f"{part.name} = tensor.extract_slice {source.name}[{first}{rest}] [{sizes}] {ones} : "
        f"{source.type} to {part.type}"
    )
    p.add(part)
    if p.chance(0.5):
        into = p.pick(lambda v: v.dims == source.dims and v.dtype == source.dtype) or source
        made = Tensor(p.name("w"), source.dims, source.dtype)
        p.say(
            f"{made.name} = tensor.insert_slice {part.name} into {into.name}[{first}{rest}] [{sizes}] {ones} : "
            f"{part.type} into {made.type}"
        )
        p.add(made)
