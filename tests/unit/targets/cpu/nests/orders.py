"""Dispatches that sort rows, as text: ranks by several keys, the positions in their order, and what stands there."""

from __future__ import annotations

from collections.abc import Sequence

from .generics import fill, function, generic, tensor

Shape = tuple[int | str, ...]


def comparison(keys: Sequence[str]) -> str:
    """Whether the element of a key's first argument comes before that of its second; the last line makes `%b0`."""
    last = len(keys) - 1
    lines: list[str] = []
    for n in reversed(range(len(keys))):
        there, here, kind = f"%i{2 * n}", f"%i{2 * n + 1}", keys[n]
        lines.append(f"%lt{n} = arith.cmpi slt, {there}, {here} : {kind}")
        if n == last:
            lines.append(f"%le{n} = arith.cmpi sle, {there}, {here} : {kind}")
            lines.append(f"%b{n} = arith.select %former, %le{n}, %lt{n} : i1")
        else:
            lines.append(f"%eq{n} = arith.cmpi eq, {there}, {here} : {kind}")
            lines.append(f"%and{n} = arith.andi %eq{n}, %b{n + 1} : i1")
            lines.append(f"%b{n} = arith.ori %lt{n}, %and{n} : i1")
    return "\n".join(lines)


def ranks(shape: Shape, axis: int, keys: Sequence[str], limit: int | None) -> str:
    """`%ranks` of the tensors `%k0`, `%k1`, .."""
    loops = len(shape)
    here = ", ".join(f"d{i}" for i in range(loops))
    there = ", ".join(f"d{loops}" if i == axis else f"d{i}" for i in range(loops))
    body = f"""%w = linalg.index {axis} : index
%r = linalg.index {loops} : index
%former = arith.cmpi slt, %r, %w : index
{comparison(keys)}
%one = arith.extui %b0 : i1 to i64
%{"t" if limit is None else "s"} = arith.addi %o0, %one : i64"""
    if limit is not None:
        body += f"\n%most = arith.constant {limit} : i64\n%t = arith.minsi %s, %most : i64"
    read = [(f"%k{n}", tensor(shape, kind)) for n, kind in enumerate(keys) for _ in range(2)]
    maps = [*[there, here] * len(keys), here]
    out = [("%f", tensor(shape, "i64"))]
    op = generic("%ranks", read, out, maps, "p" * loops + "r", body, [("%t", "i64")])
    return fill("f", "0", shape, "i64") + "\n" + op


def positions(shape: Shape, axis: int, room: int | str) -> str:
    """`%at`: which elements have the first `room` ranks."""
    loops = len(shape)
    there = ", ".join(f"d{loops}" if i == axis else f"d{i}" for i in range(loops))
    here = ", ".join(f"d{i}" for i in range(loops))
    told = tuple(room if i == axis else size for i, size in enumerate(shape))
    body = f"""%w = linalg.index {axis} : index
%c = arith.index_cast %i0 : i64 to index
%hit = arith.cmpi eq, %w, %c : index
%r = linalg.index {loops} : index
%rn = arith.index_cast %r : index to i64
%zero = arith.constant 0 : i64
%s = arith.select %hit, %rn, %zero : i64
%t = arith.addi %o0, %s : i64"""
    ranked, out = [("%ranks", tensor(shape, "i64"))], [("%g", tensor(told, "i64"))]
    op = generic("%at", ranked, out, [there, here], "p" * loops + "r", body, [("%t", "i64")])
    return fill("g", "0", told, "i64") + "\n" + op


def order(
    shape: Shape,
    axis: int,
    room: int | str,
    keys: Sequence[str] = ("i32",),
    *,
    limit: int | None = None,
    bound: str = "",
) -> str:
    """The first `room` elements of `%x` in the order of the keys, and where they are."""
    loops, told = len(shape), tuple(room if i == axis else size for i, size in enumerate(shape))
    counters = "\n".join(f"%c{i} = linalg.index {i} : index" for i in range(loops))
    place = ", ".join("%p" if i == axis else f"%c{i}" for i in range(loops))
    body = f"{counters}\n%p = arith.index_cast %i0 : i64 to index\n%e = tensor.extract %x[{place}] : {tensor(shape)}"
    here = ", ".join(f"d{i}" for i in range(loops))
    taken = generic(
        "%y", [("%at", tensor(told, "i64"))], [("%h", tensor(told))], [here, here], "p" * loops, body, [("%e", "f32")]
    )
    named = [*[s for s in shape if isinstance(s, str)], *([room] if isinstance(room, str) else [])]
    names = sorted(set(named))
    arguments = [*((f"k{n}", shape, kind) for n, kind in enumerate(keys)), ("x", shape, "f32")]
    lines = [ranks(shape, axis, keys, limit), positions(shape, axis, room), fill("h", "0.0", told), taken]
    results = [("%y", tensor(told)), ("%at", tensor(told, "i64"))]
    text = function(arguments, names, "\n".join(lines), results)
    return text.replace('fuseline.name = "n"', f'fuseline.name = "n", fuseline.bounds = "{bound}"') if bound else text
