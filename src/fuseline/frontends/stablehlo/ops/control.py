"""Control flow: branches that may all be computed, and loops whose trips are counted."""

from __future__ import annotations

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.emission import elementwise
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.frontends.stablehlo.hlo import Hlo, scalar_number
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.ir.build import Body


@hlo_op("if")
def if_op(hlo: Hlo) -> list[Tensor]:
    """The branch taken where that is known, else both, and one of them chosen."""
    condition = scalar_number(hlo[0])
    if condition is not None:
        return _branch(hlo, 0 if condition else 1)
    yes, no = _branch(hlo, 0), _branch(hlo, 1)
    return [_chosen(hlo, hlo[0], a, b) for a, b in zip(yes, no, strict=True)]


@hlo_op("case")
def case(hlo: Hlo) -> list[Tensor]:
    """The branch with the number of the operand; the last one for any other number."""
    index, count = scalar_number(hlo[0]), len(hlo.op.regions)
    if index is not None:
        return _branch(hlo, index if 0 <= index < count else count - 1)
    results = _branch(hlo, count - 1)
    for number in range(count - 2, -1, -1):

        def is_here(b: Body, e: object, number: int = number) -> object:
            return s.compare(b, hlo[0].dtype, "eq", e, _number(b, number, hlo[0]))  # pyright: ignore[reportArgumentType]

        import numpy as np

        flag = elementwise(hlo.node, [hlo[0]], np.dtype(bool), is_here, ())  # pyright: ignore[reportArgumentType]
        results = [_chosen(hlo, flag, a, b) for a, b in zip(_branch(hlo, number), results, strict=True)]
    return results


def _number(b: Body, number: int, like: Tensor) -> object:
    from fuseline.frontends.onnx.dtypes import mlir_element

    return b.constant(number, mlir_element(like.dtype))


def _branch(hlo: Hlo, number: int) -> list[Tensor]:
    """The results of a branch, computed here."""
    regions = hlo.op.regions
    if number >= len(regions) or len(regions[number].blocks) != 1:
        raise FuselineError("E0302", f"{hlo.op.name}: there is no branch {number}", node=hlo.location)
    block = regions[number].block
    return hlo.importer.block(block, hlo.scope.inside(block, []))


def _chosen(hlo: Hlo, condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    if x is y:
        return x
    return elementwise(
        hlo.node, [condition, x, hlo.with_dims(y, x.dims)], x.dtype, lambda b, c, p, q: s.select(b, c, p, q), x.dims
    )
