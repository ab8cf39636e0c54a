"""Branches, loops, calls and names of StableHLO programs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from tests.draws import RNG
from tests.unit.frontends.stablehlo.programs import program, refused, run


def _x(*shape: int):
    return RNG.standard_normal(shape).astype(np.float32)


_BRANCHES = """    %r = "stablehlo.case"(%i) ({
      stablehlo.return %x : tensor<4xf32>
    }, {
      %a = stablehlo.add %x, %x : tensor<4xf32>
      stablehlo.return %a : tensor<4xf32>
    }, {
      %a = stablehlo.negate %x : tensor<4xf32>
      stablehlo.return %a : tensor<4xf32>
    }) : (tensor<i32>) -> tensor<4xf32>"""


def test_a_branch_for_each_number_and_the_last_for_any_other(tmp_path: Path):
    x, path = _x(4), tmp_path / "p.mlir"
    path.write_text(program(_BRANCHES, "%x: tensor<4xf32>, %i: tensor<i32>", "tensor<4xf32>", "%r"))
    model = fuseline.compile(path)
    for number, want in ((0, x), (1, x + x), (2, -x), (3, -x), (-1, -x)):
        np.testing.assert_array_equal(model(x, np.array(number, np.int32)), want)


def _loop(trips: int) -> str:
    """`jax.lax.scan` as it is printed: a state, rows read and rows written."""
    rows = f"tensor<{trips}x3xf32>"
    return f"""module @jit_scan {{
  func.func public @main(%arg0: {rows} loc("x"), %arg1: tensor<3xf32> loc("h"))
        -> (tensor<3xf32> {{jax.result_info = "result[0]"}}, {rows} {{jax.result_info = "result[1]"}}) {{
    %c = stablehlo.constant dense<1> : tensor<i32>
    %c_0 = stablehlo.constant dense<{trips}> : tensor<i32>
    %c_1 = stablehlo.constant dense<0> : tensor<i32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> {rows}
    %1:4 = stablehlo.while(%iterArg = %arg0, %iterArg_2 = %c_1, %iterArg_3 = %arg1, %iterArg_4 = %0) : {rows},
        tensor<i32>, tensor<3xf32>, {rows}
    cond {{
      %2 = stablehlo.compare LT, %iterArg_2, %c_0, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1> loc(#loc5)
      stablehlo.return %2 : tensor<i1>
    }} do {{
      %2 = func.call @row(%iterArg, %iterArg_2) : ({rows}, tensor<i32>) -> tensor<3xf32>
      %3 = stablehlo.add %iterArg_3, %2 : tensor<3xf32>
      %4 = stablehlo.tanh %3 : tensor<3xf32> loc(#loc5)
      %5 = stablehlo.broadcast_in_dim %4, dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>
      %6 = stablehlo.dynamic_update_slice %iterArg_4, %5, %iterArg_2, %c_1
        : ({rows}, tensor<1x3xf32>, tensor<i32>, tensor<i32>) -> {rows}
      %7 = stablehlo.add %iterArg_2, %c : tensor<i32>
      stablehlo.return %iterArg, %7, %4, %6 : {rows}, tensor<i32>, tensor<3xf32>, {rows}
    }}
    return %1#2, %1#3 : tensor<3xf32>, {rows}
  }} loc(#loc)
  func.func private @row(%arg0: {rows}, %arg1: tensor<i32>) -> tensor<3xf32> {{
    %c = stablehlo.constant dense<0> : tensor<i32>
    %0 = stablehlo.dynamic_slice %arg0, %arg1, %c, sizes = [1, 3] : ({rows}, tensor<i32>, tensor<i32>)
        -> tensor<1x3xf32>
    %1 = stablehlo.reshape %0 : (tensor<1x3xf32>) -> tensor<3xf32>
    return %1 : tensor<3xf32>
  }}
}} loc(#loc)
#loc = loc(unknown)
#loc3 = loc("f.py":14:11 to :26)
#loc4 = loc(callsite("f"(#loc3) at "<module>"(#loc3)))
#loc5 = loc("jit(scan)/while/body/tanh"(#loc4))
"""


@pytest.mark.parametrize("trips", [1, 3, 60])
def test_a_loop_over_rows(trips: int, tmp_path: Path):
    x, h = _x(trips, 3), _x(3)
    state, rows = run(_loop(trips), tmp_path, x, h)
    want: list[np.ndarray] = []
    for row in x:
        h = np.tanh(h + row)
        want.append(h)
    np.testing.assert_allclose(rows, np.stack(want), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(state, h, rtol=1e-4, atol=1e-5)


def test_names_come_from_locations(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(_loop(60))
    model = fuseline.compile(path)
    assert [item.name for item in model.inputs] == ["x", "h"]
    assert [item.name for item in model.outputs] == ["result[0]", "result[1]"]
    assert "jit(scan)/while/body/tanh" in model.record.source_nodes
    assert model.record.host_ops == []


def _while(step: str, test: str) -> str:
    lines = f"""    %zero = stablehlo.constant dense<0> : tensor<i32>
    %n = stablehlo.constant dense<7> : tensor<i32>
    %r:2 = stablehlo.while(%i = %zero, %s = %x) : tensor<i32>, tensor<4xf32>
    cond {{
{test}
      stablehlo.return %t : tensor<i1>
    }} do {{
      %one = stablehlo.constant dense<2> : tensor<i32>
      %j = stablehlo.add %i, %one : tensor<i32>
{step}
      stablehlo.return %j, %y : tensor<i32>, tensor<4xf32>
    }}"""
    return program(lines, "%x: tensor<4xf32>", "tensor<i32>, tensor<4xf32>", "%r#0, %r#1")


def test_a_counter_with_another_step(tmp_path: Path):
    x = _x(4)
    test = "      %t = stablehlo.compare LE, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>"
    step = """      %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
      %b = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> tensor<4xf32>
      %y = stablehlo.add %s, %b : tensor<4xf32>"""
    count, found = run(_while(step, test), tmp_path, x)
    assert int(count) == 8
    np.testing.assert_allclose(found, x + 0 + 2 + 4 + 6, rtol=1e-6)


def test_a_loop_until_data_says_so_is_repeated_by_the_host(tmp_path: Path):
    test = """      %zf = stablehlo.constant dense<1.0> : tensor<f32>
      %q = stablehlo.reduce(%s init: %zf) applies stablehlo.maximum across dimensions = [0]
        : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
      %b = stablehlo.constant dense<40.0> : tensor<f32>
      %t = stablehlo.compare LT, %q, %b, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>"""
    x = np.abs(_x(4)) + 1
    count, found = run(_while("      %y = stablehlo.add %s, %s : tensor<4xf32>", test), tmp_path, x)
    trips = int(np.ceil(np.log2(40 / x.max())))
    assert int(count) == 2 * trips
    np.testing.assert_allclose(found, x * 2**trips, rtol=1e-6)


def test_a_loop_without_end_is_refused(tmp_path: Path):
    test = "      %t = stablehlo.constant dense<true> : tensor<i1>"
    refused(_while("      %y = stablehlo.negate %s : tensor<4xf32>", test), tmp_path, "its condition stays true")


@pytest.mark.parametrize(
    ("line", "words", "code"),
    [
        (
            "%r = stablehlo.custom_call @foo(%x) {api_version = 2 : i32} : (tensor<4xf32>) -> tensor<4xf32>",
            "calls @foo",
            "E0306",
        ),
        ('%r = "stablehlo.all_reduce"(%x) : (tensor<4xf32>) -> tensor<4xf32>', "all_reduce is not read", "E0306"),
        ("%r = func.call @g(%x) : (tensor<4xf32>) -> tensor<4xf32>", "@g", "E0302"),
        ("%r = func.call @main(%x) : (tensor<4xf32>) -> tensor<4xf32>", "calls itself", "E0306"),
        ("%r = stablehlo.nothing %x : tensor<4xf32>", "stablehlo.nothing is not registered", "E0306"),
        ("%r = stablehlo.add %x : tensor<4xf32>", "operands", "E0302"),
        ("%r = stablehlo.add %x, %x : tensor<4xf32>, tensor<4xf32>", "2 types for 2 operands", "E0301"),
        (
            '%r = stablehlo.composite "my.op" %x {decomposition = @none} : (tensor<4xf32>) -> tensor<4xf32>',
            "no function @none",
            "E0305",
        ),
    ],
)
def test_what_is_refused_names_its_place(line: str, words: str, code: str, tmp_path: Path):
    refused(
        program(f"    %k = stablehlo.abs %x : tensor<4xf32>\n    {line}", "%x: tensor<4xf32>", "tensor<4xf32>", "%r"),
        tmp_path,
        words,
        code,
    )


def test_names_of_arguments_may_be_anything(tmp_path: Path):
    text = program("    %r = stablehlo.add %x, %y : tensor<?x2xf32>", "%x: ?, %y: ?", "tensor<?x2xf32>", "%r")
    for name in ("p['a']", "p.a"):
        text = text.replace(": ?", f": tensor<?x2xf32> loc({chr(34)}{name}{chr(34)})", 1)
    path = tmp_path / "p.mlir"
    path.write_text(text)
    model, x = fuseline.compile(path), _x(3, 2)
    assert [item.name for item in model.inputs] == ["p['a']", "p.a"]
    np.testing.assert_array_equal(model(x, x), x + x)


def test_marks_are_looked_through(tmp_path: Path):
    x = _x(4)
    lines = """    %a = stablehlo.custom_call @Sharding(%x) {mhlo.sharding = "{replicated}"} :
        (tensor<4xf32>) -> tensor<4xf32>
    %b = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<4xf32>
    %c:2 = stablehlo.optimization_barrier %b, %x : tensor<4xf32>, tensor<4xf32>
    %r = stablehlo.add %c#0, %c#1 : tensor<4xf32>"""
    text = program(lines, "%x: tensor<4xf32>", "tensor<4xf32>", "%r").replace(
        "module @m {", 'module @m attributes {mhlo.num_replicas = 1 : i32} {\n  sdy.mesh @mesh = <["x"=1]>'
    )
    (found,) = run(text, tmp_path, x)
    np.testing.assert_array_equal(found, x + x)


def test_a_composite_is_its_decomposition(tmp_path: Path):
    x = _x(4)
    line = (
        '    %r = stablehlo.composite "my.twice" %x {decomposition = @twice, version = 1 : i32} : '
        "(tensor<4xf32>) -> tensor<4xf32>"
    )
    text = program(line, "%x: tensor<4xf32>", "tensor<4xf32>", "%r").replace(
        "module @m {",
        "module @m {\n  func.func private @twice(%a: tensor<4xf32>) -> tensor<4xf32> {\n"
        "    %s = stablehlo.add %a, %a : tensor<4xf32>\n    return %s : tensor<4xf32>\n  }",
    )
    (found,) = run(text, tmp_path, x)
    np.testing.assert_array_equal(found, x + x)


def test_sizes_that_the_run_tells(tmp_path: Path):
    """As `jax.export` prints a program with a symbolic batch: `softmax(x) * batch`."""
    lines = """    %one = stablehlo.constant dense<1> : tensor<i32>
    %m = stablehlo.constant dense<0xFF800000> : tensor<f32>
    %n = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x4xf32>) -> tensor<i32>
    %ok = stablehlo.compare GE, %n, %one, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.custom_call @shape_assertion(%ok, %n) {error_message = "too small", has_side_effect = true}
        : (tensor<i1>, tensor<i32>) -> ()
    %top = stablehlo.reduce(%x init: %m) applies stablehlo.maximum across dimensions = [1]
        : (tensor<?x4xf32>, tensor<f32>) -> tensor<?xf32>
    %four = stablehlo.constant dense<4> : tensor<1xi32>
    %v = stablehlo.reshape %n : (tensor<i32>) -> tensor<1xi32>
    %shape = stablehlo.concatenate %v, %four, dim = 0 : (tensor<1xi32>, tensor<1xi32>) -> tensor<2xi32>
    %b = stablehlo.dynamic_broadcast_in_dim %top, %shape, dims = [0] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x4xf32>
    %d = stablehlo.subtract %x, %b : tensor<?x4xf32>
    %f = stablehlo.convert %n : (tensor<i32>) -> tensor<f32>
    %s = stablehlo.dynamic_broadcast_in_dim %f, %shape, dims = [] : (tensor<f32>, tensor<2xi32>) -> tensor<?x4xf32>
    %y = stablehlo.multiply %d, %s : tensor<?x4xf32>
    %total = stablehlo.multiply %n, %four1 : tensor<i32>
    %flat = stablehlo.reshape %total : (tensor<i32>) -> tensor<1xi32>
    %r = stablehlo.dynamic_reshape %y, %flat : (tensor<?x4xf32>, tensor<1xi32>) -> tensor<?xf32>"""
    lines = lines.replace("    %total", "    %four1 = stablehlo.constant dense<4> : tensor<i32>\n    %total")
    path = tmp_path / "p.mlir"
    path.write_text(program(lines, "%x: tensor<?x4xf32>", "tensor<?xf32>", "%r"))
    model = fuseline.compile(path)
    for batch in (1, 5):
        x = _x(batch, 4)
        np.testing.assert_allclose(model(x), ((x - x.max(1, keepdims=True)) * batch).reshape(-1), rtol=1e-5, atol=1e-6)
