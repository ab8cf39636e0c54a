"""Einstein sums: two operands at a time; a letter twice in one operand is its diagonal."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from itertools import combinations

from xdsl.ir import SSAValue

from fuseline.frontends.onnx import scalars
from fuseline.frontends.onnx.broadcasting import equal_dim
from fuseline.frontends.onnx.emission import contract, reduce
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.ops.spreading import spread
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, view
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim


@onnx_op("Einsum")
def einsum(node: OnnxNode) -> Tensor:
    """Of more than two operands the pair whose product has the fewest axes first, until two are left."""
    terms, output = _parse(node.text("equation"), node.present())
    operands = [_diagonal(node, term, t) for term, t in zip(terms, node.present(), strict=True)]
    terms = ["".join(dict.fromkeys(term)) for term in terms]
    while len(terms) > 2:
        pair = min(combinations(range(len(terms)), 2), key=lambda pair: len(_kept(terms, pair, output)))
        kept = _kept(terms, pair, output)
        product = _sum(node, [terms[i] for i in pair], [operands[i] for i in pair], kept)
        rest = [i for i in range(len(terms)) if i not in pair]
        terms, operands = [kept, *(terms[i] for i in rest)], [product, *(operands[i] for i in rest)]
    return _sum(node, terms, operands, output)


def _kept(terms: Sequence[str], pair: Sequence[int], output: str) -> str:
    """The letters of two terms that another term or the result has."""
    others = "".join(term for i, term in enumerate(terms) if i not in pair) + output
    return "".join(letter for letter in dict.fromkeys("".join(terms[i] for i in pair)) if letter in others)


def _sum(node: OnnxNode, terms: Sequence[str], operands: Sequence[Tensor], output: str) -> Tensor:
    """The sum of one operand, or of the product of two, over the letters that `output` does not have."""
    sizes: dict[str, Dim] = {}
    for term, t in zip(terms, operands, strict=True):
        for letter, size in zip(term, t.dims, strict=True):
            sizes[letter] = node.program.broadcasting.dim(sizes.get(letter, 1), size, node.take_equal)
    order = list(output) + sorted(set("".join(terms)) - set(output))
    loops = [sizes[letter] for letter in order]
    operands = [spread(node, t, [sizes[letter] for letter in term]) for term, t in zip(terms, operands, strict=True)]
    positions = [_loops_of(t, term, sizes, order) for term, t in zip(terms, operands, strict=True)]
    if len(terms) == 2:
        lhs, rhs = operands
        return contract(node, (lhs, positions[0]), (rhs, positions[1]), loops, list(range(len(output))), lhs.dtype)
    return _single(node, operands[0], positions[0], loops, len(output))


def _loops_of(t: Tensor, term: str, sizes: Mapping[str, Dim], order: Sequence[str]) -> list[int | None]:
    """The loop that each axis of `t` follows, None where its size 1 repeats."""
    return [
        None if size == 1 and sizes[letter] != 1 else order.index(letter)
        for letter, size in zip(term, t.dims, strict=True)
    ]


def _diagonal(node: OnnxNode, term: str, t: Tensor) -> Tensor:
    """`t` with an axis for each letter of `term`, in the order in which they come first: where the axes of one letter
    have the same index."""
    letters = list(dict.fromkeys(term))
    if len(letters) == t.rank:
        return t
    sizes = {letter: size for letter, size in zip(term, t.dims, strict=True) if size != 1}
    dims = [sizes.get(letter, 1) for letter in letters]
    for letter, size in zip(term, t.dims, strict=True):
        if size != 1 and equal_dim(size, sizes[letter]) != size:
            raise NoNativeLowering("einsum-form", f"axes of sizes {size} and {sizes[letter]} have one letter")

    def position(b: Body) -> list[SSAValue]:
        loops = [scalars.loop_index(b, letters.index(letter)) for letter in term]
        return [scalars.index_constant(b, 0) if size == 1 else loop for size, loop in zip(t.dims, loops, strict=True)]

    return gather_at(node, t, [], dims, position)


def _single(node: OnnxNode, operand: Tensor, loops_of_axes: list[int | None], loops: list[Dim], kept: int) -> Tensor:
    x = view(operand, loops, loops_of_axes)
    if kept == len(loops):
        return x
    return reduce(
        node, [x], list(range(kept, len(loops))), 0, lambda b, p, acc: scalars.add(b, x.dtype, acc, p), dtype=x.dtype
    )


def _parse(equation: str, operands: list[Tensor]) -> tuple[list[str], str]:
    equation = equation.replace(" ", "")
    left, _, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise NoNativeLowering("einsum-form", equation)
    spare = [c for c in string.ascii_letters if c not in equation]
    longest = (
        max(t.rank - len(term.replace("...", "")) for term, t in zip(terms, operands, strict=True))
        if "..." in left
        else 0
    )
    terms = [_without_ellipsis(term, t.rank, spare[:longest]) for term, t in zip(terms, operands, strict=True)]
    if "->" not in equation:
        letters = "".join(terms)
        right = ("..." if "..." in left else "") + "".join(
            sorted(c for c in set(letters) if letters.count(c) == 1 and c not in spare[:longest])
        )
    right = right.replace("...", "".join(spare[:longest]))
    if len(set(right)) != len(right) or any(len(term) != t.rank for term, t in zip(terms, operands, strict=True)):
        raise NoNativeLowering("einsum-form", equation)
    return terms, right


def _without_ellipsis(term: str, rank: int, spare: list[str]) -> str:
    count = rank - len(term.replace("...", ""))
    return term.replace("...", "".join(spare[len(spare) - count :]))
