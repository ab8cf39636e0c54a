"""What no process can address is refused, by the name that the user knows."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import UnknownLoc

from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module, print_module
from fuseline.passes.cleanup.require_addressable_sizes import LARGEST, RequireAddressableSizesPass


def _check(text: str) -> None:
    ctx = new_context()
    module = parse_module(text, ctx)
    before = print_module(module)
    RequireAddressableSizesPass().apply(ctx, module)
    assert print_module(module) == before


def _made(shape: str) -> str:
    dynamic = ", ".join(["%n"] * shape.count("?"))
    return f"""func.func @main(%n: index) {{
      %e = tensor.empty({dynamic}) : tensor<{shape}xi8> loc("far")
      return
    }}"""


@pytest.mark.parametrize("shape", [f"{LARGEST - 1}", f"{LARGEST // 2}x1", f"?x{LARGEST - 1}", "0", "?x?", "3x0x7"])
def test_what_could_be_addressed_is_let_through(shape: str):
    _check(_made(shape))


@pytest.mark.parametrize(
    "shape", [f"{LARGEST}", f"{LARGEST // 2}x2", f"?x{LARGEST}", f"0x{LARGEST}", "2147483648x2147483648"]
)
def test_what_could_not_is_refused(shape: str):
    with pytest.raises(FuselineError, match=f"a tensor of {shape.replace('?', '[?]')} elements") as error:
        _check(_made(shape))
    assert (error.value.code, error.value.node) == ("E0405", "far")


FAR = f"tensor<{LARGEST}xf32>"


@pytest.mark.parametrize(
    ("text", "node"),
    [
        (f'func.func @main(%x: {FAR} {{fuseline.name = "image"}}) {{ return }}', "image"),
        (f'func.func @main(%y: f32, %x: {FAR}) {{ return }} loc("there")', "there"),
        (f'func.func @main(%y: f32, %x: {FAR} {{fuseline.name = 7 : i64}}) {{ return }} loc("there")', "there"),
    ],
    ids=["named feed", "place", "a name that is no text"],
)
def test_an_argument_is_called_as_the_feed_is(text: str, node: str):
    with pytest.raises(FuselineError) as error:
        _check(text)
    assert (error.value.code, error.value.node) == ("E0405", node)


def test_what_comes_from_nowhere_is_called_as_its_value_is():
    ctx = new_context()
    module = parse_module(f"func.func @main(%x: {FAR}) {{ return }}", ctx)
    for op in module.walk():
        op.location = UnknownLoc()
    with pytest.raises(FuselineError) as error:
        RequireAddressableSizesPass().apply(ctx, module)
    assert error.value.node == "x"


def test_a_value_inside_of_a_region_is_looked_at():
    text = f"""func.func @main(%x: tensor<2xf32>, %n: index) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      scf.for %i = %c0 to %n step %c1 {{
        %e = tensor.empty() : {FAR} loc("inside")
      }}
      return
    }}"""
    with pytest.raises(FuselineError) as error:
        _check(text)
    assert error.value.node == "inside"
