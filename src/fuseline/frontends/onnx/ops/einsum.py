"""Einstein sums of one or two operands."""

from __future__ import annotations

import string

from fuseline.frontends.onnx import scalars
from fuseline.frontends.onnx.broadcasting import broadcast_dim
from fuseline.frontends.onnx.emission import contract, reduce
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, view
from fuseline.ir.dim import Dim


@onnx_op("Einsum")
def einsum(node: OnnxNode) -> Tensor:
    """One or two operands, each letter at most once per operand."""
    terms, output = _parse(node.text("equation"), node.present())
    sizes: dict[str, Dim] = {}
    for term, t in zip(terms, node.present(), strict=True):
        for letter, size in zip(term, t.dims, strict=True):
            sizes[letter] = broadcast_dim(sizes.get(letter, 1), size)
    order = list(output) + sorted(set("".join(terms)) - set(output))
    loops = [sizes[letter] for letter in order]
    places = [
        [order.index(letter) if sizes[letter] == t.dims[i] else None for i, letter in enumerate(term)]
        for term, t in zip(terms, node.present(), strict=True)
    ]
    if len(terms) == 2:
        lhs, rhs = node[0], node[1]
        return contract(node, (lhs, places[0]), (rhs, places[1]), loops, list(range(len(output))), lhs.dtype)
    return _single(node, places[0], loops, len(output))


def _single(node: OnnxNode, loops_of_axes: list[int | None], loops: list[Dim], kept: int) -> Tensor:
    x = view(node[0], loops, loops_of_axes)
    if kept == len(loops):
        return x
    return reduce(node, [x], list(range(kept, len(loops))), 0, lambda b, p, acc: scalars.add(b, x.dtype, acc, p), dtype=x.dtype)


def _parse(equation: str, operands: list[Tensor]) -> tuple[list[str], str]:
    equation = equation.replace(" ", "")
    left, _, right = equation.partition("->")
    terms = left.split(",")
    if len(terms) > 2 or len(terms) != len(operands):
        raise NoNativeLowering("einsum-form", equation)
    spare = [c for c in string.ascii_letters if c not in equation]
    longest = max(t.rank - len(term.replace("...", "")) for term, t in zip(terms, operands, strict=True)) if "..." in left else 0
    terms = [_without_ellipsis(term, t.rank, spare[:longest]) for term, t in zip(terms, operands, strict=True)]
    if "->" not in equation:
        letters = "".join(terms)
        right = ("..." if "..." in left else "") + "".join(sorted(c for c in set(letters) if letters.count(c) == 1 and c not in spare[:longest]))
    right = right.replace("...", "".join(spare[:longest]))
    if any(len(set(term)) != len(term) for term in (*terms, right)) or any(len(term) != t.rank for term, t in zip(terms, operands, strict=True)):
        raise NoNativeLowering("einsum-form", equation)
    return terms, right


def _without_ellipsis(term: str, rank: int, spare: list[str]) -> str:
    count = rank - len(term.replace("...", ""))
    return term.replace("...", "".join(spare[len(spare) - count :]))
