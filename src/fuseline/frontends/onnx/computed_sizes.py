"""Sizes that a program computes: a host step reads the numbers of a small tensor, and each is a size of a name of its
own from there on (`runtime/index_values.py`).

    Expand(x, Concat(k, Shape(x)[1]))        %k0 = call @host.Index(%k)        out: [k0, n]

What is known of a tensor that is put together of others stays known: only those parts are read that are computed.
Negative numbers are refused (E0203) by the step, which names the node, so whoever takes negative ones computes what he
needs of them first (`count_between`): the pass `compute-sizes-on-host` makes that part of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from math import prod

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.frontends.onnx.dtypes import INDEX_DTYPE, mlir_element
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim
from fuseline.scalar_code import MOST_ELEMENTS


def sizes_of(node: OnnxNode, t: Tensor, most: Dim | None = None) -> list[Dim]:
    """The flat content of `t` as sizes, computed ones no more than `most`. Raises NoNativeLowering where they cannot be
    read: they are no integers, too many, or inside a loop."""
    return sizes_of_all(node, [(t, most)])[0]


def sizes_of_all(node: OnnxNode, tensors: Sequence[tuple[Tensor, Dim | None]]) -> list[list[Dim]]:
    """The same of several tensors, which one step reads."""
    parts = [[(part, most) for part in parts_of(t)] for t, most in tensors]
    computed = [(part, most) for line in parts for part, most in line if part.array is None]
    found = iter(node.importer.host.read_sizes(node.program, node.label, computed) if computed else [])

    def content(part: Tensor) -> list[Dim]:
        return list(islice(found, len(_all(part)))) if part.array is None else part.sizes()

    return [[size for part, _ in line for size in content(part)] for line in parts]


def parts_of(t: Tensor) -> list[Tensor]:
    """Tensors that `t` is the elements of, in order: each is known, or computed as a whole. Raises NoNativeLowering
    like `sizes_of`."""
    if t.array is not None:
        return [t]
    if t.dtype.kind not in "iu" or not all(isinstance(size, int) for size in t.dims) or len(_all(t)) > MOST_ELEMENTS:
        raise NoNativeLowering("runtime-value", f"{t.name or 'an input'} is computed at run time")
    if t.parts:
        return [part for inner in t.parts for part in parts_of(inner)]
    same = t.reshaped if t.reshaped is not None else t.base
    return parts_of(same) if same is not None and _has_as_many(same, t) else [t]


def _has_as_many(other: Tensor, t: Tensor) -> bool:
    """Whether a line or a single number has as many elements as `t`, which follows it in order."""
    static = all(isinstance(size, int) for size in other.dims)
    return static and other.rank <= 1 and t.rank <= 1 and len(_all(other)) == len(_all(t))


def _all(t: Tensor) -> range:
    return range(prod(size for size in t.dims if isinstance(size, int)))


def count_between(b: Body, first: SSAValue, last: SSAValue, step: int) -> SSAValue:
    """How many numbers lie from `first` to before `last`, `step` apart (backwards if negative), of 64 bits."""
    span = b.op(arith.SubiOp, last, first) if step > 0 else b.op(arith.SubiOp, first, last)
    there = b.op(arith.MaxSIOp, span, constant(b, 0))
    if abs(step) == 1:
        return there
    return b.op(arith.DivSIOp, b.op(arith.AddiOp, there, constant(b, abs(step) - 1)), constant(b, abs(step)))


def constant(b: Body, number: int) -> SSAValue:
    """A number of 64 bits."""
    return b.constant(number, mlir_element(INDEX_DTYPE))


def is_computed(tensors: Sequence[Tensor | None]) -> bool:
    """Whether one of them is made by the run."""
    return any(t is not None and t.array is None for t in tensors)
