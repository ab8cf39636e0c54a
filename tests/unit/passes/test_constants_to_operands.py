"""Which constants become operands: those that differ in what is otherwise equal, where the target loses nothing and a
dispatch can bind them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp

from fuseline.dispatch.body_constants import BodyConstant
from fuseline.ir.context import new_context
from fuseline.ir.flow import DispatchOp
from fuseline.ir.text import parse_module
from fuseline.passes.dedup.constants_to_operands import ConstantsToOperandsPass
from fuseline.targets.target import SharingPrice

EXECUTABLE = """flow.executable private @{name} {{
  flow.executable.export public @{name}
  builtin.module {{
    func.func @{name}(%x: tensor<{size}xf32>) -> tensor<{size}xf32> {{
      %e = tensor.empty() : tensor<{size}xf32>
      %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}}
          ins(%x : tensor<{size}xf32>) outs(%e : tensor<{size}xf32>) {{
      ^bb0(%a: f32, %o: f32):
        %c = arith.constant {factor} : f32
        %d = arith.constant {term} : f32
        %p = arith.mulf %a, %c : f32
        %v = arith.addf %p, %d : f32
        linalg.yield %v : f32
      }} -> tensor<{size}xf32>
      func.return %r : tensor<{size}xf32>
    }}
  }}
}}
"""


def _module(*codes: tuple[float, float, int]) -> ModuleOp:
    """A dispatch each of `x * factor + term` over `size` elements."""
    parts = [
        EXECUTABLE.format(name=f"e{i}", factor=factor, term=term, size=size)
        for i, (factor, term, size) in enumerate(codes)
    ]
    calls = "".join(
        f"%y{i} = flow.dispatch @e{i}::@e{i}(%x{i}) : (tensor<{size}xf32>) -> tensor<{size}xf32>\n"
        for i, (_, _, size) in enumerate(codes)
    )
    arguments = ", ".join(f"%x{i}: tensor<{size}xf32>" for i, (_, _, size) in enumerate(codes))
    return parse_module(f"func.func @main({arguments}) {{ {calls} return }}\n" + "".join(parts), new_context())


def _operands(module: ModuleOp, level: str = "constants", *, limit: int = 32, dear: Sequence[float] = ()) -> list[int]:
    """How many operands each dispatch has; numbers in `dear` cost time as operands."""

    def price(entry: object, constant: BodyConstant) -> SharingPrice | None:
        return SharingPrice(1.0, "dear") if constant.value.value.data in dear else None

    ctx = new_context()
    ctx.sharing_price, ctx.target = price, replace(ctx.target, binding_limit=limit)
    ConstantsToOperandsPass(level).apply(ctx, module)
    module.verify()
    return [len(op.arguments) for op in module.walk() if isinstance(op, DispatchOp)]


def test_what_differs_becomes_an_operand():
    assert _operands(_module((2.0, 0.5, 3), (3.0, 0.5, 3))) == [2, 2]
    assert _operands(_module((2.0, 0.5, 3), (3.0, 0.7, 3), (2.0, 0.5, 4))) == [3, 3, 1]


def test_numbers_that_are_equal_in_every_variant_are_one_operand():
    assert _operands(_module((2.0, 2.0, 3), (3.0, 3.0, 3))) == [2, 2]
    assert _operands(_module((2.0, 2.0, 3), (3.0, 3.0, 3), (3.0, 2.0, 3))) == [3, 3, 3]


def test_what_costs_time_is_the_same_in_all_that_share():
    module = _module((2.0, 0.5, 3), (3.0, 0.7, 3), (5.0, 0.5, 3), (5.0, 0.6, 3), (7.0, 0.5, 3))
    assert _operands(module, dear=(5.0, 7.0)) == [3, 3, 2, 2, 1]


@pytest.mark.parametrize(("level", "operands"), [("exact", [1, 1]), ("constants", [1, 1]), ("shapes", [2, 2])])
def test_extents_tell_classes_apart_below_the_level_of_shapes(level: str, operands: list[int]):
    assert _operands(_module((2.0, 0.5, 3), (3.0, 0.5, 4)), level) == operands


def test_a_dispatch_that_cannot_bind_more_keeps_its_constants():
    assert _operands(_module((2.0, 0.5, 3), (3.0, 0.7, 3)), limit=3) == [1, 1]
    assert _operands(_module((2.0, 0.5, 3), (3.0, 0.5, 3)), limit=3) == [2, 2]
