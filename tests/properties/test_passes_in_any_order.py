"""Passes of the user in any order, rounds of fusion and outlining anywhere among them, some twice and some never:
outputs are those of the interpreter. Where a list does not end with what outlining relies on, outlining does it; what
runs behind outlining finds executables that say what is so."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.cli.run_passes import run_passes
from fuseline.pipeline import PHASES
from tests.draws import RNG
from tests.properties.random_models import RandomModel
from tests.wishes.compared import agree

FORM = "form-dispatch-regions"
BEFORE = [*PHASES["cleanup"], *PHASES["layout"], *PHASES["padding"], *PHASES["fusion"], "cleanup", "layout", "fusion"]
BEHIND = ["canonicalize", "cse", "fold-constants", "dead-code", "cleanup", "layout", "dedup", "dispatch", FORM]


def _some(names: Sequence[str], most: int) -> list[str]:
    return [names[int(i)] for i in RNG.integers(0, len(names), int(RNG.integers(0, most)))]


def _round() -> str:
    return FORM + str(
        RNG.choice(["", "{level=none}", "{rules=elementwise-cluster,read-in-place}", "{level=aggressive}"])
    )


def _random() -> onnx.ModelProto:
    steps = [(int(a), int(b), int(c)) for a, b, c in RNG.integers(0, 41, (int(RNG.integers(4, 14)), 3))]
    return RandomModel(int(RNG.integers(0, 1 << 16))).build(steps)


@pytest.mark.parametrize("number", range(6))
def test_outputs_are_those_of_the_interpreter(number: int):
    model = _random()
    reference = fuseline.compile(model, target="interpreter", fusion="none", cache=False)
    shapes = {one.name: [size for size in one.shape if isinstance(size, int)] for one in reference.inputs}
    feeds = {name: RNG.standard_normal(shape, dtype=np.float32) for name, shape in shapes.items()}
    wanted = reference.run(feeds)
    for outlined in ("", "outline-executables", "dispatch", "dispatch,dedup"):
        behind = [outlined, *_some(BEHIND, 4)] if outlined else []
        passes = ",".join([*_some(BEFORE, 5), _round(), *_some(BEFORE, 5), FORM, *behind])
        found = fuseline.compile(model, passes=passes, threads=2, cache=False).run(feeds)
        for name, expected in wanted.items():
            agree(found[name], expected, f"{name} behind {passes}")


def test_outlining_puts_inside_what_no_pass_put_there():
    text = """func.func @main(%x: tensor<9x7xf32>) -> tensor<9x7xf32> {
      %two = arith.constant 2.0 : f32
      %e = tensor.empty() : tensor<9x7xf32>
      %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
          iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<9x7xf32>) outs(%e : tensor<9x7xf32>) {
        ^bb0(%in: f32, %out: f32):
          %v = arith.mulf %in, %two : f32
          linalg.yield %v : f32
      } -> tensor<9x7xf32>
      return %y : tensor<9x7xf32>
    }"""
    found = run_passes(text, f"{FORM},outline-executables", verify_each=True)
    assert found == run_passes(text, f"{FORM},clone-cheap-producers,outline-executables")
