"""What the results of an indexing map are: loops, each once or not, in order or not, or other expressions of loops."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from fuseline.ir.fast.identity import by_identity


def is_projected_permutation(map_: AffineMap, *, allow_zero: bool = True) -> bool:
    """Whether every result is a different loop (or, if allowed, the constant 0)."""
    return _is_projected_or_zero(map_) if allow_zero else _is_projected(map_)


@by_identity
def _is_projected_or_zero(map_: AffineMap) -> bool:
    return _names_loops_once(map_, allow_zero=True)


@by_identity
def _is_projected(map_: AffineMap) -> bool:
    return _names_loops_once(map_, allow_zero=False)


def _names_loops_once(map_: AffineMap, *, allow_zero: bool) -> bool:
    seen: set[int] = set()
    for expr in map_.results:
        if type(expr) is AffineDimExpr:
            if expr.position in seen:
                return False
            seen.add(expr.position)
        elif not (allow_zero and type(expr) is AffineConstantExpr and expr.value == 0):
            return False
    return True


@by_identity
def is_identity(map_: AffineMap) -> bool:
    """Whether the map is `(d0, .., dn) -> (d0, .., dn)`."""
    return len(map_.results) == map_.num_dims and all(
        type(e) is AffineDimExpr and e.position == i for i, e in enumerate(map_.results)
    )


def is_permutation(map_: AffineMap) -> bool:
    """Whether the results are all loops, each once."""
    return len(map_.results) == map_.num_dims and is_projected_permutation(map_, allow_zero=False)


def dims_of(expr: AffineExpr) -> set[int]:
    """The loops that occur in `expr`."""
    if type(expr) is AffineDimExpr:
        return {expr.position}
    if type(expr) is AffineBinaryOpExpr:
        return dims_of(expr.lhs) | dims_of(expr.rhs)
    return set()


def used_dims(map_: AffineMap) -> set[int]:
    """The loops that occur in any result of `map_`."""
    return {dim for expr in map_.results for dim in dims_of(expr)}


def loops_of(exprs: Sequence[AffineExpr]) -> list[int | None]:
    """For each result the loop it is, or None for anything but a plain loop."""
    return [expr.position if type(expr) is AffineDimExpr else None for expr in exprs]


@by_identity
def with_steps_alike(map_: AffineMap) -> AffineMap:
    """The map with 2 for every number above 1 that a loop is multiplied by: strides and dilations.

    >>> from xdsl.ir.affine import AffineMap
    >>> str(with_steps_alike(AffineMap.from_callable(lambda i, j: (3 * i + j, 5 * j))))
    '(d0, d1) -> (((d0 * 2) + d1), (d1 * 2))'
    """
    return AffineMap(map_.num_dims, map_.num_symbols, tuple(_with_steps_alike(expr) for expr in map_.results))


def _with_steps_alike(expr: AffineExpr) -> AffineExpr:
    if type(expr) is not AffineBinaryOpExpr:
        return expr
    lhs, rhs = _with_steps_alike(expr.lhs), _with_steps_alike(expr.rhs)
    if expr.kind is AffineBinaryOpKind.Mul and type(rhs) is AffineConstantExpr and rhs.value > 1:
        rhs = AffineConstantExpr(2)
    return AffineBinaryOpExpr(expr.kind, lhs, rhs)
