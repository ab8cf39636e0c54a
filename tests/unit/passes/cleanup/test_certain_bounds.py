"""Questions about counters that every iteration answers alike are answered once; the others stay, and so do results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects import arith

import fuseline
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.canonicalize import CanonicalizePass
from tests.draws import RNG

ASKED = (arith.MinSIOp, arith.MaxSIOp, arith.CmpiOp)


def _text(lines: str, position: str = "%k", sizes: str = "16") -> str:
    return f"""
func.func @main(%x: tensor<20xf32>, %o: tensor<{sizes}xf32>) -> tensor<{sizes}xf32> {{
  %r = linalg.generic {{indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"]}}
      outs(%o : tensor<{sizes}xf32>) {{
  ^bb0(%v: f32):
    %i = linalg.index 0 : index
    %zero = arith.constant 0 : index
    %most = arith.constant 19 : index
    %seven = arith.constant 7 : index
    %count = arith.constant 20 : index
    %p = arith.constant 0.5 : f32
{lines}
    %a = tensor.extract %x[{position}] : tensor<20xf32>
    %b = {"arith.select %c, %a, %p : f32" if "%c =" in lines else "arith.addf %a, %p : f32"}
    linalg.yield %b : f32
  }} -> tensor<{sizes}xf32>
  return %r : tensor<{sizes}xf32>
}}"""


CERTAIN = [
    "    %k = arith.minsi %i, %most : index",
    "    %k = arith.minsi %most, %i : index",
    "    %k = arith.maxsi %i, %zero : index",
    *(
        f"    %k = arith.minsi %i, %most : index\n    %c = arith.cmpi {word}, {pair} : index"
        for word, pair in [
            ("slt", "%i, %count"),
            ("ult", "%i, %count"),
            ("ule", "%i, %most"),
            ("sge", "%i, %zero"),
            ("uge", "%count, %i"),
            ("sgt", "%count, %i"),
            ("ne", "%i, %count"),
            ("eq", "%i, %count"),
            ("sgt", "%i, %most"),
        ]
    ),
]
OPEN = [
    "    %k = arith.minsi %i, %seven : index",
    "    %k = arith.maxsi %i, %seven : index",
    *(
        f"    %k = arith.addi %i, %zero : index\n    %c = arith.cmpi {word}, %i, %seven : index"
        for word in ("slt", "ult", "sge", "uge", "eq", "ne", "sle", "ugt")
    ),
]


@pytest.mark.parametrize(("lines", "left"), [*((one, 0) for one in CERTAIN), *((one, 1) for one in OPEN)])
def test_questions_that_are_left(lines: str, left: int, tmp_path: Path) -> None:
    context = new_context()
    module = parse_module(_text(lines), context)
    CanonicalizePass().apply(context, module)
    assert sum(isinstance(op, ASKED) for op in module.walk()) == left
    path = tmp_path / "model.mlir"
    path.write_text(_text(lines))
    feeds = {"x": RNG.standard_normal(20, dtype=np.float32), "o": np.zeros(16, np.float32)}
    want = _expected(lines, feeds["x"])
    for target in ("cpu", "interpreter"):
        (found,) = fuseline.compile(path, target=target, threads=1).run(feeds).values()
        np.testing.assert_allclose(found, want, rtol=1e-6)


def _expected(lines: str, x: np.ndarray) -> np.ndarray:
    i, zero, most, seven, count = np.arange(16), 0, 19, 7, 20
    names = {"%i": i, "%zero": zero, "%most": most, "%seven": seven, "%count": count}
    out: dict[str, np.ndarray] = {}
    for line in lines.splitlines():
        name, rest = line.strip().split(" = ")
        op, *words = rest.split(" : ")[0].replace(",", "").split()
        *word, left, right = words
        a, b = names[left], names[right]
        signless = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
        equal = {"eq": np.equal, "ne": np.not_equal}
        done = {"arith.minsi": np.minimum, "arith.maxsi": np.maximum, "arith.addi": np.add}.get(op)
        out[name] = (done or equal.get(word[0]) or signless[word[0][1:]])(a, b)
    found = x[out["%k"]]
    return np.where(out["%c"], found, np.float32(0.5)) if "%c" in out else found + np.float32(0.5)


def test_unknown_sizes_and_negative_numbers_stay() -> None:
    context = new_context()
    module = parse_module(_text("    %k = arith.minsi %i, %most : index", sizes="?"), context)
    CanonicalizePass().apply(context, module)
    assert sum(isinstance(op, ASKED) for op in module.walk()) == 1
    lines = """    %d = arith.subi %i, %seven : index
    %c = arith.cmpi ult, %d, %count : index
    %k = arith.maxsi %d, %zero : index"""
    module = parse_module(_text(lines), context)
    CanonicalizePass().apply(context, module)
    assert sum(isinstance(op, ASKED) for op in module.walk()) == 2
