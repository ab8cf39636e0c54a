"""Reductions in MLIR programs that have a result per iteration besides their total."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.draws import generator

_HELD = generator(__name__)
A, B = _HELD.standard_normal((3, 5), dtype=np.float32), _HELD.standard_normal((3, 5), dtype=np.float32)


def _reduced(body: str, second: str = "(i, j)") -> str:
    maps = ", ".join(f"affine_map<(i, j) -> {part}>" for part in ("(i, j)", second, "(i)"))
    types = ("tensor<3x5xf32>" if second == "(i, j)" else "tensor<5xf32>") + ", tensor<3xf32>"
    return f"""func.func @main(%a: tensor<3x5xf32>, %o: {types.split(", ")[0]}, %t: tensor<3xf32>) -> ({types}) {{
  %r:2 = linalg.generic {{indexing_maps = [{maps}], iterator_types = ["parallel", "reduction"]}}
      ins(%a : tensor<3x5xf32>) outs(%o, %t : {types}) {{
  ^bb0(%x: f32, %y: f32, %z: f32):
    %e = math.exp %x : f32
    %s = arith.addf %e, %z : f32
    linalg.yield {body} : f32, f32
  }} -> ({types})
  return %r#0, %r#1 : {types}
}}"""


def test_a_reduction_with_a_result_per_iteration(tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(_reduced("%e, %s"))
    for target in ("cpu", "interpreter"):
        each, total = fuseline.compile(path, target=target, threads=1).run({"a": A, "o": B, "t": B[:, 0]}).values()
        np.testing.assert_allclose(each, np.exp(A), rtol=1e-5)
        np.testing.assert_allclose(total, np.exp(A).sum(1) + B[:, 0], rtol=1e-5)


@pytest.mark.parametrize("text", [_reduced("%s, %s"), _reduced("%y, %s"), _reduced("%e, %s", "(j)")])
def test_a_running_total_as_a_result_is_refused(text: str, tmp_path: Path):
    path = tmp_path / "p.mlir"
    path.write_text(text)
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(path, target="null")
    assert caught.value.code in ("E0306", "E0302") and str(caught.value.node).startswith("p.mlir:2:")
