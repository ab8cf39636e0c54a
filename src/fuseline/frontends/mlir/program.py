"""MLIR text as a program: the function called `main`, or the only public one, becomes `@main`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, BlockArgument

from fuseline.analysis.shapes import DIMS_ATTRIBUTE, argument_attribute
from fuseline.errors import FuselineError
from fuseline.frontends.mlir.affine import expand_affine
from fuseline.frontends.mlir.annotations import check_annotations
from fuseline.frontends.mlir.assertions import take_assertions_out, take_globals_in
from fuseline.frontends.mlir.attention import expand_attention
from fuseline.frontends.mlir.axes import check_axes
from fuseline.frontends.mlir.control import erase_uncalled, inline_calls, join_blocks
from fuseline.frontends.mlir.flow_tensors import expand_flow_tensors
from fuseline.frontends.mlir.joint_products import separate_products
from fuseline.frontends.mlir.linalg_ext import expand_linalg_ext
from fuseline.frontends.mlir.loops import straighten
from fuseline.frontends.mlir.mixed_results import separate_results
from fuseline.frontends.mlir.narrow_integers import widen_narrow_integers
from fuseline.frontends.mlir.parameters import take_parameters_in
from fuseline.frontends.mlir.readable import keep_reads_inside
from fuseline.frontends.mlir.support import check_supported
from fuseline.frontends.mlir.wrappers import inline_foreign_regions, unwrap
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Symbol, symbol, symbols
from fuseline.ir.dim_json import from_name
from fuseline.ir.functions import functions
from fuseline.ir.repeat import MlirText
from fuseline.ir.stage_file import read_stage
from fuseline.ir.text import parse_module

_BYTECODE = b"ML\xefR"
_HLO = ("stablehlo.", "chlo.", "mhlo.", "sdy.")


def read_mlir(path: Path, ctx: CompilerContext) -> ModuleOp:
    """The program in a file of MLIR text. Its arguments keep their names as feeds; unknown extents become symbols
    `<name>_<axis>`.

    Raises FuselineError: E0101 unreadable, E0301 and E0302 not valid IR, E0305 no function that could be the program,
    E0306 what has no form as tensor ops, E0308 weights beside the text that are not there or others, E0309 a text of
    another format.
    """
    try:
        data = path.read_bytes()
        if data.startswith(_BYTECODE):
            hint = "print it as text: exported.mlir_module(), iree-opt or mlir-opt do"
            raise FuselineError("E0101", "the file is MLIR bytecode, which is not read", node=str(path), hint=hint)
        text = data.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FuselineError("E0101", f"the file cannot be read: {error}", node=str(path)) from error
    return _program(read_stage(text, ctx, path.name, path.parent), path, ctx)


def read_text(source: MlirText, ctx: CompilerContext) -> ModuleOp:
    """The program in a text at hand, which needs no file beside it. Raises FuselineError as `read_mlir` does."""
    return _program(parse_module(source.text, ctx, source.name), Path(source.name), ctx)


def _program(module: ModuleOp, path: Path, ctx: CompilerContext) -> ModuleOp:
    check_annotations(module, path.name)
    main = _entry(module, path)
    if _holds_stablehlo(module):
        from fuseline.frontends.stablehlo import read_stablehlo

        return read_stablehlo(module, main, ctx)
    main.sym_name = StringAttr("main")
    _take_apart(module, main, path, ctx)
    _learn_sizes(main, ctx)
    if main.arg_attrs is None:
        names = _names(main, ctx)
        main.arg_attrs = ArrayAttr(
            [_described(argument, name, ctx, names) for argument, name in zip(main.args, names, strict=True)]
        )
    return module


def _holds_stablehlo(module: ModuleOp) -> bool:
    """Whether some op is one of StableHLO or of the dialects beside it; their frontend is imported only then."""
    return any(op.name.startswith(_HLO) for op in module.walk())


def _take_apart(module: ModuleOp, main: FuncOp, path: Path, ctx: CompilerContext) -> None:
    """Leave of `main` one block of tensor ops. Raises FuselineError: E0306 for what has no such form."""
    join_blocks(main)
    inline_calls(module, main)
    erase_uncalled(module, main)
    inline_foreign_regions(module)
    take_parameters_in(module, main, path, ctx)
    unwrap(module)
    take_globals_in(module)
    take_assertions_out(main, ctx)
    expand_flow_tensors(module)
    expand_affine(module)
    expand_attention(module)
    expand_linalg_ext(module)
    straighten(module, main, ctx)
    widen_narrow_integers(main)
    main.update_function_type()
    separate_results(main)
    separate_products(main)
    check_supported(main)
    check_axes(main)
    keep_reads_inside(main)


def _entry(module: ModuleOp, path: Path) -> FuncOp:
    written = list(functions(module))
    public = [op for op in written if op.sym_visibility is None or op.sym_visibility.data == "public"]
    found = [op for op in written if op.sym_name.data == "main"] or public
    if len(found) != 1:
        names = ", ".join(op.sym_name.data for op in public) or "none"
        raise FuselineError(
            "E0305",
            f"which function is the program? public ones: {names}",
            node=str(path),
            hint="call one @main, or split the file",
        )
    return found[0]


def _names(main: FuncOp, ctx: CompilerContext) -> list[str]:
    """What the arguments are called, each differently: those without a name by their number."""
    given = [ctx.spelled.get(argument) or argument.name_hint for argument in main.args]
    names: list[str] = []
    for number, name in enumerate(given):
        free = f"arg{number}"
        while name is None and free in (*given, *names):
            free += "_"
        names.append(name or free)
    return names


def _learn_sizes(main: FuncOp, ctx: CompilerContext) -> None:
    """Sizes that only a call of the host tells may be 0, unless the text says more of them."""
    given = {item.name for index in range(len(main.args)) for item in _symbols_of(main, index)}
    calls = [op for op in main.walk() if isinstance(op, CallOp)]
    for entry in (entry for op in calls for entry in _entries(op.attributes.get(DIMS_ATTRIBUTE))):
        for name in (name.data for name in _entries(entry) if isinstance(name, StringAttr)):
            for item in symbols(from_name(name)):
                if item.name not in given:
                    ctx.symbols.setdefault(item.name, symbol(item.name, 0))


def _symbols_of(main: FuncOp, index: int) -> Iterator[Symbol]:
    """The sizes of an argument that have names."""
    for name in _entries(argument_attribute(main, index, DIMS_ATTRIBUTE)):
        yield from symbols(from_name(name.data) if isinstance(name, StringAttr) else 0)


def _entries(attribute: Attribute | None) -> Sequence[Attribute]:
    return attribute.data if isinstance(attribute, ArrayAttr) else ()


def _described(argument: BlockArgument, name: str, ctx: CompilerContext, names: Collection[str]) -> DictionaryAttr:
    """What the program knows of an argument: its name as a feed, and names for its sizes that no argument has."""
    attributes: dict[str, Attribute] = {"fuseline.name": StringAttr(name)}
    if isinstance(argument.type, IndexType):
        ctx.symbols[name] = symbol(name, 0)
    if isinstance(argument.type, TensorType) and not argument.type.has_static_shape():
        free = [f"{name}_{axis}" for axis in range(len(argument.type.get_shape()))]
        named = [f"{text}_" if text in names else text for text in free]
        dims = [str(size) if size >= 0 else text for text, size in zip(named, argument.type.get_shape(), strict=True)]
        made_up = [dim for dim in dims if not dim.isdecimal()]
        ctx.symbols |= {dim: symbol(dim) for dim in made_up}
        ctx.made_up_sizes.update(made_up)
        attributes["fuseline.dims"] = ArrayAttr([StringAttr(dim) for dim in dims])
    return DictionaryAttr(attributes)
