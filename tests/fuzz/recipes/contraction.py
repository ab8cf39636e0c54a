"""Sums of products: matrices of any rank, with fixed or free sizes, and whole attention."""

from __future__ import annotations

import numpy as np

from tests.fuzz.graph import Graph
from tests.fuzz.recipe import recipe
from tests.fuzz.tensors import F16, F32, F64, FLOATS, I32, I64, U32, U64, Value

PRODUCTS = (*FLOATS, F32, F32, I32, I64, U32, U64)
WIDTHS = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 24, 33)


@recipe("MatMul", weight=3)
def matmul(g: Graph, op: str) -> None:
    """With a weight, with another value, with its own transpose; vectors too."""
    x = g.pick(PRODUCTS, lambda v: v.rank > 0)
    form = g.choose(["weight", "weight", "value", "transpose"])
    if form == "weight" and x.fixed(-1):
        batch = tuple(x.shape[:-2]) if x.static and g.chance(0.2) else ()
        columns = () if g.chance(0.1) and not batch else (g.choose(WIDTHS),)
        g.add(op, x, _weight(g, x, (*batch, x.shape[-1], *columns)))
    elif form == "value":
        y = g.pick([x.dtype], lambda v: _multiplies(x, v), fresh=0)
        g.add(op, x, y)
    elif x.rank >= 2:
        order = [*range(x.rank - 2), x.rank - 1, x.rank - 2]
        y = g.add("Transpose", x, perm=order)
        g.add(op, *([x, y] if g.chance(0.5) else [y, x]))


def _weight(g: Graph, x: Value, shape: tuple[int, ...]) -> Value:
    array = g.contents(x.dtype, shape)
    return g.constant((array * np.asarray(0.4, x.dtype)).astype(x.dtype) if x.dtype in FLOATS else array)


def _multiplies(x: Value, y: Value) -> bool:
    return y.rank > 0 and all(a[-1] == b[-2 if len(b) > 1 else 0] for a, b in zip(x.shapes, y.shapes, strict=True))


@recipe("Gemm", weight=1.5)
def gemm(g: Graph, op: str) -> None:
    """Both transpositions, scales, and an addend that broadcasts."""
    x = g.pick((F32, F32, F64, F16, I32, I64), lambda v: v.rank == 2)
    across = g.number(0, 1)
    if not x.fixed(1 - across):
        across = 1 - across
    depth, width = x.shape[0 if across else 1], g.choose(WIDTHS)
    turned = g.number(0, 1)
    y = _weight(g, x, (width, depth) if turned else (depth, width))
    shape = g.choose([(width,), (1, width), (1,), (), (1, 1)])
    addend = [g.constant(g.contents(x.dtype, shape))] if g.opset < 11 or g.chance(0.7) else []
    scales = {"alpha": 0.5, "beta": float(g.choose([1.0, 2.0, 0.25]))} if x.dtype in FLOATS and g.chance(0.4) else {}
    g.add(op, x, y, *addend, transA=across, transB=turned, **scales)


EQUATIONS = (
    "ij,jk->ik bij,bjk->bik ij->ji ii->i ij-> bij,bkj->bik i,j->ij ...ij,...jk->...ik bhid,bhjd->bhij ij,ij->i ijk->ikj"
).split()


@recipe("Einsum", since=12, weight=0.6)
def einsum(g: Graph, op: str) -> None:
    """Common equations over weights and values."""
    equation = g.choose(EQUATIONS)
    terms = equation.split("->")[0].split(",")
    x = g.pick((F32, F32, F64, I32, I64), lambda v: _fits(terms[0], v))
    sizes = {letter: x.shape[i] for i, letter in enumerate(terms[0].replace("...", "")) if x.fixed(i)}
    others = [
        g.constant(g.contents(x.dtype, tuple(sizes.get(letter, g.number(1, 5)) for letter in term.replace("...", ""))))
        for term in terms[1:]
    ]
    g.add(op, x, *others, equation=equation)


def _fits(term: str, value: Value) -> bool:
    letters = term.replace("...", "")
    if len(letters) != value.rank:
        return False
    return all(
        len({shape[i] for i, other in enumerate(letters) if other == letter}) == 1
        for letter in letters
        for shape in value.shapes
    )


@recipe("MatMul", weight=0.8)
def attention(g: Graph, op: str) -> None:
    """softmax(q k') v, with scale and mask at times."""
    q = g.pick((F32, F32, F64, F16), lambda v: v.rank >= 2 and v.fixed(-1))
    order = [*range(q.rank - 2), q.rank - 1, q.rank - 2]
    k = g.like(q)
    scores = g.add(op, q, g.add("Transpose", k, perm=order))
    if g.chance(0.6):
        scores = g.add("Mul", scores, g.constant(np.asarray(0.35, q.dtype)))
    if g.chance(0.3):
        scores = g.add("Add", scores, g.broadcastable(scores))
    g.add(op, g.add("Softmax", scores, axis=-1 if g.opset >= 11 else q.rank - 1), g.like(q))


@recipe("Det", since=11, weight=0.1)
def determinant(g: Graph, op: str) -> None:
    """Of square matrices."""
    g.add(op, g.pick((F32, F64), lambda v: v.rank >= 2 and all(s[-1] == s[-2] for s in v.shapes)))
