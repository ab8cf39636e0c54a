"""Parts of a dispatch that share an argument: one walk over it makes them all."""

from __future__ import annotations

from fuseline.targets.cpu.families.nests.loop_nest import nest_plan
from fuseline.targets.cpu.isa import machine
from tests.unit.targets.cpu.arms.programs import elementwise
from tests.unit.targets.cpu.nests.texts import check, parse

_PAIR = "(%x: tensor<300x400xf32>) -> (tensor<300x400xf32>, tensor<300x400xf32>)"


def _function(signature: str, body: str, returned: str, types: str) -> str:
    return f"func.func @f{signature} {{\n{body}\n  func.return {returned} : {types}\n}}"


def _transpose(name: str, source: str, n: int, m: int) -> str:
    return f"""
    %e_{name}_ = tensor.empty() : tensor<{m}x{n}xf32>
    %{name} = linalg.transpose ins(%{source} : tensor<{n}x{m}xf32>)
        outs(%e_{name}_ : tensor<{m}x{n}xf32>) permutation = [1, 0]"""


def _sum(name: str, source: str, n: int, m: int) -> str:
    return f"""
    %z_{name} = arith.constant 0.0 : f32
    %e_{name}_ = tensor.empty() : tensor<{n}xf32>
    %f_{name}_ = linalg.fill ins(%z_{name} : f32) outs(%e_{name}_ : tensor<{n}xf32>) -> tensor<{n}xf32>
    %{name} = linalg.generic {{
      indexing_maps = [affine_map<(d0, d1) -> (d0, d1)>, affine_map<(d0, d1) -> (d0)>],
          iterator_types = ["parallel", "reduction"]}}
      ins(%{source} : tensor<{n}x{m}xf32>) outs(%f_{name}_ : tensor<{n}xf32>) {{
    ^bb0(%a: f32, %s: f32):
      %t = arith.addf %s, %a : f32
      linalg.yield %t : f32
    }} -> tensor<{n}xf32>"""


def test_two_maps_of_one_argument_share_their_grid() -> None:
    body = elementwise("p", ["x"], "300x400", "%v = math.absf %a0 : f32") + elementwise(
        "q", ["x"], "300x400", "%v = math.exp %a0 : f32"
    )
    text = _function(_PAIR, body, "%p, %q", "tensor<300x400xf32>, tensor<300x400xf32>")
    plan = nest_plan(parse(text), machine())
    assert len(plan.schedule.groups) == 1 and isinstance(plan.workgroups, int) and plan.workgroups > 1
    check(text)


def test_a_map_and_a_sum_of_rows_share_the_rows() -> None:
    body = elementwise("p", ["x"], "33x41", "%v = math.absf %a0 : f32") + _sum("s", "x", 33, 41)
    text = _function(
        "(%x: tensor<33x41xf32>) -> (tensor<33x41xf32>, tensor<33xf32>)",
        body,
        "%p, %s",
        "tensor<33x41xf32>, tensor<33xf32>",
    )
    plan = nest_plan(parse(text), machine())
    assert plan.workgroups == 33 and len(plan.schedule.groups) == 1  # the sum is gathered while the row is mapped
    check(text)


def test_a_fill_that_two_sums_start_from_makes_them_no_part() -> None:
    both = _sum("u", "x", 70, 41) + _sum("w", "x", 70, 41).split("\n", 4)[4].replace("%f_w_", "%f_u_")
    text = _function(
        "(%x: tensor<70x41xf32>) -> (tensor<70xf32>, tensor<70xf32>)", both, "%u, %w", "tensor<70xf32>, tensor<70xf32>"
    )
    assert text.count("linalg.fill") == 1 and nest_plan(parse(text), machine()).workgroups == 70
    check(text)


def test_rows_mapped_and_columns_summed() -> None:
    columns = (
        _sum("c", "x", 41, 33)
        .replace("affine_map<(d0, d1) -> (d0, d1)>", "affine_map<(d0, d1) -> (d1, d0)>")
        .replace("41x33", "33x41")
    )
    body = elementwise("p", ["x"], "33x41", "%v = math.absf %a0 : f32") + columns
    text = _function(
        "(%x: tensor<33x41xf32>) -> (tensor<33x41xf32>, tensor<41xf32>)",
        body,
        "%p, %c",
        "tensor<33x41xf32>, tensor<41xf32>",
    )
    check(text)


def test_a_transposed_reader_of_a_square_keeps_to_itself() -> None:
    """One part reads the argument both ways: joining would make its two loops one."""
    body = elementwise("p", ["x"], "21x21", "%v = math.absf %a0 : f32") + _transpose("t", "x", 21, 21)
    body += elementwise("q", ["x", "t"], "21x21", "%v = arith.addf %a0, %a1 : f32")
    text = _function(
        "(%x: tensor<21x21xf32>) -> (tensor<21x21xf32>, tensor<21x21xf32>)",
        body,
        "%p, %q",
        "tensor<21x21xf32>, tensor<21x21xf32>",
    )
    check(text)
