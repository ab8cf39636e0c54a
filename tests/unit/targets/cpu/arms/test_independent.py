"""Arms that only share operands: several roots of one kind, and of different kinds."""

from __future__ import annotations

import numpy as np

from fuseline.runtime import Session
from fuseline.runtime.program import Command
from tests.unit.targets.cpu.arms.programs import check, close, compiled, elementwise, program, random, record_of


def _matmul(name: str, m: int, k: int, n: int, weight: str) -> str:
    return f"""
    %e_{name} = tensor.empty() : tensor<{m}x{n}xf32>
    %f_{name} = linalg.fill ins(%z : f32) outs(%e_{name} : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
    %{name} = linalg.matmul ins(%x, %{weight} : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>)
      outs(%f_{name} : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>"""


def test_three_matmuls_of_one_operand() -> None:
    m, k, widths = 37, 29, (45, 33, 45)
    weights = {f"w{i}": random((k, n), i) for i, n in enumerate(widths)}
    body = "%z = arith.constant 0.0 : f32" + "".join(_matmul(f"y{i}", m, k, n, f"w{i}") for i, n in enumerate(widths))
    text = program(
        {"x": (m, k), **{name: w.shape for name, w in weights.items()}},
        body,
        {f"%y{i}": f"tensor<{m}x{n}xf32>" for i, n in enumerate(widths)},
    )
    feeds = {"x": random((m, k), 9), **weights}
    artifact = check(text, feeds, [feeds["x"] @ w for w in weights.values()])
    (step,) = artifact.program.steps
    assert isinstance(step, Command) and len(step.arms) == 3
    assert len({arm.kernel for arm in step.arms}) == 2  # equal arms share their code
    stats = record_of(artifact).statistics
    assert stats["dispatches"] == 1 and stats["executables"] == 2


def _rows(name: str, source: str, n: int, m: int) -> str:
    """The sums of the rows of `source`."""
    return f"""
    %e_{name} = tensor.empty() : tensor<{n}xf32>
    %f_{name} = linalg.fill ins(%z : f32) outs(%e_{name} : tensor<{n}xf32>) -> tensor<{n}xf32>
    %{name} = linalg.reduce ins(%{source} : tensor<{n}x{m}xf32>) outs(%f_{name} : tensor<{n}xf32>) dimensions = [1]
      (%in: f32, %acc: f32) {{
        %t = arith.addf %in, %acc : f32
        linalg.yield %t : f32
      }}"""


def test_a_matmul_a_map_and_a_sum() -> None:
    """Three families in one launch."""
    body = f"""%z = arith.constant 0.0 : f32 {_matmul("y", 17, 13, 11, "w")}
    {elementwise("p", ["u"], "7x300", "%v = math.absf %a0 : f32")} {_rows("s", "long", 19, 23)}"""
    feeds = {"x": random((17, 13), 0), "w": random((13, 11), 1), "u": random((7, 300), 2), "long": random((19, 23), 3)}
    results = {"%s": "tensor<19xf32>", "%y": "tensor<17x11xf32>", "%p": "tensor<7x300xf32>"}
    artifact = check(program({name: a.shape for name, a in feeds.items()}, body, results), feeds,
                     [feeds["long"].sum(1), feeds["x"] @ feeds["w"], np.abs(feeds["u"])])  # fmt: skip
    (dispatch,) = record_of(artifact).dispatches
    assert (
        dispatch.family == "contraction+elementwise+rows" and dispatch.root == "contraction + elementwise + reduction"
    )
    assert [arm.family for arm in dispatch.arms] == ["contraction", "elementwise", "rows"]
    assert all(arm.workgroups for arm in dispatch.arms)


