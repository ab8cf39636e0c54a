"""What stands around values: barriers, constants that stay, globals, regions of another compiler."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr, f32
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.frontends.mlir.wrappers import constant_op, inline_foreign_regions, unsupported, unwrap
from tests.unit.frontends.mlir.steps import after, computed, function, main_of, normal, ops_after, refused

V = "tensor<2xf32>"
NAMES = ["util.global", "util.global.address"]


def _unwrap(module: ModuleOp, main: FuncOp) -> None:
    unwrap(module)


def _inline(module: ModuleOp, main: FuncOp) -> None:
    inline_foreign_regions(module)


@pytest.mark.parametrize(
    "line", [f"%r = util.optimization_barrier %x : {V}", f"%r = iree_tensor_ext.compute_barrier.start %x : {V} -> {V}"]
)
def test_barriers_let_through(line: str) -> None:
    text = function(f"%x: {V}", line, [V])
    assert ops_after(text, _unwrap) == ["func.return"]
    x = normal(2)
    np.testing.assert_array_equal(computed(text, _unwrap, x)[0], x)


@pytest.mark.parametrize(
    "lines",
    [
        f"%r = util.unfoldable_constant dense<[1.5, 2.5]> : {V}",
        f"%r = util.global.load @g : {V}",
        f"%p = util.global.address @g : !util.ptr<{V}>\n%r = util.global.load.indirect %p : !util.ptr<{V}> -> {V}",
    ],
)
def test_constants_and_globals_are_constants(lines: str) -> None:
    text = f"util.global private @g = dense<[1.5, 2.5]> : {V}\n{function('', lines, [V])}"
    np.testing.assert_array_equal(computed(text, _unwrap)[0], [1.5, 2.5])
    assert not [op.name for op in after(text, _unwrap).walk() if op.name in NAMES]


@pytest.mark.parametrize(
    ("given", "line", "code", "words"),
    [
        ("", "%r = util.global.load @g", "E0302", "no global is called 'g'"),
        ("util.global private mutable @g = dense<1.0> : T", "%r = util.global.load @g", "E0306", "@g may change"),
        ("util.global private @g : T", "%r = util.global.load @g", "E0306", "@g has no value of type"),
        (
            "util.global private @g = dense<1.0> : tensor<3xf32>",
            "%r = util.global.load @g",
            "E0306",
            "no value of type",
        ),
        (
            "util.global private mutable @g = dense<1.0> : T",
            "util.global.store %x, @g",
            "E0306",
            "may not change a global",
        ),
    ],
)
def test_globals_that_are_refused(given: str, line: str, code: str, words: str) -> None:
    rest = f"\n%r = util.optimization_barrier %x : {V}" if "store" in line else ""
    text = given.replace("T", V) + "\n" + function(f"%x: {V}", f"{line} : {V}{rest}", [V])
    refused(text, _unwrap, words, code)


def test_values_that_are_no_constants() -> None:
    main = main_of(after(function("", ""), lambda *_: None))
    with pytest.raises(FuselineError, match="E0306 .*: func.func: string is no constant"):
        constant_op(main, StringAttr("x"), f32)
    with pytest.raises(FuselineError, match="nothing is no constant"):
        constant_op(main, None, f32)
    error = unsupported(main, "why", "hint")
    assert (error.code, error.message, error.hint) == ("E0306", "func.func: why", "hint")


REGION = f"""%r = flow.dispatch.region -> ({V}) {{
  %y = math.exp %x : {V}
  flow.return %y : {V}
}}"""


def test_regions_of_another_compiler_go() -> None:
    text = function(f"%x: {V}", REGION, [V])
    assert ops_after(text, _inline) == ["math.exp", "func.return"]
    x = normal(2)
    np.testing.assert_allclose(computed(text, _inline, x)[0], np.exp(x), rtol=1e-6)
