"""What regions and entries of executables say of their loops stays true while passes that know nothing of it change
their bodies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.cli.run_passes import run_passes
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

FORM = "form-dispatch-regions"
CLEAN = ("canonicalize", "cse", "canonicalize,cse,dead-code")


def _size() -> int:
    return int(RNG.integers(2, 40))


def _equal_members() -> onnx.ModelProto:
    """Two members that are one after cse, in one region with a third."""
    n, m = _size(), _size()
    return onnx_model(f"(float[{n}, {m}] x) => (y, z) {{ a = Tanh(x)  b = Tanh(x)  y = Mul(a, b)  z = Exp(x) }}")


def _equal_products() -> onnx.ModelProto:
    n, k = _size(), _size()
    text = f"(float[{n}, {k}] x) => (y) {{ a = MatMul(x, w)  b = MatMul(x, w)  c = Relu(a)  y = Mul(b, c) }}"
    return onnx_model(text, w=RNG.standard_normal((k, _size()), dtype=np.float32))


def _number() -> onnx.ModelProto:
    """A member that becomes a fill."""
    n, m = _size(), _size()
    return onnx_model(f"(int32[{n}, {m}] x) => (y) <int32 zero = {{0}}> {{ y = Mul(x, zero) }}")


def _part_of_a_number() -> onnx.ModelProto:
    n, m = _size(), _size()
    text = f"(int32[{n}, {m}] x) => (y, w) <int32 zero = {{0}}> {{ z = Mul(x, zero)  y = Add(z, x)  w = Neg(y) }}"
    return onnx_model(text)


def _turned_twice() -> onnx.ModelProto:
    n, m = _size(), _size()
    text = f"""(float[{n}, {m}] x) => (y) {{ a = Exp(x)  b = Transpose<perm = [1, 0]>(a)
        c = Transpose<perm = [1, 0]>(b)  y = Tanh(c) }}"""
    return onnx_model(text)


def _normed() -> onnx.ModelProto:
    n, m = _size(), _size()
    text = f"(float[{n}, {m}] x) => (y) {{ a = Softmax<axis = -1>(x)  b = Softmax<axis = -1>(x)  y = Add(a, b) }}"
    return onnx_model(text)


GRAPHS = [_equal_members, _equal_products, _number, _part_of_a_number, _turned_twice, _normed]


def _feeds(program: fuseline.CompiledModel) -> dict[str, Any]:
    shapes = {one.name: [size for size in one.shape if isinstance(size, int)] for one in program.inputs}
    return {one.name: (9 * RNG.standard_normal(shapes[one.name])).astype(one.dtype) for one in program.inputs}


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("clean", CLEAN)
@pytest.mark.parametrize("level", ["none", "default", "aggressive"])
def test_cleaning_up_behind_a_round_keeps_the_program_right(graph: Any, clean: str, level: str):
    model = graph()
    reference = fuseline.compile(model, target="interpreter", fusion="none", cache=False)
    feeds = _feeds(reference)
    once = f"generalize-named-ops,{FORM}{{level={level}}},{clean}"
    for passes in (once, f"{once},{FORM}", f"{once},{FORM}{{level=aggressive}},{clean}"):
        program = fuseline.compile(model, passes=passes, threads=2, cache=False)
        found = program.run(feeds)
        for name, wanted in reference.run(feeds).items():
            largest = max(1.0, float(np.abs(wanted).max(initial=0)))
            np.testing.assert_allclose(found[name], wanted, rtol=0, atol=1e-4 * largest, err_msg=passes)


def _one(name: str, source: str, op: str, columns: int) -> str:
    plain, of = "affine_map<(i, j) -> (i, j)>", f"tensor<9x{columns}xf32>"
    return f"""%{name} = linalg.generic {{
        indexing_maps = [{plain}, {plain}], iterator_types = ["parallel", "parallel"]}}
        ins(%{source} : {of}) outs(%e : {of}) {{
      ^bb0(%in: f32, %out: f32):
        %v = {op} %in : f32
        linalg.yield %v : f32
      }} -> {of}
