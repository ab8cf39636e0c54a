"""Parameters: constants that the text names, `#flow.parameter.named<"model"::"fc.weight">`, as they are told.

    m.mlir, and m.safetensors beside it     the tensor "fc.weight" of that file, mapped: a constant like any other
    m.mlir alone                            an input called "fc.weight": whoever runs the program gives it

The archive is what `--emit flow` writes, and what `iree-run-module --parameters=model=m.safetensors` is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

from xdsl.dialects.builtin import ArrayAttr, DenseResourceAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import Rewriter

from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir import util_dialect
from fuseline.ir.context import CompilerContext
from fuseline.ir.flow_constants import ConstantOp
from fuseline.ir.flow_parameters import NamedParameterAttr
from fuseline.ir.tensor_file import TensorFile
from fuseline.ir.weights_file import SUFFIX, View, matching

Asked: TypeAlias = tuple[Operation, NamedParameterAttr]
"""A constant or a global, and the parameter that it is."""


def take_parameters_in(module: ModuleOp, main: FuncOp, path: Path, ctx: CompilerContext) -> None:
    """Have no parameters in `module`, read from `path`, whose program is `main`, all in one function.

    Raises FuselineError: E0306 for one that is no tensor of known sizes, E0308 for an archive that lacks one, or has it
    with other sizes or another type.
    """
    named = [(op, op.value) for op in module.walk() if isinstance(op, ConstantOp | util_dialect.GlobalOp)]
    asked = [(op, value) for op, value in named if isinstance(value, NamedParameterAttr)]
    archive = path.with_suffix(SUFFIX)
    if asked and archive.is_file():
        _read(asked, TensorFile(archive), ctx)
    else:
        _ask_for(module, asked, main, ctx)


def _read(asked: Sequence[Asked], file: TensorFile, ctx: CompilerContext) -> None:
    """Constants of an archive."""
    for op, value in asked:
        constant = DenseResourceAttr(StringAttr(_name(value, ctx)), _type(op, value))
        ctx.resources[constant.resource_handle.data] = matching(file, constant, View(value.key.data, ()))
        op.properties["value"] = constant


def _name(value: NamedParameterAttr, ctx: CompilerContext) -> str:
    """What a parameter is called among the resources: by its key, and its scope where another one is called so."""
    return value.key.data if value.key.data not in ctx.resources else f"{value.scope.data}::{value.key.data}"


def _type(op: Operation, value: NamedParameterAttr) -> TensorType:
    if not isinstance(value.type, TensorType) or not value.type.has_static_shape():
        raise unsupported(op, f"a parameter of type {value.type}", "parameters are tensors of known sizes")
    return value.type


def _ask_for(module: ModuleOp, asked: Sequence[Asked], main: FuncOp, ctx: CompilerContext) -> None:
    """Inputs in place of constants, one for each name."""
    inputs = dict[tuple[str, str], SSAValue]()
    for op, value in asked:
        if isinstance(op, util_dialect.GlobalOp):
            if op.mutable is not None:
                continue  # refused where it is loaded
            users = [load for load in module.walk() if _loads(load, op)]
        else:
            users = [op]
        for user in users:
            key = value.scope.data, value.key.data
            if key not in inputs:
                inputs[key] = _input(main, _type(op, value), _free(main, value, ctx), ctx)
            if inputs[key].type != user.results[0].type:
                raise unsupported(user, f"{value.key.data} is {inputs[key].type}, too", "give it one type")
            Rewriter.replace_op(user, [], [inputs[key]])


def _loads(op: Operation, source: util_dialect.GlobalOp) -> bool:
    return isinstance(op, util_dialect.GlobalLoadOp) and op.target.root_reference.data == source.sym_name.data


def _free(main: FuncOp, value: NamedParameterAttr, ctx: CompilerContext) -> str:
    """The key, and its scope where an input is called so."""
    taken = {ctx.spelled.get(argument) or argument.name_hint for argument in main.body.block.args}
    return value.key.data if value.key.data not in taken else f"{value.scope.data}::{value.key.data}"


def _input(main: FuncOp, type_: TensorType, name: str, ctx: CompilerContext) -> SSAValue:
    argument = main.body.block.insert_arg(type_, len(main.body.block.args))
    ctx.spelled[argument] = name
    if main.arg_attrs is not None:
        main.arg_attrs = ArrayAttr([*main.arg_attrs, DictionaryAttr({"fuseline.name": StringAttr(name)})])
    return argument
