"""Weights that a file holds as the model does: which constants are made from them, and making them when it is loaded.

    sections of the file:     w                              the bytes of a weight, row-major
    constants of the program: w as it is,  panels of w       a constant for each form that is read, from one section

Several are made at a time: NumPy moves and multiplies without Python's lock.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod
from typing import Any

from fuseline.runtime import strict
from fuseline.runtime.abi import ALIGNMENT
from fuseline.runtime.dtypes import dtype_named
from fuseline.runtime.memory import Bytes, reserve
from fuseline.weight_layouts import LayoutKey, PackedLayout, WeightSource, fill, fits, packed_bytes

Made = tuple[Bytes, WeightSource]
"""Bytes to fill, and from what."""


def source_to_json(source: WeightSource | None) -> Any:
    """The JSON of a header."""
    if source is None:
        return None
    return [source.dtype.name, source.shape, source.axes, source.key.dims, _layout_to_json(source.key.layout)]


def _layout_to_json(layout: PackedLayout | None) -> Any:
    if layout is None:
        return None
    return [layout.pad_to, layout.reshape, layout.permutation, layout.matrices, _layout_to_json(layout.then)]


def lay_out(sections: Sequence[Bytes], wanted: Sequence[Any]) -> tuple[list[Bytes], dict[int, WeightSource]]:
    """The constants of a program, and what those are made from that a section does not hold as they are.

    `wanted` is parsed JSON, for each constant the number of its section and `source_to_json`. Raises ValueError,
    TypeError or IndexError for what is none or does not fit its section, FuselineError (E0405) without memory.
    """
    read = [(sections[strict.within(number, 0, len(sections) - 1)], source) for number, source in wanted]
    sources = {i: _source(data, source) for i, (data, source) in enumerate(read) if source is not None}
    counts = {i: packed_bytes(source.array, source.key) for i, source in sources.items()}
    memory, at = reserve(sum(map(_aligned, counts.values()))), 0
    constants = [data for data, _ in read]
    for i, count in counts.items():
        constants[i] = memory[at : at + count]
        at += _aligned(count)
    _fill_all([(constants[i], source) for i, source in sources.items()])
    return constants, sources


def _aligned(count: int) -> int:
    return -(-count // ALIGNMENT) * ALIGNMENT


def _source(data: Bytes, read: Any) -> WeightSource:
    """What `source_to_json` said of the section `data`."""
    dtype, shape, axes, dims, layout = read
    key = LayoutKey(_numbers(dims), _layout(layout))
    source = WeightSource(data, dtype_named(strict.text(dtype)), _numbers(shape), _numbers(axes), key)
    if prod(source.shape) * source.dtype.itemsize != len(data):
        raise ValueError(f"a weight of {len(data)} bytes is no {source.dtype} of {source.shape}")
    if sorted(source.axes) != list(range(len(source.shape))) or not fits(source.array, key):
        raise ValueError(f"the layout of a weight of shape {source.shape} does not fit it")
    return source


def _layout(read: Any) -> PackedLayout:
    pad_to, reshape, permutation, matrices, then = read
    made = tuple(None if matrix is None else _matrix(matrix) for matrix in matrices)
    following = None if then is None else _layout(then)
    return PackedLayout(_numbers(pad_to), _numbers(reshape), _numbers(permutation), made, following)


def _matrix(read: Any) -> tuple[tuple[float, ...], ...]:
    rows = tuple(tuple(_real(number) for number in row) for row in read)
    if not rows or len({len(row) for row in rows}) != 1:
        raise ValueError("a matrix has rows of several lengths")
    return rows


def _real(read: Any) -> float:
    if type(read) not in (float, int):
        raise ValueError("a matrix has what is no number")
    return float(read)


def _numbers(read: Any) -> tuple[int, ...]:
    return tuple(strict.within(number, 0, strict.LARGEST) for number in read)


def _fill_all(made: Sequence[Made]) -> None:
    """Make constants, the largest first, as many at a time as there are processors."""
    from concurrent.futures import ThreadPoolExecutor

    ordered = sorted(made, key=lambda one: -len(one[0]))
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        list(pool.map(_fill, ordered))


def _fill(made: Made) -> None:
    target, source = made
    fill(source.array, source.key, target)