"""


def _region(said: str, columns: int, members: str, *returned: str) -> str:
    of = f"tensor<9x{columns}xf32>"
    types = ", ".join([of] * len(returned))
    return f"""func.func @main(%x: {of}) -> ({types}) {{
    %e = tensor.empty() : {of}
    %r:{len(returned)} = flow.dispatch.region -> ({types}) attributes {{fuseline.loops = {said}}} {{
      {members}
      flow.return {", ".join(f"%{name}" for name in returned)} : {types}
    }}
    return {", ".join(f"%r#{i}" for i in range(len(returned)))} : {types}
}}"""


def _said(members: list[str], columns: int) -> str:
    return f'{{grids = [["9", "{columns}"]], members = [{", ".join(members)}]}}'


PLACED = "array<i64: 0, 1>"


def test_what_was_said_of_the_members_that_are_left_stays():
    columns = _size()
    bodies = [("a", "x", "math.exp"), ("b", "x", "math.exp"), ("c", "x", "math.absf")]
    text = _region(
        _said([PLACED] * 3, columns), columns, "".join(_one(*body, columns) for body in bodies), "a", "b", "c"
    )
    assert "members = [array<i64: 0, 1>, array<i64: 0, 1>], classes" in run_passes(text, "cse", verify_each=True)


def test_what_an_entry_said_of_the_members_that_are_left_stays():
    columns = _size()
    bodies = [("a", "x", "math.exp"), ("b", "x", "math.exp"), ("c", "x", "math.absf")]
    text = _region(
        _said([PLACED] * 3, columns), columns, "".join(_one(*body, columns) for body in bodies), "a", "b", "c"
    )
    found = run_passes(text, "outline-executables,cse,fuse-elementwise-bodies", verify_each=True)
    assert "members = [array<i64: 0, 1>, array<i64: 0, 1>]" in found


@pytest.mark.parametrize("members", [[PLACED] * 3, [PLACED, '"inlined"', '"inlined"']])
def test_a_region_that_said_too_much_is_reported_whatever_changed_it(members: list[str]):
    columns = _size()
    bodies = _one("a", "x", "math.exp", columns) + _one("b", "x", "math.exp", columns)
    text = _region(_said(members, columns), columns, bodies, "a", "b")
    with pytest.raises(FuselineError, match="E0302"):
        run_passes(text, f"cse,{FORM}")


def test_what_no_pass_changed_is_as_it_was_written():
    columns = _size()
    body = _one("a", "x", "math.exp", columns) + _one("b", "a", "math.absf", columns)
    text = _region(_said([PLACED] * 2, columns), columns, body, "b")
    assert "classes" not in run_passes(text, "canonicalize,cse,dead-code", verify_each=True)


def test_what_two_arms_read_in_place_is_no_longer_said_where_it_became_one(tmp_path: Path):
    """Each arm has a pad of its own, and a cleaned up text has one for all."""
    size = _size()
    of, wide, last, more = (f"tensor<{size + more}xf32>" for more in (0, 1, 5, 4))
    text = f"""func.func @main(%x: {of}) -> ({wide}, {last}, {more}) {{
      %c = arith.constant 1.5 : f32
      %p = tensor.pad %x low[1] high[0] {{
      ^bb0(%i: index):
        tensor.yield %c : f32
      }} : {of} to {wide}
      %e = tensor.empty() : {wide}
      %a = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
          iterator_types = ["parallel"]}} ins(%p : {wide}) outs(%e : {wide}) {{
        ^bb0(%in: f32, %out: f32):
          %v = math.exp %in : f32
          linalg.yield %v : f32
      }} -> {wide}
      %q = tensor.pad %p low[2] high[2] {{
      ^bb0(%i: index):
        tensor.yield %c : f32
      }} : {wide} to {last}
      %r = tensor.pad %p low[1] high[2] {{
      ^bb0(%i: index):
        tensor.yield %c : f32
      }} : {wide} to {more}
      return %a, %q, %r : {wide}, {last}, {more}
    }}"""
    x = RNG.standard_normal(size, dtype=np.float32)
    padded = np.concatenate([np.full(1, 1.5, np.float32), x])
    for passes in ("fusion", f"fusion,cse,{FORM}", f"fusion,dispatch,cse,{FORM}"):
        (path := tmp_path / "behind.mlir").write_text(run_passes(text, passes, verify_each=True))
        a, q, r = fuseline.compile(path, threads=2, cache=False).run({"x": x}).values()
        np.testing.assert_allclose(a, np.exp(padded), rtol=1e-5)
        np.testing.assert_array_equal(q, np.pad(padded, 2, constant_values=1.5))
        np.testing.assert_array_equal(r, np.pad(padded, (1, 2), constant_values=1.5))
