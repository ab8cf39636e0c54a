"""Sequences of which it is known while reading what they hold: lists of tensors, of which nothing is left in the
program. Any other sequence stays on the host.

    SplitToSequence(x) ──> SequenceAt(.., 1)      =>      a slice of x
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import onnx_ir as ir

from fuseline.frontends.onnx.dtypes import from_onnx, holds
from fuseline.frontends.onnx.emission import reshape
from fuseline.frontends.onnx.host_values import KnownSequence, Value, sequence_of
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.shape import joined, piece
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known
from fuseline.ir.dim import Dim

MOST_ITEMS = 2048
"""Tensors of a sequence that is kept so; each is an op or more."""


@onnx_op("SequenceEmpty", since=11)
def empty(node: OnnxNode) -> KnownSequence:
    """No tensors, of a type."""
    element = ir.DataType(node.integer("dtype", int(ir.DataType.FLOAT)))
    if not holds(element):
        raise NoNativeLowering("host-value", f"a sequence of {element.name.lower()}")
    return _of(node, [], from_onnx(element))


@onnx_op("SequenceConstruct", since=11)
def construct(node: OnnxNode) -> KnownSequence:
    """The inputs."""
    return _of(node, node.present(), node[0].dtype)


@onnx_op("SequenceInsert", since=11, of_sequences=True)
def insert(node: OnnxNode) -> KnownSequence:
    """With a tensor before a place, at the end where none is given."""
    items, added = list(node.sequence(0).items), node[1]
    if any(item.dtype != added.dtype for item in items[:1]):
        raise NoNativeLowering("host-value", f"{added.dtype.name} into a sequence of {items[0].dtype.name}")
    items.insert(_place(node.get(2), len(items), len(items)), added)
    return _of(node, items, added.dtype)


@onnx_op("SequenceErase", since=11, of_sequences=True)
def erase(node: OnnxNode) -> KnownSequence:
    """Without the tensor at a place, the last one where none is given."""
    items = list(node.sequence(0).items)
    gone = items.pop(_place(node.get(1), len(items), len(items) - 1))
    return _of(node, items, gone.dtype)


@onnx_op("SequenceAt", since=11, of_sequences=True)
def at(node: OnnxNode) -> Tensor:
    """The tensor at a place."""
    items = node.sequence(0).items
    return items[_place(node[1], len(items), len(items) - 1)]


@onnx_op("SequenceLength", since=11, of_sequences=True)
def length(node: OnnxNode) -> Tensor:
    """How many tensors there are."""
    return known(np.asarray(len(node.sequence(0).items), np.int64))


@onnx_op("SplitToSequence", since=11)
def split(node: OnnxNode) -> KnownSequence:
    """Pieces along an axis: of the sizes given, of one size but for the last, or of size 1."""
    x, given = node[0], node.get(1)
    axis = node.axis("axis", 0, x.rank)
    pieces, offset = list[Tensor](), 0
    for size in _sizes(node, x.dims[axis], given):
        pieces.append(piece(node, x, axis, offset, size))
        offset += size
    if given is None and not node.integer("keepdims", 1):
        dims = [size for i, size in enumerate(x.dims) if i != axis]
        pieces = [reshape(node, one, dims) for one in pieces]
    return _of(node, pieces, x.dtype)


def _sizes(node: OnnxNode, total: Dim, given: Tensor | None) -> list[int]:
    """Of the pieces. Raises NoNativeLowering where they are computed, and where they do not fit: the host says so."""
    numbers = None if given is None else given.numbers()
    if numbers is not None and numbers.ndim:
        sizes = [int(size) for size in numbers]
        if min(sizes, default=0) < 0 or (isinstance(total, int) and sum(sizes) != total):
            raise NoNativeLowering("host-value", f"pieces of {sizes} of {total}")
        node.program.require_equal(sum(sizes), total, node.label)
        return sizes
    each = 1 if numbers is None else int(numbers)
    if not isinstance(total, int) or each < 1 or -(-total // each) > MOST_ITEMS:
        raise NoNativeLowering("symbolic-size", f"{total} in pieces of {each}")
    return [min(each, total - first) for first in range(0, total, each)]


@onnx_op("ConcatFromSequence", since=11, of_sequences=True)
def concat(node: OnnxNode) -> Tensor:
    """The tensors one after the other along an axis, a new one with `new_axis`."""
    items = node.sequence(0).items
    if not items:
        raise NoNativeLowering("host-value", "a sequence of no tensors")
    new = bool(node.integer("new_axis"))
    axis = normal_axis(node.integer("axis"), items[0].rank + new)
    parts = [reshape(node, item, (*item.dims[:axis], 1, *item.dims[axis:])) for item in items] if new else items
    return joined(node, parts, axis)


@onnx_op("SequenceMap", since=17, of_sequences=True)
def map_(node: OnnxNode) -> Sequence[Value]:
    """What a body makes of the tensors at each place of the first sequence, and of all that is given beside it."""
    body, count = node.attributes["body"].as_graph(), len(node.sequence(0).items)
    made: list[list[Tensor]] = [[] for _ in body.outputs]
    for number in range(count):
        bound = dict(zip([str(value.name) for value in body.inputs], _at_place(node, number), strict=True))
        values = replace(node, scope={**node.scope, **bound}).inline(body)
        for column, value in zip(made, values, strict=True):
            if not isinstance(value, Tensor):
                raise NoNativeLowering("host-value", "the body makes no tensors")
            column.append(value)
    if not count:
        raise NoNativeLowering("host-value", "a sequence of no tensors")
    return [_of(node, column, column[0].dtype) for column in made]


def _at_place(node: OnnxNode, number: int) -> list[Value]:
    """What the body reads for place `number`: of each sequence the tensor there, tensors as they are."""
    found: list[Value] = []
    for index, value in enumerate(node.values):
        if index in node.sequences:
            items = node.sequences[index].items
            if number >= len(items):
                raise NoNativeLowering("host-value", "sequences of different lengths")
            found.append(items[number])
        elif value is not None:
            found.append(value)
    return found


def _place(place: Tensor | None, count: int, last: int) -> int:
    """A known place, the `last` that there is where none is given, counted from the front. Raises NoNativeLowering
    where it is computed, or outside: the run says so."""
    number = last if place is None else int(place.numbers().reshape(-1)[0])
    if not -count <= number <= last:
        raise NoNativeLowering("host-value", f"place {number} of {count}")
    return number + count if number < 0 else number


def _of(node: OnnxNode, items: Sequence[Tensor], dtype: np.dtype[np.generic]) -> KnownSequence:
    if len(items) > MOST_ITEMS:
        raise NoNativeLowering("long-loop", f"{len(items)} tensors")
    return sequence_of(items, dtype, node.label)
