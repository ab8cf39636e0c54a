"""The roles of the loops of a contraction: which are batch, rows (M), columns (N) and summed (K).

C[batch, m, n] += A[batch, m, k] * B[batch, n, k]      each of batch, m, n, k may be several loops, in any order in any
                                                       operand
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.structured import Kind, StructuredOp, kind, multiply_add_operands


@dataclass(frozen=True, slots=True)
class ContractionDims:
    """Loops by role; `lhs` and `rhs` are the positions of A and B among the inputs (A carries the `m` loops)."""

    batch: tuple[int, ...]
    m: tuple[int, ...]
    n: tuple[int, ...]
    k: tuple[int, ...]
    lhs: int
    rhs: int


def contraction_dims(view: StructuredOp) -> ContractionDims | None:
    """The roles of the loops of `view`; None where it is no contraction or a loop fits no role (K in one operand
    only)."""
    if kind(view.op) is not Kind.CONTRACTION:
        return None
    sides = multiply_add_operands(view.op)
    assert sides is not None
    lhs, rhs = sides
    a, b, c = used_dims(view.input_maps[lhs]), used_dims(view.input_maps[rhs]), used_dims(view.output_maps[0])
    roles: dict[str, list[int]] = {"batch": [], "m": [], "n": [], "k": []}
    for loop in range(view.rank):
        role = _role(loop in a, loop in b, loop in c)
        if role is None:
            return None
        roles[role].append(loop)
    return ContractionDims(tuple(roles["batch"]), tuple(roles["m"]), tuple(roles["n"]), tuple(roles["k"]), lhs, rhs)


def _role(in_a: bool, in_b: bool, in_c: bool) -> str | None:
    match in_a, in_b, in_c:
        case True, True, True:
            return "batch"
        case True, False, True:
            return "m"
        case False, True, True:
            return "n"
        case True, True, False:
            return "k"
        case _:
            return None
