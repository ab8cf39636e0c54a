"""What an element costs whose maker picks elements of another op: those are evaluated at each of the places."""

from __future__ import annotations

from math import prod

import pytest
from xdsl.dialects import func
from xdsl.parser import Parser

from fuseline.analysis.element_operations import FINDING, operations_of_element
from fuseline.analysis.producers import producers_of
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.ir.context import new_context
from tests.draws import RNG

LANES = 8
ROWS = "affine_map<(i, j) -> (i, j)>"


def _step(result: str, source: str, picks: int, operations: int, shape: str, *, beside: bool = False) -> str:
    """An op that adds up what it picks of `source` at places of a table, and what it reads of it where it is
    (`beside`); its operations are at least so many."""
    found = [
        f"%i{n} = arith.index_cast %p{n} : i64 to index  %v{n} = tensor.extract {source}[%i{n}, %j] : tensor<{shape}>"
        for n in range(picks)
    ]
    sums, last = list[str](), "%o" if not beside else "%b"
    for n in range(picks):
        sums.append(f"%s{n} = arith.addf {last}, %v{n} : f32")
        last = f"%s{n}"
    for n in range(operations - picks):
        sums.append(f"%m{n} = arith.negf {last} : f32")
        last = f"%m{n}"
    rows = shape.split("x", maxsplit=1)[0]
    tables = [("%t", "affine_map<(i, j) -> (i)>", f"tensor<{rows}xi64>", f"%p{n}: i64") for n in range(picks)]
    read = [*tables, *([(source, ROWS, f"tensor<{shape}>", "%b: f32")] if beside else [])]
    maps = ", ".join([*(map_ for _, map_, _, _ in read), ROWS])
    values, types = (", ".join(one[i] for one in read) for i in (0, 2))
    return f"""
    {result}e = tensor.empty() : tensor<{shape}>
    {result} = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "parallel"]}}
        ins({values} : {types}) outs({result}e : tensor<{shape}>) {{
    ^bb0({", ".join([*(one[3] for one in read), "%o: f32"])}):
      %j = linalg.index 1 : index
      {" ".join(found)}
      {" ".join(sums)}
      linalg.yield {last} : f32
    }} -> tensor<{shape}>"""


def _evaluated(steps: list[str], last: str, shape: str) -> float:
    rows = shape.split("x", maxsplit=1)[0]
    head = f"func.func @main(%x: tensor<{shape}>, %t: tensor<{rows}xi64>) -> tensor<{shape}> {{"
    module = Parser(new_context(), f"{head}{''.join(steps)}\n return {last} : tensor<{shape}> }}").parse_module()
    entry = next(op for op in module.body.block.ops if isinstance(op, func.FuncOp))
    ops = {op for op in entry.body.block.ops if op.results}
    value = entry.get_return_op().operands[0]  # pyright: ignore[reportOptionalMemberAccess]
    return operations_of_element(value, list(producers_of(value, ops)), ShapeAnalysis(), LANES)


def _shape() -> str:
    return f"{int(RNG.integers(3, 20))}x{LANES * int(RNG.integers(1, 6))}xf32"


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("draw", range(3))
def test_each_place_is_an_evaluation(depth: int, draw: int):
    """As in an interpolation of several dimensions: 2 x 2 elements of an image for one, or 4 x 4."""
    del draw
    shape, picks = _shape(), [int(count) for count in RNG.integers(1, 5, depth)]
    operations = [count + int(more) for count, more in zip(picks, RNG.integers(0, 4, depth), strict=True)]
    sources = ["%x", *(f"%y{n}" for n in range(depth))]
    steps = [_step(f"%y{n}", sources[n], picks[n], operations[n], shape) for n in range(depth)]
    often = [prod(picks[n + 1 :]) for n in range(depth)]
    expected = [
        times * (own + FINDING * (count - 1)) for times, own, count in zip(often, operations, picks, strict=True)
    ]
    assert _evaluated(steps, f"%y{depth - 1}", shape) == sum(expected)


def test_what_is_read_and_picked_is_evaluated_for_both():
    shape, picks, own = _shape(), int(RNG.integers(1, 5)), int(RNG.integers(5, 9))
    steps = [_step("%y", "%x", 1, own, shape), _step("%z", "%y", picks, own, shape, beside=True)]
    assert _evaluated(steps, "%z", shape) == (picks + 1) * own + own + FINDING * (picks - 1)
