"""Executables and their exports: made, printed, read back; refused where they are malformed."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr

from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.flow_executables import ExecutableEndOp, ExecutableExportOp, ExecutableOp
from fuseline.ir.text import parse_module, print_module

TEXT = """flow.executable private @code {
  flow.executable.export public @entry
  builtin.module {
    func.func @entry(%x: tensor<4xf32>) -> tensor<4xf32> {
      return %x : tensor<4xf32>
    }
  }
}"""


def _read(text: str) -> ModuleOp:
    return parse_module(text, new_context())


def _executable(module: ModuleOp) -> ExecutableOp:
    (found,) = [op for op in module.ops if isinstance(op, ExecutableOp)]
    return found


@pytest.mark.parametrize("generic", [False, True])
@pytest.mark.parametrize("inner", ["public @entry", "@entry"])
@pytest.mark.parametrize("outer", ["private @code", "@code attributes {kept = 3 : i64}", "public @code"])
def test_what_is_printed_is_read(outer: str, inner: str, generic: bool):
    module = _read(TEXT.replace("private @code", outer).replace("public @entry", inner))
    text = print_module(module, generic=generic)
    again = _read(text)
    assert again.is_structurally_equivalent(module) and print_module(again, generic=generic) == text
    assert generic or (outer in text and f"export {inner}\n" in text and "executable_end" not in text)


def test_an_executable_ends_with_its_own_op_once():
    executable = _executable(_read(TEXT))
    assert isinstance(executable.body.block.last_op, ExecutableEndOp)
    assert sum(isinstance(op, ExecutableEndOp) for op in executable.body.block.ops) == 1
    again = _executable(_read(print_module(ModuleOp([executable.clone()]), generic=True)))
    assert sum(isinstance(op, ExecutableEndOp) for op in again.body.block.ops) == 1


def test_it_is_made_of_operations():
    export, module = ExecutableExportOp("entry"), ModuleOp([])
    executable = ExecutableOp("code", [export, module])
    executable.verify()
    assert [type(op) for op in executable.body.block.ops] == [ExecutableExportOp, ModuleOp, ExecutableEndOp]
    assert executable.sym_visibility == StringAttr("private") and export.sym_visibility == StringAttr("public")
    assert export.function_ref.string_value() == "entry"
    plain = ExecutableOp("code", [], visibility=None)
    assert plain.sym_visibility is None and ExecutableExportOp("entry", None).sym_visibility is None


def test_attributes_of_an_export_are_kept():
    module = _read(TEXT.replace("@entry\n", "@entry {ordinal = 2 : index}\n"))
    (export,) = [op for op in module.walk() if isinstance(op, ExecutableExportOp)]
    assert export.attributes == {"ordinal": IntegerAttr.from_index_int_value(2)}
    assert _read(print_module(module)).is_structurally_equivalent(module)


OUTSIDE = TEXT.replace("return %x", "return %outside")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (TEXT.replace("private @code", "private"), "E0301"),
        (TEXT.replace("public @entry", "public"), "E0301"),
        (TEXT.rpartition("}")[0], "E0301"),
        (OUTSIDE, "E0301"),
        (f"func.func @main(%outside: tensor<4xf32>) {{\n{OUTSIDE}\nreturn\n}}", "E0302"),
    ],
    ids=["no name", "no export name", "no end", "no value", "a value from around it"],
)
def test_what_is_malformed_is_refused(text: str, code: str):
    with pytest.raises(FuselineError) as caught:
        _read(text)
    assert caught.value.code == code
