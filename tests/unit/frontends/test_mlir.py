"""MLIR text becomes a program: which function, which feeds, which sizes."""

from __future__ import annotations

from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp

from fuseline.errors import FuselineError
from fuseline.frontends.mlir import read_mlir
from fuseline.ir.context import CompilerContext, new_context


def _read(text: str, tmp_path: Path) -> tuple[FuncOp, CompilerContext]:
    (tmp_path / "p.mlir").write_text(text)
    ctx = new_context()
    module = read_mlir(tmp_path / "p.mlir", ctx)
    return next(op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main"), ctx


IDENTITY = (
    "func.func {}@{}(%x: tensor<?x4xf32>, %y: tensor<2xf32>) -> tensor<?x4xf32> {{\n  return %x : tensor<?x4xf32>\n}}\n"
)


def test_the_only_function_becomes_main_and_its_arguments_keep_their_names(tmp_path: Path):
    main, ctx = _read(IDENTITY.format("", "step"), tmp_path)
    assert main.arg_attrs is not None
    first, second = (attributes.data for attributes in main.arg_attrs)
    assert str(first["fuseline.name"]) == '"x"'
    assert str(first["fuseline.dims"]) == '["x_0", "4"]'
    assert "fuseline.dims" not in second
    assert set(ctx.symbols) == {"x_0"}


ANNOTATED = (
    "func.func @main(%x: tensor<?x4xf32> {ARGUMENT}) -> (tensor<?x4xf32> {RESULT}) { return %x : tensor<?x4xf32> }"
)


@pytest.mark.parametrize("dims", ['["n"]', '["n", 4]', '"n"', "3", '["[\\22sum\\22]", "4"]', '["[1", "4"]', "[]"])
def test_names_of_sizes_are_one_text_per_dimension(dims: str, tmp_path: Path):
    with pytest.raises(FuselineError, match="E0302.*@main.*fuseline.dims must be the size of each dimension"):
        _read(
            ANNOTATED.replace("ARGUMENT", f"fuseline.dims = {dims}").replace("RESULT", 'fuseline.name = "y"'), tmp_path
        )


def test_names_are_texts(tmp_path: Path):
    with pytest.raises(FuselineError, match="E0302.*@main.*fuseline.name must be a text"):
        _read(
            ANNOTATED.replace("ARGUMENT", 'fuseline.dims = ["n", "4"]').replace("RESULT", "fuseline.name = 3"), tmp_path
        )


@pytest.mark.parametrize(
    ("key", "value"), [("onnx_node", '"ab="'), ("onnx_node", '"a b c d"'), ("onnx_node", "3"), ("executor", "[]")]
)
def test_operators_of_the_host_are_base64(key: str, value: str, tmp_path: Path):
    declaration = f"func.func private @host(tensor<4xf32>) -> tensor<4xf32> attributes {{fuseline.{key} = {value}}}\n"
    with pytest.raises(FuselineError, match=f"E0302.*@host.*fuseline.{key} must be"):
        _read(declaration + IDENTITY.format("", "main"), tmp_path)


@pytest.mark.parametrize("value", ["3", "[]", '["int128"]', '["uint8", "uint8"]', "[3]"])
@pytest.mark.parametrize("side", ["operand", "result"])
def test_operators_of_the_host_say_the_type_of_every_value(side: str, value: str, tmp_path: Path):
    attributes = f"attributes {{fuseline.{side}_dtypes = {value}}}"
    declaration = f"func.func private @host(tensor<4xi8>) -> tensor<4xi8> {attributes}\n"
    with pytest.raises(FuselineError, match=f"E0302.*@host.*fuseline.{side}_dtypes must be"):
        _read(declaration + IDENTITY.format("", "main"), tmp_path)


BETWEEN = """func.func @main(%x: tensor<?x5xf32>, %y: tensor<2x5xf32>) -> tensor<2x5xf32> {
  %one = arith.constant 1 : index
  %two = arith.addi %one, %one : index
  LINE
  return %y : tensor<2x5xf32>
}
"""


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "%e = tensor.extract_slice %x[] [2, 5] [1, 1] : tensor<?x5xf32> to tensor<2x5xf32>",
            "tensor.extract_slice: 0 offsets for 2 dimensions",
        ),
        (
            "%e = tensor.extract_slice %x[0, 0] [2] [1, 1] : tensor<?x5xf32> to tensor<2x5xf32>",
            "tensor.extract_slice: 1 sizes for 2 dimensions",
        ),
        (
            "%e = tensor.insert_slice %y into %x[0, 0] [2, 5] [1] : tensor<2x5xf32> into tensor<?x5xf32>",
            "insert_slice: 1 strides for 2 dimensions",
        ),
        ("%e = tensor.dim %x, %two : tensor<?x5xf32>", "tensor.dim: dimension 2 of 2"),
    ],
)
def test_dimensions_that_a_tensor_does_not_have(line: str, message: str, tmp_path: Path):
    with pytest.raises(FuselineError, match=f"E0302.*p.mlir:4.*{message}"):
        _read(BETWEEN.replace("LINE", line), tmp_path)


@pytest.mark.parametrize("dims", ["[]", '["n"]', "3", '[["n"]]'])
def test_names_of_sizes_are_one_list_per_result(dims: str, tmp_path: Path):
    line = f'%y = "tensor.empty"(%n) {{fuseline.dims = {dims}}} : (index) -> tensor<?x4xf32>'
    text = f"func.func @main(%n: index) -> tensor<?x4xf32> {{\n  {line}\n  return %y : tensor<?x4xf32>\n}}"
    with pytest.raises(FuselineError, match="E0302.*tensor.empty.*fuseline.dims must be"):
        _read(text, tmp_path)


@pytest.mark.parametrize("others", [IDENTITY.format("", "helper"), IDENTITY.format("private ", "helper")])
def test_a_function_called_main_wins(others: str, tmp_path: Path):
    main, _ = _read(others + IDENTITY.format("", "main"), tmp_path)
    assert main.sym_name.data == "main"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (IDENTITY.format("", "a") + IDENTITY.format("", "b"), "E0305"),
        (IDENTITY.format("private ", "a"), "E0305"),
        ("builtin.module {}", "E0305"),
        ("func.func @main(", "E0301"),
    ],
)
def test_refusals(text: str, code: str, tmp_path: Path):
    with pytest.raises(FuselineError) as caught:
        _read(text, tmp_path)
    assert caught.value.code == code


def test_a_file_that_is_no_text(tmp_path: Path):
    (tmp_path / "p.mlir").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FuselineError, match="E0101"):
        read_mlir(tmp_path / "p.mlir", new_context())
