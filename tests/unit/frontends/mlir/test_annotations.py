"""Our own attributes in MLIR text: as the compiler writes them, or refused."""

from __future__ import annotations

import pytest

from fuseline.errors import FuselineError
from fuseline.frontends.mlir.annotations import check_annotations
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module


def _check(argument: str = "", result: str = "", declared: str = "", call: str = "") -> None:
    text = f"""
func.func private @host(tensor<?x3xf32>) -> tensor<?x3xf32> attributes {{{declared}}}
func.func @main(%x: tensor<?x3xf32> {{{argument}}}) -> (tensor<?x3xf32> {{{result}}}) {{
  %r = func.call @host(%x) {{{call}}} : (tensor<?x3xf32>) -> tensor<?x3xf32>
  return %r : tensor<?x3xf32>
}}"""
    check_annotations(parse_module(text, new_context()), "p.mlir")


def test_what_the_compiler_writes() -> None:
    _check(
        argument='fuseline.name = "x", fuseline.dtype = "uint8", fuseline.dims = ["n", "3"]',
        result='fuseline.name = "y"',
        declared='fuseline.onnx_node = "aGVsbG8=", fuseline.executor = "onnx", fuseline.operand_code = ["= 0"]',
        call='fuseline.dims = [["n", "3"]]',
    )
    _check()


@pytest.mark.parametrize("sizes", ['["n"]', '["n", "3", "4"]', '"n"', '["n", 3]', "[]", '["n", "[1"]'])
def test_sizes_that_are_none_of_this_tensor(sizes: str) -> None:
    for given in ({"argument": f"fuseline.dims = {sizes}"}, {"call": f"fuseline.dims = [{sizes}]"}):
        with pytest.raises(FuselineError, match="fuseline.dims must be the size of each dimension") as caught:
            _check(**given)
        assert caught.value.code == "E0302" and str(caught.value.node).startswith("p.mlir: ")


@pytest.mark.parametrize("sizes", ['"n"', "[]", '[["n", "3"], ["n", "3"]]'])
def test_an_op_has_sizes_for_every_result(sizes: str) -> None:
    with pytest.raises(FuselineError, match="a list for every result|the size of each dimension"):
        _check(call=f"fuseline.dims = {sizes}")


@pytest.mark.parametrize("key", ["name", "dtype", "type"])
@pytest.mark.parametrize("position", ["argument", "result"])
def test_a_name_that_is_no_text(key: str, position: str) -> None:
    with pytest.raises(FuselineError, match=f"fuseline.{key} must be a text") as caught:
        _check(**{position: f"fuseline.{key} = 3 : i64"})
    assert (caught.value.code, caught.value.node) == ("E0302", "p.mlir: @main")


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ('fuseline.onnx_node = "a"', "must be base64"),
        ('fuseline.onnx_node = "ä"', "must be base64"),
        ("fuseline.onnx_node = 3 : i64", "fuseline.onnx_node must be a text"),
        ("fuseline.executor = 3 : i64", "fuseline.executor must be a text"),
        ('fuseline.operand_code = "constant i8 3"', "fuseline.operand_code must be code for the operands"),
        ('fuseline.operand_code = ["element i8 0 0", "= int8 [] 0"]', "no element 0 of operand 0"),
    ],
)
def test_an_operator_of_the_host_that_cannot_be_read(declared: str, message: str) -> None:
    with pytest.raises(FuselineError, match=message) as caught:
        _check(declared=declared)
    assert (caught.value.code, caught.value.node) == ("E0302", "p.mlir: @host")
