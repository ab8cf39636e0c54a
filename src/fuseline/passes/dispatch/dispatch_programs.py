"""Dispatches as programs of their own: what one computes, its weights included, as a module that compiles by itself.

flow.dispatch @d(%x, %w, %n)   =>   func.func @main(%x: tensor<?x8xf32>) { %w = arith.constant ..  %n = tensor.dim .. }
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, BinaryIO

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from fuseline.analysis.structured import is_constant
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE
from fuseline.dispatch.naming import shape_label, what_it_does
from fuseline.dispatch.view import BOUNDS_ATTRIBUTE, ROOT_ATTRIBUTE, DispatchView
from fuseline.ir.build import Emitter
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim
from fuseline.ir.dim_json import to_name
from fuseline.ir.flow import DispatchOp, ExecutableOp
from fuseline.ir.provenance import provenance
from fuseline.ir.text import print_module
from fuseline.passes.schedule.main_buffers import dtype_name, tensor_type

_NO_LIMIT = 1 << 62
INDEX = "index.json"


@dataclass(frozen=True)
class DispatchProgram:
    """One dispatch: the name of its file, what is known of it as JSON, and its text, made when it is asked for."""

    name: str
    about: dict[str, Any]
    text: Callable[[], str]


def dispatch_programs(module: ModuleOp, ctx: CompilerContext) -> Iterator[DispatchProgram]:
    """Every launch of a module whose dispatches are outlined and not yet shared, in order: as it stands in the program,
    so once for a launch in a loop."""
    entries = {op.sym_name.data: entry_of(op) for op in module.ops if isinstance(op, ExecutableOp)}
    calls = [op for function in module.ops if isinstance(function, FuncOp) for op in function.walk() if _is_call(op)]
    for number, call in enumerate(calls):
        assert isinstance(call, DispatchOp)
        yield _program(call, entries[call.executable], number, ctx)


def files_of(programs: Sequence[DispatchProgram]) -> dict[str, Callable[[BinaryIO], object]]:
    """What writes each file of a folder of dispatches, and `index.json` which lists them, by name."""
    index = json.dumps({"version": 1, "dispatches": [program.about for program in programs]}, indent=2) + "\n"
    texts = {program.name: partial(_write, program.text) for program in programs}
    return {**texts, INDEX: partial(_write, lambda: index)}


def _write(text: Callable[[], str], file: BinaryIO) -> None:
    file.write(text().encode())


def _is_call(op: Any) -> bool:
    return isinstance(op, DispatchOp)


def _program(call: DispatchOp, entry: FuncOp, number: int, ctx: CompilerContext) -> DispatchProgram:
    view = DispatchView(entry)
    what = what_it_does(view.members, view.root)
    outputs = [_described(f"output{i}", value, view) for i, value in enumerate(view.results)]
    label = f"_{shape_label(view.results[0], view.shapes)}" if outputs else ""
    name = f"{number:03d}_{what}{label}.mlir"
    main = standalone(call, entry)
    given = main.body.block.args
    names = _argument_names(main)
    own = DispatchView(main)
    about = {
        "dispatch": f"{number:03d}_{what}",
        "file": name,
        "executable": call.executable,
        "nodes": list(provenance(call)),
        "inputs": [_described(text, value, own) for text, value in zip(names, given, strict=True)],
        "outputs": outputs,
    }
    module = ModuleOp([main])
    return DispatchProgram(name, about, lambda: print_module(module, ctx, embed_limit=_NO_LIMIT))


def standalone(call: DispatchOp, entry: FuncOp) -> FuncOp:
    """`@main` with the body of `entry`: constants of the call are its own, a size that a tensor argument has is read
    there, and the other arguments are feeds called as the sizes are, or `input0`, `input1`, .. by position."""
    main = entry.clone()
    main.sym_name = StringAttr("main")
    main.attributes.pop(LOOPS_ATTRIBUTE, None)
    for op in main.walk():
        op.attributes.pop(ROOT_ATTRIBUTE, None)
    block = main.body.block
    emitter = Emitter.before(block.first_op) if block.first_op is not None else Emitter.at_end(block)
    dropped = [i for i, value in enumerate(call.arguments) if is_constant(value)]
    for i in dropped:
        constant = call.arguments[i].owner
        assert isinstance(constant, ConstantOp)
        block.args[i].replace_all_uses_with(emitter.add(constant.clone()).results[0])
    sizes = _read_sizes(main, emitter, dropped)
    _keep(main, [i for i in range(len(block.args)) if i not in {*dropped, *sizes}])
    return main


def _read_sizes(main: FuncOp, emitter: Emitter, dropped: list[int]) -> list[int]:
    """Replace size arguments by `tensor.dim` of an argument that has them; which ones."""
    view, read = DispatchView(main), list[int]()
    dim_of: dict[Dim, tuple[SSAValue, int]] = {}
    for value in view.tensors:
        if value.index not in dropped:
            for axis, size in enumerate(view.shapes.dims(value)):
                dim_of.setdefault(size, (value, axis))
    for value in view.sizes:
        found = dim_of.get(view.shapes.index(value))
        if found is not None:
            value.replace_all_uses_with(emitter.dim(*found))
            read.append(value.index)
    return read


def _keep(main: FuncOp, kept: list[int]) -> None:
    """Leave of the arguments those in `kept`, each with a name."""
    block = main.body.block
    given = main.arg_attrs.data if main.arg_attrs is not None else [DictionaryAttr({}) for _ in block.args]
    main.arg_attrs = ArrayAttr([_named(given[i], f"input{place}") for place, i in enumerate(kept)])
    for argument in reversed([argument for i, argument in enumerate(block.args) if i not in kept]):
        block.erase_arg(argument)
    main.update_function_type()
    results = range(len(main.function_type.outputs))
    main.res_attrs = ArrayAttr([DictionaryAttr({"fuseline.name": StringAttr(f"output{i}")}) for i in results])


def _named(given: DictionaryAttr, name: str) -> DictionaryAttr:
    left = {key: value for key, value in given.data.items() if key != BOUNDS_ATTRIBUTE}
    return DictionaryAttr({"fuseline.name": StringAttr(name), **left})


def _argument_names(main: FuncOp) -> list[str]:
    entries = main.arg_attrs.data if main.arg_attrs is not None else ()
    found = [entry.data["fuseline.name"] for entry in entries]
    return [name.data for name in found if isinstance(name, StringAttr)]


def _described(name: str, value: SSAValue, view: DispatchView) -> dict[str, Any]:
    if isinstance(value.type, IndexType):
        return {"name": name, "dtype": "index", "shape": []}
    shape = [size if isinstance(size, int) else to_name(size) for size in view.shapes.dims(value)]
    return {"name": name, "dtype": dtype_name(tensor_type(value)), "shape": shape}
