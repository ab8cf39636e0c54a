"""Loops whose end only the run knows: the host repeats programs of what a trip does, on every target."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.api import emit
from fuseline.errors import FuselineError
from fuseline.runtime import load
from tests.draws import RNG

HALVED = """%b = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>,
      affine_map<(d0) -> (d0)>], iterator_types = ["parallel"]}
      ins(%a, %w : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
    ^bb0(%in: f32, %v: f32, %out: f32):
      %p = arith.mulf %in, %v : f32
      %q = arith.addf %p, %half : f32
      linalg.yield %q : f32
    } -> tensor<4xf32>"""

HEAD = """func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>, %n: tensor<i64>) -> (tensor<4xf32>, f32) {
  %k0 = arith.constant 0 : index
  %k1 = arith.constant 1 : index
  %far = arith.constant 30000 : index
  %half = arith.constant 0.5 : f32
  %zero = arith.constant 0.0 : f32
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<4xf32>
  %m = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %m : i64 to index"""

COUNTED = f"""{HEAD}
  %r, %s = scf.for %i = BOUNDS iter_args(%a = %x, %c = %zero) -> (tensor<4xf32>, f32) {{
    {HALVED}
    %j = arith.index_cast %i : index to i64
    %f = arith.sitofp %j : i64 to f32
    %d = arith.addf %c, %f : f32
    scf.yield %b, %d : tensor<4xf32>, f32
  }}
  return %r, %s : tensor<4xf32>, f32
}}"""

WHILE = f"""{HEAD}
  %r, %s = scf.while (%c = %zero, %a = %x) : (f32, tensor<4xf32>) -> (tensor<4xf32>, f32) {{
    %v = tensor.extract %a[%k0] : tensor<4xf32>
    %t = arith.cmpf ogt, %v, %two : f32
    %d = arith.addf %c, %half : f32
    scf.condition(%t) %a, %d : tensor<4xf32>, f32
  }} do {{
  ^bb0(%a: tensor<4xf32>, %c: f32):
    {HALVED}
    scf.yield %c, %b : f32, tensor<4xf32>
  }}
  return %r, %s : tensor<4xf32>, f32
}}"""


def _file(folder: Path, text: str) -> Path:
    path = folder / "loop.mlir"
    path.write_text(text)
    return path


def _feeds(trips: int) -> dict[str, Any]:
    x = RNG.uniform(3, 90, 4).astype(np.float32)
    return {"x": x, "w": RNG.uniform(0.3, 0.7, 4).astype(np.float32), "n": np.array(trips)}


def _counted(feeds: dict[str, Any], first: int, end: int, step: int) -> tuple[Any, float]:
    x, total = feeds["x"], 0.0
    for number in range(first, end, step):
        x, total = x * feeds["w"] + np.float32(0.5), total + number
    return x, total


def _while(feeds: dict[str, Any]) -> tuple[Any, float]:
    x, count = feeds["x"], 0.5
    while x[0] > 2:
        x, count = x * feeds["w"] + np.float32(0.5), count + 0.5
    return x, count


def _check(found: dict[str, Any], wanted: tuple[Any, float]) -> None:
    got = [*found.values()]
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-4)
    assert float(got[1]) == wanted[1]


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_a_loop_runs_as_often_as_data_says(target: str, tmp_path: Path):
    model = fuseline.compile(_file(tmp_path, COUNTED.replace("BOUNDS", "%k1 to %end step %k1")), target=target)
    for trips in (0, 1, 2, int(RNG.integers(3, 9))):
        feeds = _feeds(trips)
        _check(model.run(feeds), _counted(feeds, 1, trips, 1))
    (host,) = model.record.host_ops
    assert (host.op_type, host.node, host.executor) == ("For", "loop.mlir:11", "fuseline")
    assert "computed" in host.reason and model.stats["host_ops"] == 1


@pytest.mark.parametrize("target", ["cpu", "interpreter"])
def test_a_loop_goes_on_while_data_says(target: str, tmp_path: Path):
    model = fuseline.compile(_file(tmp_path, WHILE), target=target)
    for _ in range(3):
        feeds = _feeds(0)
        _check(model.run(feeds), _while(feeds))
    assert [host.op_type for host in model.record.host_ops] == ["While"]


def test_what_is_too_long_to_write_out_is_repeated(tmp_path: Path):
    model, feeds = fuseline.compile(_file(tmp_path, COUNTED.replace("BOUNDS", "%k0 to %far step %k1"))), _feeds(0)
    found = [*model.run(feeds).values()]
    np.testing.assert_allclose(found[0], _counted(feeds, 0, 300, 1)[0], rtol=1e-4)


def test_a_step_of_nothing_is_refused_when_it_is_fed(tmp_path: Path):
    model = fuseline.compile(_file(tmp_path, COUNTED.replace("BOUNDS", "%k0 to %far step %end")))
    with pytest.raises(FuselineError, match="steps of 0") as caught:
        model.run(_feeds(0))
    assert (caught.value.code, caught.value.node) == ("E0203", "loop.mlir:11")


def test_the_file_needs_no_compiler(tmp_path: Path):
    fuseline.compile(_file(tmp_path, WHILE)).save(tmp_path / "loop.fuse")
    feeds = _feeds(0)
    _check(load(tmp_path / "loop.fuse").run(feeds), _while(feeds))


@pytest.mark.parametrize("stage", ["input", "fusion", "dispatch"])
def test_the_text_of_a_stage_is_read_back(stage: str, tmp_path: Path):
    emit(_file(tmp_path, WHILE), stage, output=tmp_path / "again.mlir")
    feeds = _feeds(0)
    _check(fuseline.compile(tmp_path / "again.mlir").run(feeds), _while(feeds))


NESTED = """func.func @main(%x: tensor<?xf32>, %n: tensor<i64>) -> tensor<?xf32> {
  %k0 = arith.constant 0 : index
  %k1 = arith.constant 1 : index
  %m = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %m : i64 to index
  %r = scf.for %i = %k0 to %end step %k1 iter_args(%a = %x) -> (tensor<?xf32>) {
    %q = scf.for %j = %k0 to %i step %k1 iter_args(%b = %a) -> (tensor<?xf32>) {
      %c = arith.addf %b, %x : tensor<?xf32>
      scf.yield %c : tensor<?xf32>
    }
    scf.yield %q : tensor<?xf32>
  }
  return %r : tensor<?xf32>
}"""


def test_loops_inside_loops_over_tensors_of_any_size(tmp_path: Path):
    model = fuseline.compile(_file(tmp_path, NESTED))
    for size, trips in ((5, 4), (2, 3)):
        x = RNG.standard_normal(size).astype(np.float32)
        (found,) = model.run({"x": x, "n": np.array(trips)}).values()
        np.testing.assert_allclose(found, x * (1 + sum(range(trips))), rtol=1e-5)


ROWS = """func.func @main(%x: tensor<6x3xf32>, %n: tensor<i64>) -> tensor<3xf32> {
  %k0 = arith.constant 0 : index
  %k1 = arith.constant 1 : index
  %m = tensor.extract %n[] : tensor<i64>
  %end = arith.index_cast %m : i64 to index
  %z = arith.constant dense<0.0> : tensor<3xf32>
  %r = scf.for %i = %k0 to %end step %k1 iter_args(%a = %z) -> (tensor<3xf32>) {
    %row = tensor.extract_slice %x[%i, 0] [1, 3] [1, 1] : tensor<6x3xf32> to tensor<3xf32>
    %c = arith.addf %a, %row : tensor<3xf32>
    scf.yield %c : tensor<3xf32>
  }
  return %r : tensor<3xf32>
}"""


def test_rows_at_the_counter_are_read(tmp_path: Path):
    model, x = fuseline.compile(_file(tmp_path, ROWS)), RNG.standard_normal((6, 3)).astype(np.float32)
    for trips in (0, 2, 6):
        (found,) = model.run({"x": x, "n": np.array(trips)}).values()
        np.testing.assert_allclose(found, x[:trips].sum(0), rtol=1e-5, atol=1e-6)


IN_A_BRANCH = f"""{HEAD}
  %yes = arith.cmpi sgt, %end, %k1 : index
  %r = scf.if %yes -> (tensor<4xf32>) {{
    %g = scf.for %i = %k0 to %end step %k1 iter_args(%a = %x) -> (tensor<4xf32>) {{
      {HALVED}
      scf.yield %b : tensor<4xf32>
    }}
    scf.yield %g : tensor<4xf32>
  }} else {{
    scf.yield %x : tensor<4xf32>
  }}
  return %r, %zero : tensor<4xf32>, f32
}}"""


def _typed(change: Callable[[str], str]) -> str:
    return change(COUNTED.replace("BOUNDS", "%k0 to %end step %k1"))


def test_a_loop_that_may_not_run_is_refused(tmp_path: Path):
    with pytest.raises(FuselineError, match="must not run where it was not meant to") as caught:
        fuseline.compile(_file(tmp_path, IN_A_BRANCH))
    assert caught.value.code == "E0306" and "loop.mlir" in str(caught.value.node)


def test_what_a_trip_cannot_do_is_refused_at_its_place(tmp_path: Path):
    text = _typed(lambda text: text.replace("%d = arith.addf %c, %f : f32", "%d = llvm.nothing %c, %f : f32"))
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(_file(tmp_path, text))
    assert caught.value.code in ("E0301", "E0306") and "loop.mlir" in str(caught.value.node)