def test_sizes_known_at_run_time() -> None:
    """Two products of one dynamic operand; the code is compiled once."""
    outside = "%zero = arith.constant 0 : index\n  %n = tensor.dim %x, %zero : tensor<?x29xf32>"
    body = "%z = arith.constant 0.0 : f32"
    for name in "pq":
        body += f"""
    %e_{name} = tensor.empty(%n) : tensor<?x33xf32>
    %f_{name} = linalg.fill ins(%z : f32) outs(%e_{name} : tensor<?x33xf32>) -> tensor<?x33xf32>
    %{name} = linalg.matmul ins(%x, %w_{name} : tensor<?x29xf32>, tensor<29x33xf32>) outs(%f_{name} : tensor<?x33xf32>)
        -> tensor<?x33xf32>"""
    inputs = {"x": ("n", 29), "w_p": (29, 33), "w_q": (29, 33)}
    text = program(inputs, body, {"%p": "tensor<?x33xf32>{%n}", "%q": "tensor<?x33xf32>{%n}"}, outside=outside)
    weights = {name: random((29, 33), i) for i, name in enumerate(("w_p", "w_q"))}
    for threads in (1, 2):
        artifact = compiled(text, threads)
        assert record_of(artifact).statistics["executables"] == 1
        session = Session(artifact)
        for n in (1, 7, 130):
            x = random((n, 29), n)
            for _ in range(2):
                out = session.run({"x": x, **weights})
                close(out["result0"], x @ weights["w_p"])
                close(out["result1"], x @ weights["w_q"])


def test_two_arms_read_one_constant_each_in_its_layout() -> None:
    """A weight of one arm is a plain operand of the other: it is stored packed and plain."""
    weight, other = random((13, 11), 1), random((13, 11), 2)
    body = f"""%z = arith.constant 0.0 : f32 {_matmul("y", 17, 13, 11, "w")}
    {elementwise("p", ["w", "u"], "13x11", "%v = arith.addf %a0, %a1 : f32")}"""
    outside = "%w = arith.constant dense_resource<w> : tensor<13x11xf32>"
    text = program(
        {"x": (17, 13), "u": (13, 11)}, body, {"%y": "tensor<17x11xf32>", "%p": "tensor<13x11xf32>"}, outside=outside
    )
    feeds = {"x": random((17, 13), 0), "u": other}
    artifact = check(text, feeds, [feeds["x"] @ weight, weight + other], {"w": weight})
    assert len(artifact.constants) == 2


def test_equal_dispatches_share_their_executable() -> None:
    """And dispatches whose arms stand in another order share the code of each arm."""

    def region(number: int, first: str, second: str) -> str:
        parts = {"y": _matmul("y", 17, 13, 11, "w"), "s": _rows("s", "x", 17, 13)}
        types = {"y": "tensor<17x11xf32>", "s": "tensor<17xf32>"}
        listed = f"{types[first]}, {types[second]}"
        return f"""%r{number}:2 = flow.dispatch.region -> ({listed}) {{
    %z = arith.constant 0.0 : f32 {parts[first]} {parts[second]}
    flow.return %{first}, %{second} : {listed} }}
  """

    types = "tensor<17x11xf32>, tensor<17xf32>, tensor<17x11xf32>, tensor<17xf32>, tensor<17xf32>, tensor<17x11xf32>"
    text = f"""func.func @main(%x: tensor<17x13xf32> {{fuseline.name = "x"}},
        %w: tensor<13x11xf32> {{fuseline.name = "w"}}) -> ({types}) {{
  {region(0, "y", "s")}{region(1, "y", "s")}{region(2, "s", "y")}
  func.return %r0#0, %r0#1, %r1#0, %r1#1, %r2#0, %r2#1 : {types} }}"""
    feeds = {"x": random((17, 13), 0), "w": random((13, 11), 1)}
    product, sums = feeds["x"] @ feeds["w"], feeds["x"].sum(1)
    artifact = check(text, feeds, [product, sums, product, sums, sums, product])
    record = record_of(artifact)
    assert [dispatch.executable for dispatch in record.dispatches[:2]] == [record.dispatches[0].executable] * 2
    assert record.statistics["dispatches"] == 3 and record.statistics["executables"] == 2
