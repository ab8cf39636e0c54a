"""Executables and dispatches made of their parts are those that their text gives."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import IndexType, ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from fuseline.ir.context import new_context
from fuseline.ir.fast.create_flow import create_dispatch, create_executable
from fuseline.ir.flow import DispatchOp, ExecutableEndOp, ExecutableExportOp, ExecutableOp
from fuseline.ir.provenance import location_of
from fuseline.ir.text import parse_module, print_module

VECTOR = TensorType(f32, [4])


def _entry(name: str) -> FuncOp:
    block = Block(arg_types=[VECTOR])
    block.add_op(ReturnOp(block.args[0]))
    return FuncOp(name, ([VECTOR], [VECTOR]), Region(block))


@pytest.mark.parametrize("name", ["main_dispatch_0", "a b"])
def test_an_executable_holds_its_entry(name: str):
    entry = _entry(name)
    made = create_executable(name, entry, location_of(["node"]))
    made.verify()
    export, inner, end = made.body.block.ops
    assert isinstance(export, ExecutableExportOp) and isinstance(inner, ModuleOp) and isinstance(end, ExecutableEndOp)
    assert list(inner.ops) == [entry] and made.location == location_of(["node"])
    module = ModuleOp([made])
    text = print_module(module)
    assert parse_module(text, new_context()).is_structurally_equivalent(module)
    (read,) = parse_module(text, new_context()).ops
    assert isinstance(read, ExecutableOp) and read.sym_name.data == name
    assert read.properties == made.properties and next(iter(read.body.block.ops)).properties == export.properties


@pytest.mark.parametrize(("arguments", "argument_dims", "result_dims"), [(1, 0, 0), (2, 1, 0), (1, 2, 1), (0, 0, 1)])
def test_a_dispatch_knows_its_parts(arguments: int, argument_dims: int, result_dims: int):
    block = Block(arg_types=[VECTOR] * arguments + [IndexType()] * (argument_dims + result_dims))
    parts = (
        block.args[:arguments],
        block.args[arguments : arguments + argument_dims],
        block.args[arguments + argument_dims :],
    )
    made = create_dispatch("exe", "entry", parts[0], [VECTOR, VECTOR], parts[1], parts[2])
    assert isinstance(made, DispatchOp)
    assert (list(made.arguments), list(made.argument_dims), list(made.result_dims)) == tuple(map(list, parts))
    assert [result.type for result in made.results] == [VECTOR, VECTOR]
    assert "@exe::@entry" in str(made.properties["entry_points"])


def test_a_dispatch_reads_back():
    block = Block(arg_types=[VECTOR])
    made = create_dispatch("exe", "entry", block.args, [VECTOR], [], [])
    block.add_op(made)
    block.add_op(ReturnOp(made.results[0]))
    executable = create_executable("exe", _entry("entry"), location_of(["n"]))
    module = ModuleOp([executable, FuncOp("main", ([VECTOR], [VECTOR]), Region(block))])
    assert parse_module(print_module(module), new_context()).is_structurally_equivalent(module)
