"""Sizes as values, and tensors made from sizes."""

from __future__ import annotations

import numpy as np
from onnx import helper

from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import BOOL, F32, F64, I16, I32, I64, NUMBERS, Value, onnx_type

ANY = (*NUMBERS, BOOL)


@recipe("Shape", weight=0.8)
def shape(g: Graph, op: str) -> None:
    """Whole, or a part from opset 15 on."""
    x = g.pick(ANY)
    part = (
        {"start": g.number(-x.rank, x.rank), "end": g.number(-x.rank, x.rank)}
        if g.opset >= 15 and g.chance(0.4)
        else {}
    )
    g.add(op, x, **part)


@recipe("Size", weight=0.3)
def size(g: Graph, op: str) -> None:
    """The number of elements."""
    g.add(op, g.pick(ANY))


@recipe("ConstantOfShape", since=9, weight=0.6)
def constant_of_shape(g: Graph, op: str) -> None:
    """Of a known shape or that of another value."""
    sizes = (
        g.ints(*[g.number(0 if g.chance(0.1) else 1, 5) for _ in range(g.number(0, 3))])
        if g.chance(0.5)
        else g.add("Shape", g.pick(ANY))
    )
    dtype = g.choose([F32, F64, I32, I64, BOOL, None])
    g.add(
        op, sizes, **({"value": helper.make_tensor("value", onnx_type(dtype), [1], [g.number(0, 3)])} if dtype else {})
    )


@recipe("Range", since=11, weight=0.6)
def range_(g: Graph, op: str) -> None:
    """Up or down; to a size at times."""
    if g.chance(0.4):
        dim = _one_size(g)
        g.add(op, g.constant(np.asarray(0, I64)), dim, g.constant(np.asarray(g.number(1, 3), I64)))
        return
    dtype = g.choose([F32, F64, I16, I32, I64])
    start, step = g.number(-4, 4), g.choose([1, 2, -1, 3])
    stop = start + step * g.number(0, 9)
    g.add(op, *(g.constant(np.asarray(value, dtype)) for value in (start, stop, step)))


def _one_size(g: Graph) -> Value:
    x = g.pick(ANY, lambda v: v.rank > 0)
    return g.add("Gather", g.add("Shape", x), g.constant(np.asarray(g.number(0, x.rank - 1), I64)), axis=0)


@recipe("EyeLike", since=9, weight=0.4)
def eye(g: Graph, op: str) -> None:
    """Any diagonal."""
    x = g.pick((F32, F64, I32, I64), lambda v: v.rank == 2)
    g.add(op, x, k=g.number(-2, 2), **({"dtype": onnx_type(g.choose([F32, I64, I32]))} if g.chance(0.5) else {}))


@recipe("Dropout", weight=0.3)
def dropout(g: Graph, op: str) -> None:
    """In inference: its input, and a mask at times."""
    g.add_all(
        op,
        g.pick((F32, F64)),
        outputs=g.number(1, 2),
        **({"ratio": 0.5} if g.opset < 12 else {}),
    )


@recipe("Reshape", weight=1)
def computed_shape(g: Graph, op: str) -> None:
    """To a shape that is worked out from sizes: rows kept, or all in one."""
    x = g.pick(ANY, lambda v: v.rank >= 2)
    kept = g.add("Gather", g.add("Shape", x), g.ints(0), axis=0)
    g.add(op, x, g.add("Concat", *([kept, g.ints(-1)] if g.chance(0.7) else [g.ints(-1), kept]), axis=0))


@recipe("Constant", weight=0.4)
def constant(g: Graph, op: str) -> None:
    """A node that holds a tensor."""
    dtype = g.choose([F32, F32, I64, I32, F64])
    array = g.contents(dtype, tuple(g.number(1, 4) for _ in range(g.number(0, 3))))
    g.add(op, value=helper.make_tensor("value", onnx_type(dtype), array.shape, array.reshape(-1).tolist()))
