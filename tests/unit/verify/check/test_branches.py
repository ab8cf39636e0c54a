"""Branches are checked on what the run of the program above gave them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fuseline.compile_options import CompileOptions
from fuseline.interop import onnx_host
from fuseline.verify.check.model import Asked, check_model
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

onnx_host.install()

TEXT = """(float[6, 8] x, bool c) => (y) {
    a = Exp(x)  p = MatMul(a, w)
    y = If(c) <
        then_branch = g () => (t) { l = Log(p)  t = MatMul(l, v) },
        else_branch = g () => (e) { r = Relu(p)  e = MatMul(r, u) }
    >
}"""


def _check(taken: bool) -> Any:
    shapes = {"w": (8, 8), "v": (8, 8), "u": (8, 5)}  # results of two shapes: only the run decides
    weights = {name: RNG.uniform(0.5, 1.5, shape).astype(np.float32) for name, shape in shapes.items()}
    feeds = {"x": RNG.standard_normal((6, 8)).astype(np.float32), "c": np.array(taken)}

    def make(session: Any, sizes: Any, number: int) -> dict[str, Any]:
        found = {spec.name: feeds.get(spec.name) for spec in session.inputs}
        return {name: -np.ones((6, 8), np.float32) if one is None else one for name, one in found.items()}

    asked = Asked(make, None, 1e-4)
    return check_model("m", onnx_model(TEXT, weights), CompileOptions(threads=1), asked)


def test_a_branch_that_ran_is_fed_what_it_was_given() -> None:
    check = _check(taken=True)
    assert not check.failed
    assert {row.program for row in check.dispatches} == {"main", "branch"}
    assert not check.not_finite  # Log of products of positive numbers; of values made up it would be NaN
    assert [note for note in check.notes if "branch" in note] == [
        "a branch that the run did not take was checked on generated values"
    ]


def test_a_branch_that_did_not_run_is_fed_generated_values() -> None:
    check = _check(taken=False)
    assert not [one for one in check.findings if one.code != "E0601"]
    assert [one.program for one in check.not_finite] == ["branch"]  # Log of -1
