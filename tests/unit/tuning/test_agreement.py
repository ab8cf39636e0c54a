"""Whether a trial's outputs are right: by type, by how much the model rounds, at other sizes, NaN in its places."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.tuning.agreement import Agreement, other_sizes
from fuseline.verify.inputs import Hints
from fuseline.verify.model_feeds import default_sizes
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

MODEL = "(float[b, 8] x) => (y, z, s) { a = Exp(x) y = Tanh(a) z = Cast<to = 7>(a) s = Shape(x) }"


class Changed:
    """A program whose outputs pass through `change`."""

    def __init__(self, program: Any, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> None:
        self.inputs, self.outputs, self.symbols = program.inputs, program.outputs, program.symbols
        self._program, self._change = program, change

    def run(self, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
        return self._change(dict(self._program.run(feeds)))


@pytest.fixture(scope="module")
def program() -> Any:
    return fuseline.compile(onnx_model(MODEL), target="interpreter")


def _never() -> Any:
    raise AssertionError("what is within the tolerance needs no second opinion")


def _agreement(program: Any, apart: Callable[[], Any] = _never, numerics: str = "default") -> Agreement:
    return Agreement(program, Hints(), int(RNG.integers(1000)), apart=apart, numerics=numerics)


def _scaled(factor: float, output: str = "y") -> Callable[[dict[str, Any]], Mapping[str, Any]]:
    return lambda outputs: {**outputs, output: (outputs[output] * factor).astype(outputs[output].dtype)}


def _shifted(by: int) -> Callable[[dict[str, Any]], Mapping[str, Any]]:
    def change(outputs: dict[str, Any]) -> Mapping[str, Any]:
        z = outputs["z"].copy()
        z.flat[0] += by
        return {**outputs, "z": z}

    return change


def _code(agreement: Agreement, program: Any) -> str:
    with pytest.raises(FuselineError) as caught:
        agreement.require(program)
    return f"{caught.value.code} {caught.value.node}"


def test_what_rounds_a_little_agrees(program: Any):
    agreement = _agreement(program)
    agreement.require(program)
    agreement.require(Changed(program, _scaled(1 + 5e-5)))


def test_another_number_is_wrong_by_name(program: Any):
    agreement = _agreement(program, apart=lambda: program)
    assert _code(agreement, Changed(program, _scaled(1.001))) == "E0601 y"
    assert _code(agreement, Changed(program, _shifted(1))) == "E0601 z"
    assert _code(agreement, Changed(program, lambda outputs: {"y": outputs["y"]})).startswith("E0601")
    assert _code(agreement, Changed(program, lambda o: {**o, "y": o["y"].astype("f8")})) == "E0601 y"


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_no_number_must_be_none_in_both(program: Any, value: float):
    def spoilt(outputs: dict[str, Any]) -> Mapping[str, Any]:
        y = outputs["y"].copy()
        y.flat[1] = value
        return {**outputs, "y": y}

    agreement = _agreement(program, apart=lambda: program)
    assert _code(agreement, Changed(program, spoilt)) == "E0601 y"
    both = _agreement(Changed(program, spoilt))
    both.require(Changed(program, spoilt))
    assert _code(both, program) == "E0601 y"


def test_a_model_that_rounds_may_differ_as_far_as_its_own_dispatches_do(program: Any):
    """Four times the distance of the program with one op per dispatch, whole numbers too; no further."""
    agreement = _agreement(program, apart=lambda: Changed(program, _scaled(1.001)))
    agreement.require(Changed(program, _scaled(1.0035)))
    assert _code(agreement, Changed(program, _scaled(1.005))) == "E0601 y"
    rounding = _agreement(program, apart=lambda: Changed(program, _shifted(1)))
    with pytest.raises(FuselineError):
        rounding.require(Changed(program, _shifted(1)))  # 1 of 8 elements is more than any rounding excuses
    assert _code(agreement, Changed(program, _shifted(1))) == "E0601 z"


def test_no_spread_excuses_everything(program: Any):
    agreement = _agreement(program, apart=lambda: Changed(program, _scaled(2.0)))
    assert _code(agreement, Changed(program, _scaled(1.06))) == "E0601 y"


def _large(text: str) -> Any:
    return fuseline.compile(onnx_model(text), target="interpreter")


def test_whole_numbers_that_hang_on_rounding_may_differ_unless_numerics_are_strict():
    program = _large("(float[64, 64] x) => (z) { z = Cast<to = 7>(x) }")
    apart = Changed(program, _shifted(1))
    _agreement(program, apart=lambda: apart).require(Changed(program, _shifted(-1)))
    assert _code(_agreement(program, numerics="strict"), apart) == "E0601 z"
    assert _code(_agreement(program, apart=lambda: program), apart) == "E0601 z"


@pytest.mark.parametrize(("number", "dtype"), [(10, np.float16), (16, ml_dtypes.bfloat16)])
def test_halves_have_a_tolerance_of_their_own(number: int, dtype: Any):
    program = _large(f"(float[4, 8] x) => (y) {{ y = Cast<to = {number}>(x) }}")
    eps = float(ml_dtypes.finfo(dtype).eps)
    agreement = _agreement(program, apart=lambda: program)
    agreement.require(Changed(program, lambda o: {"y": (o["y"].astype("f4") * (1 + eps)).astype(dtype)}))
    bad = Changed(program, lambda o: {"y": (o["y"].astype("f4") * (1 + 10 * eps)).astype(dtype)})
    assert _code(agreement, bad) == "E0601 y"


def test_outputs_that_depend_on_nothing_prove_nothing():
    with pytest.raises(FuselineError, match="E0602"):
        _agreement(_large("(float[4] x) => (s) { s = Shape(x) }"))


def test_symbolic_sizes_are_tried_at_another_size(program: Any):
    agreement = _agreement(program)
    shapes = [feeds["x"].shape for feeds in agreement.feeds]
    assert shapes == [(1, 8), (1, 8), (3, 8)]
    only_large = Changed(program, lambda o: _scaled(1.1)(o) if len(o["y"]) > 1 else o)
    assert _code(_agreement(program, apart=lambda: program), only_large) == "E0601 y"


def test_other_sizes_keep_to_bounds():
    text = "(float[b, s] x, float[s, t] y) => (z) { z = MatMul(x, y) }"
    program = fuseline.compile(onnx_model(text), target="interpreter", shapes={"s": (2, 6), "t": (20, 40)})
    assert default_sizes(program) == {"b": 1, "s": 2, "t": 20}
    assert other_sizes(program, Hints()) == {"b": 3, "s": 5, "t": 40}
    assert other_sizes(program, Hints(sizes={"s": 3}))["s"] == 6


def test_sizes_that_the_model_does_not_take_are_not_tried(tmp_path: Path):
    program = fuseline.compile(onnx_model("(float[n, 4] x) => (y) { y = Exp(x) }"), target="interpreter")

    class Fixed(Changed):
        def run(self, feeds: Mapping[str, Any]) -> Mapping[str, Any]:
            if len(feeds["x"]) != 1:
                raise FuselineError("E0203", "only one")
            return super().run(feeds)

    assert len(_agreement(Fixed(program, dict)).feeds) == 2
