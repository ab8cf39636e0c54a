"""Operators that move elements and do not compute with them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.conformance.node_calls.draw import Call, Draw, calls


@calls("Transpose")
def transpose(d: Draw) -> Call:
    sizes = d.sizes(0)
    return Call([d.values(sizes)], d.some(perm=[int(i) for i in d.rng.permutation(len(sizes))]) if sizes else {})


@calls("Reshape")
def reshape(d: Draw) -> Call:
    sizes = d.sizes(1)
    target = [int(s) for s in d.rng.permutation(sizes)]
    if d.chance():
        target[d.whole(0, len(target) - 1)] = -1
    elif d.chance():
        target, at = list(sizes), d.whole(0, len(sizes) - 1)
        target[at] = 0
    return Call([d.values(sizes), np.array(target)])


@calls("Flatten")
def flatten(d: Draw) -> Call:
    sizes = d.sizes()
    return Call([d.values(sizes)], d.some(axis=d.whole(0, len(sizes)) if d.before(11) else d.axis(len(sizes))))


@calls("Squeeze", "Unsqueeze")
def squeeze(d: Draw) -> Call:
    sizes, out = list(d.sizes(0, 3)), []
    axes = d.axes(len(sizes) + 2, 1)[:2]
    whole = list(sizes)
    for axis in sorted(a % (len(sizes) + len(axes)) for a in axes):
        whole.insert(axis, 1)
    if len(whole) != len(sizes) + len(axes) or len({a % len(whole) for a in axes}) < len(axes):
        whole, axes = [1, *sizes], [0]
    axes = [a % len(whole) - (len(whole) if a < 0 and not d.before(11) else 0) for a in axes]
    out = whole if d.schema.name == "Squeeze" else sizes
    x = d.values(out)
    if d.schema.name == "Squeeze" and d.chance(0.2):
        return Call([x])
    return Call([x], {"axes": axes}) if d.before(13) else Call([x, np.array(axes)])


@calls("Concat")
def concat(d: Draw) -> Call:
    sizes = d.sizes()
    axis = d.whole(0, len(sizes) - 1)
    parts = [d.values([*sizes[:axis], d.whole(1, 4), *sizes[axis + 1 :]]) for _ in range(d.whole(1, 4))]
    return Call(parts, {"axis": axis - (len(sizes) if d.chance() and not d.before(11) else 0)})


@calls("Split")
def split(d: Draw) -> Call:
    sizes, parts = list(d.sizes()), [d.whole(1, 3) for _ in range(d.whole(1, 3))]
    axis = d.whole(0, len(sizes) - 1)
    sizes[axis] = sum(parts)
    x, given = d.values(sizes), {"axis": axis - (len(sizes) if d.chance() and not d.before(11) else 0)}
    if not d.before(18) and d.chance():
        count = d.whole(1, sizes[axis])
        whole = -(-sizes[axis] // count)
        return Call([x], {**given, "num_outputs": -(-sizes[axis] // whole)}, -(-sizes[axis] // whole))
    if d.before(13):
        return Call([x], {**given, "split": parts}, len(parts))
    return Call([x, np.array(parts)], given, len(parts))


@calls("Slice")
def slice_(d: Draw) -> Call:
    sizes = d.sizes()
    axes = d.axes(len(sizes)) if not d.before(10) else [a % len(sizes) for a in d.axes(len(sizes))]
    starts, ends = ([d.one_of(d.whole(-7, 7), d.whole(-2, 4), -(2**31), 2**31 - 1) for _ in axes] for _ in range(2))
    if d.before(10):
        return Call([d.values(sizes)], {"starts": starts, "ends": ends, "axes": axes})
    kind = d.dtype(1)
    steps = [d.one_of(1, 2, -1, -3) if d.chance() else 1 for _ in axes]
    ends = [
        -(2**31) if step < 0 and end == 2**31 - 1 else end for end, step in zip(ends, steps, strict=True)
    ]  # "to the end" means one way only
    given = [np.array(steps, kind)] if max(steps) > 1 or min(steps) < 0 or d.chance() else []
    return Call([d.values(sizes), np.array(starts, kind), np.array(ends, kind), np.array(axes, kind), *given])


@calls("Pad")
def pad(d: Draw) -> Call:
    sizes = d.sizes(1, 4)
    mode = d.one_of("constant", "reflect", "edge", *([] if d.before(19) else ["wrap"]))
    most = [size - 1 if mode == "reflect" else size for size in sizes]
    axes = d.axes(len(sizes)) if not d.before(18) and d.chance() else list(range(len(sizes)))
    pads = [d.whole(-1 if mode == "constant" and sizes[a] > 2 else 0, most[a]) for a in [*axes, *axes]]
    x = d.values(sizes)
    if d.before(11):
        return Call([x], {"pads": pads, "mode": mode, **d.some(value=d.number())})
    value = d.values(()) if mode == "constant" and d.chance() else None
    return Call(
        [
            x,
            np.array(pads),
            value,
            np.array(axes) if len(axes) < len(sizes) or (not d.before(18) and d.chance()) else None,
        ],
        {"mode": mode},
    )


@calls("Tile")
def tile(d: Draw) -> Call:
    sizes = d.sizes()
    return Call([d.values(sizes), np.array([d.whole(1, 3) for _ in sizes])])


@calls("Expand")
def expand(d: Draw) -> Call:
    whole = d.sizes(0)
    return Call([d.values(d.part_of(whole)), np.array(whole if d.chance() else d.part_of(whole), np.int64)])


@calls("Gather")
def gather(d: Draw) -> Call:
    sizes = d.sizes()
    axis = d.axis(len(sizes))
    low = 0 if d.before(11) else -sizes[axis]
    return Call(
        [d.values(sizes), d.rng.integers(low, sizes[axis], d.sizes(0, 2)).astype(d.dtype(1))],
        d.some(axis=axis) if axis in (0, -len(sizes)) else {"axis": axis},
    )


@calls("GatherElements")
def gather_elements(d: Draw) -> Call:
    long = d.chance(0.2)
    sizes = d.sizes(1, 4, 5) if not long else (100, *d.sizes(0, 1))
    axis = d.axis(len(sizes)) if not long else 0
    smaller = [size if i == axis % len(sizes) or d.chance() else d.whole(1, size) for i, size in enumerate(sizes)]
    smaller[axis] = d.whole(1, 6)
    return Call(
        [d.values(sizes), d.rng.integers(-sizes[axis], sizes[axis], smaller).astype(d.dtype(1))], {"axis": axis}
    )


@calls("GatherND", "ScatterND")
def gather_nd(d: Draw) -> Call:
    sizes = d.sizes(1, 4)
    batch = d.whole(0, len(sizes) - 1) if d.schema.name == "GatherND" and not d.before(12) else 0
    depth = d.whole(1, len(sizes) - batch)
    lead = (*sizes[:batch], *d.sizes(1, 2, 3))
    places = np.stack([d.rng.integers(-size, size, lead) for size in sizes[batch : batch + depth]], -1)
    if d.schema.name == "GatherND":
        return Call([d.values(sizes), places.astype(np.int64)], {"batch_dims": batch} if batch else {})
    kinds = [] if d.before(16) else ["add", "mul", *([] if d.before(18) else ["max", "min"])]
    return _scatter_nd(d, sizes, depth, lead, kinds)


def _scatter_nd(d: Draw, sizes: tuple[int, ...], depth: int, lead: tuple[int, ...], kinds: list[str]) -> Call:
    kind = d.one_of(None, *kinds)
    count, space = int(np.prod(lead)), int(np.prod(sizes[:depth]))
    if kind is None and count > space:
        lead, count = (1,), 1
    flat = d.rng.permutation(space)[:count] if kind is None else d.rng.integers(0, space, count)
    places = np.stack(np.unravel_index(flat, sizes[:depth]), -1).reshape(*lead, depth)
    return Call(
        [d.values(sizes), places.astype(np.int64), d.values((*lead, *sizes[depth:]))],
        {} if kind is None else {"reduction": kind},
    )


@calls("ScatterElements", "Scatter")
def scatter_elements(d: Draw) -> Call:
    sizes = d.sizes()
    axis = d.axis(len(sizes))
    kind: Any = d.one_of(None, *([] if d.before(16) else ["add", "mul", *([] if d.before(18) else ["max", "min"])]))
    smaller = [size if d.chance() else d.whole(1, size) for size in sizes]
    places = np.apply_along_axis(
        lambda _: d.rng.permutation(sizes[axis])[: smaller[axis]], axis, np.zeros(smaller, np.int64)
    )
    places = np.where(d.values(smaller, bool), places, places - sizes[axis])
    return Call(
        [d.values(sizes), places.astype(d.dtype(1)), d.values(smaller)],
        {"axis": axis, **({} if kind is None else {"reduction": kind})},
    )


@calls("DepthToSpace")
def depth_to_space(d: Draw) -> Call:
    block = d.whole(1, 3)
    given = {} if d.before(11) else d.some(mode=d.one_of("DCR", "CRD"))
    return Call(
        [d.values((d.whole(1, 2), d.whole(1, 2) * block * block, *d.sizes(2, 2)))], {"blocksize": block, **given}
    )


@calls("SpaceToDepth")
def space_to_depth(d: Draw) -> Call:
    block = d.whole(1, 3)
    return Call(
        [d.values((d.whole(1, 2), d.whole(1, 3), d.whole(1, 3) * block, d.whole(1, 3) * block))], {"blocksize": block}
    )


@calls("Trilu")
def trilu(d: Draw) -> Call:
    return Call([d.values(d.sizes(2)), np.array(d.whole(-5, 5)) if d.chance() else None], d.some(upper=d.whole(0, 1)))


@calls("ReverseSequence")
def reverse_sequence(d: Draw) -> Call:
    sizes = d.sizes(2)
    time = d.whole(0, 1)
    lengths = d.rng.integers(1, sizes[time] + 1, sizes[1 - time])
    return Call([d.values(sizes), lengths.astype(np.int64)], {"time_axis": time, "batch_axis": 1 - time})


@calls("Compress")
def compress(d: Draw) -> Call:
    sizes = d.sizes()
    axis = d.one_of(None, d.axis(len(sizes)))
    length = int(np.prod(sizes)) if axis is None else sizes[axis]
    return Call([d.values(sizes), d.values((d.whole(1, length),), bool)], {} if axis is None else {"axis": axis})


@calls("OneHot")
def one_hot(d: Draw) -> Call:
    depth, sizes = d.whole(1, 6), d.sizes(0, 3)
    low = -depth if d.dtype().kind != "u" else 0
    return Call(
        [
            d.rng.integers(low, depth, sizes).astype(d.dtype()),
            np.asarray([depth] if d.chance() else depth, d.dtype(1)),
            d.values((2,), place=2),
        ],
        d.some(axis=d.whole(-len(sizes) - 1, len(sizes))),
    )


@calls("EyeLike")
def eye_like(d: Draw) -> Call:
    return Call([d.values(d.sizes(2, 2))], d.some(k=d.whole(-4, 4), dtype=d.one_of(1, 6, 7, 11)))


@calls("Shape", "Size")
def shape(d: Draw) -> Call:
    given = d.some(start=d.whole(-5, 5), end=d.whole(-5, 5)) if d.schema.name == "Shape" and not d.before(15) else {}
    return Call([d.values(d.sizes(0))], given)


@calls("Range")
def range_(d: Draw) -> Call:
    start, step = d.values(()), d.positive(())
    limit = np.asarray(start + step * np.asarray(d.whole(0, 6), step.dtype), step.dtype)
    if d.dtype().kind != "u" and d.chance():
        limit, start = start, limit
        step = -step
    return Call([np.asarray(start), np.asarray(limit), np.asarray(step, d.dtype())])


@calls("ConstantOfShape")
def constant_of_shape(d: Draw) -> Call:
    from onnx import numpy_helper

    value = d.values((1,), np.dtype(d.one_of("float32", "int64", "int8", "bool", "float64", "uint8", "float16")))
    return Call([np.array(d.sizes(0), np.int64)], d.some(value=numpy_helper.from_array(value)))


@calls("CenterCropPad")
def center_crop_pad(d: Draw) -> Call:
    sizes = d.sizes()
    axes = d.axes(len(sizes)) if d.chance() else None
    target = [d.whole(1, 7) for _ in (sizes if axes is None else axes)]
    return Call([d.values(sizes), np.array(target, d.dtype(1))], {} if axes is None else {"axes": axes})


@calls("TensorScatter")
def tensor_scatter(d: Draw) -> Call:
    batch, heads, longest, width = d.whole(1, 3), d.whole(1, 2), d.whole(3, 6), d.whole(1, 4)
    new = d.whole(1, 3)
    places = d.rng.integers(0, longest - new + 1, batch)
    return Call(
        [d.values((batch, heads, longest, width)), d.values((batch, heads, new, width)), places.astype(np.int64)],
        d.some(mode=d.one_of("linear", "circular")),
    )
