"""MLIR text as a program: the function called `main`, or the only public one, becomes `@main`."""

from __future__ import annotations

from pathlib import Path

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument

from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import symbol
from fuseline.ir.text import parse_module


def read_mlir(path: Path, ctx: CompilerContext) -> ModuleOp:
    """The program in a file of MLIR text. Its arguments keep their names as feeds; unknown extents become symbols `<name>_<axis>`.

    Raises FuselineError: E0101 unreadable, E0301 and E0302 not valid IR, E0305 no function that could be the program.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FuselineError("E0101", f"the file cannot be read: {error}", node=str(path)) from error
    module = parse_module(text, ctx, path.name)
    main = _entry(module, path)
    main.sym_name = StringAttr("main")
    if main.arg_attrs is None:
        main.arg_attrs = ArrayAttr([_described(argument, ctx) for argument in main.args])
    return module


def _entry(module: ModuleOp, path: Path) -> FuncOp:
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    public = [op for op in functions if op.sym_visibility is None or op.sym_visibility.data == "public"]
    found = [op for op in functions if op.sym_name.data == "main"] or public
    if len(found) != 1:
        names = ", ".join(op.sym_name.data for op in public) or "none"
        raise FuselineError("E0305", f"which function is the program? public ones: {names}", node=str(path), hint="call one @main, or split the file")
    return found[0]


def _described(argument: BlockArgument, ctx: CompilerContext) -> DictionaryAttr:
    name = argument.name_hint or f"arg{argument.index}"
    attributes: dict[str, Attribute] = {"fuseline.name": StringAttr(name)}
    if isinstance(argument.type, TensorType) and not argument.type.has_static_shape():
        dims = [str(size) if size >= 0 else f"{name}_{axis}" for axis, size in enumerate(argument.type.get_shape())]
        ctx.symbols |= {dim: symbol(dim) for dim in dims if not dim.isdecimal()}
        attributes["fuseline.dims"] = ArrayAttr([StringAttr(dim) for dim in dims])
    return DictionaryAttr(attributes)
