"""MLIR text as a program: which function it is, and what its arguments are called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp

import fuseline
from fuseline.errors import FuselineError
from fuseline.frontends.mlir.program import read_mlir
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.dim import lower_bound, symbol

F = "func.func {}@{}({}) {{ return }}\n"


def _read(text: str, folder: Path) -> tuple[ModuleOp, CompilerContext]:
    (folder / "p.mlir").write_text(text, encoding="utf-8")
    ctx = new_context()
    return read_mlir(folder / "p.mlir", ctx), ctx


def _arguments(module: ModuleOp) -> list[dict[str, Any]]:
    (main,) = (op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    assert main.arg_attrs is not None
    return [
        {
            key.removeprefix("fuseline."): [item.data for item in value] if isinstance(value, ArrayAttr) else value.data  # pyright: ignore
            for key, value in attributes.data.items()  # pyright: ignore
        }
        for attributes in main.arg_attrs
    ]


@pytest.mark.parametrize(
    "text",
    [
        F.format("", "other", "") + F.format("private ", "main", ""),
        F.format("", "model", "") + F.format("private ", "helper", ""),
        F.format("public ", "model", ""),
        "func.func private @declared()\n" + F.format("", "model", ""),
    ],
)
def test_the_function_that_is_the_program(text: str, tmp_path: Path) -> None:
    module, _ = _read(text, tmp_path)
    assert "main" in [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (F.format("", "a", "") + F.format("", "b", ""), "public ones: a, b"),
        (F.format("private ", "a", ""), "public ones: none"),
        ("func.func private @main()", "public ones: none"),
    ],
)
def test_files_without_one(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(FuselineError, match=words) as caught:
        _read(text, tmp_path)
    assert (caught.value.code, caught.value.node) == ("E0305", str(tmp_path / "p.mlir"))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.mlir"):
        with pytest.raises(FuselineError, match="E0101"):
            read_mlir(path, new_context())
    (tmp_path / "b.mlir").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(FuselineError, match="E0101"):
        read_mlir(tmp_path / "b.mlir", new_context())
    with pytest.raises(FuselineError, match="E030[12]"):
        _read("func.func @main(", tmp_path)


def test_names_of_arguments_and_sizes(tmp_path: Path) -> None:
    text = "func.func @main(%x: tensor<?x3x?xf32>, %n: index, %arg5: f32, %1: tensor<2xf32>) { return }"
    module, ctx = _read(text, tmp_path)
    assert _arguments(module) == [
        {"name": "x", "dims": ["x_0", "3", "x_2"]},
        {"name": "n"},
        {"name": "arg5"},
        {"name": "arg3"},
    ]
    assert ctx.symbols == {"x_0": symbol("x_0"), "x_2": symbol("x_2"), "n": symbol("n", 0)}


def test_names_that_are_taken(tmp_path: Path) -> None:
    module, ctx = _read("func.func @main(%x: tensor<?xf32>, %x_0: index) { return }", tmp_path)
    assert _arguments(module)[0] == {"name": "x", "dims": ["x_0_"]}
    assert ctx.symbols.keys() == {"x_0_", "x_0"}


def test_names_that_are_given_stay(tmp_path: Path) -> None:
    text = 'func.func @main(%x: tensor<?xf32> {fuseline.name = "mine", fuseline.dims = ["rows"]}) { return }'
    module, _ = _read(text, tmp_path)
    assert _arguments(module) == [{"name": "mine", "dims": ["rows"]}]


def test_a_size_that_only_the_host_tells_may_be_0(tmp_path: Path):
    text = """func.func private @host.NonZero.0(tensor<?x4xf32>) -> tensor<2x?xi64>
    func.func @main(%x: tensor<?x4xf32> {fuseline.dims = ["N", "4"], fuseline.name = "x"}) -> tensor<2x?xi64> {
      %0 = func.call @host.NonZero.0(%x) {fuseline.dims = [["2", "K"]]} : (tensor<?x4xf32>) -> tensor<2x?xi64>
      func.return %0 : tensor<2x?xi64>
    }"""
    (path := tmp_path / "x.mlir").write_text(text)
    read_mlir(path, ctx := new_context())
    assert lower_bound(ctx.symbols["K"]) == 0 and "N" not in ctx.symbols


def test_sizes_given_beside_a_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.mlir"
    path.write_text("func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }")
    with pytest.raises(FuselineError, match="--shape x_0") as caught:
        fuseline.compile(path, shapes={"x_0": 4})
    assert caught.value.code == "E0501"
