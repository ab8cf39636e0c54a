"""A module for IREE, compiled; where IREE fails on dispatches of it, which ones those are.

Most failures name a line, which is inside a region. A crash names none: then parts of the module are compiled, down to
the dispatches at fault. What has no region any more is IREE's own to form.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from fuseline.dispatch.view import DispatchView
from fuseline.ir.build import Emitter, shape_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.flow import DispatchOp, ExecutableOp
from fuseline.targets.iree.compiler import Compiled, Failure
from fuseline.targets.iree.flow import FlowProgram, flow_program
from fuseline.targets.iree.flow.regions import entry_of, region_lines

Compile = Callable[[str], Compiled]


@dataclass(frozen=True)
class Built:
    """`compiled` and the `program` that it was made from; `refused`: the executables that IREE does not compile, and
    what it says; `elsewhere`: what it says of anything else."""

    program: FlowProgram
    compiled: Compiled
    refused: Mapping[str, str] = field(default_factory=dict[str, str])
    elsewhere: Sequence[str] = ()

    @property
    def misplaced(self) -> Mapping[str, str]:
        """The executables that may be refused for what was changed of them for IREE, and what it says: all of them
        where it does not tell which one it is."""
        if self.refused:
            return {name: said for name, said in self.refused.items() if name in self.program.changed}
        return dict.fromkeys(sorted(self.program.changed), next(iter(self.elsewhere), ""))


def build(
    module: ModuleOp, ctx: CompilerContext, loose: Collection[str], apart: Collection[str], compile_: Compile
) -> Built:
    """Compile `module`, which stays as it is; executables in `loose` are not held together, those in `apart` stay
    as fusion formed them. What fails nowhere that IREE tells is looked for once all of them do."""
    program = flow_program(module, ctx, loose, apart, lanes=True)
    compiled = compile_(program.text)
    refused, elsewhere = _by_region(program, compiled.failures)
    if elsewhere and not refused and not program.changed:
        refused = _at_fault(module, ctx, [name for name in dict.fromkeys(program.regions)], compile_)
    return Built(program, compiled, refused, [] if refused else elsewhere)


def _by_region(program: FlowProgram, failures: Sequence[Failure]) -> tuple[dict[str, str], list[str]]:
    """What is said of each executable, the first time, and what is said of none."""
    places = list(zip(region_lines(program.text), program.regions, strict=True)) if failures else []
    refused: dict[str, str] = {}
    elsewhere: list[str] = []
    for line, message in failures:
        name = next((name for (first, last), name in places if first <= line <= last), None)
        if name is None:
            elsewhere.append(message)
        else:
            refused.setdefault(name, message)
    return refused, elsewhere


def _at_fault(module: ModuleOp, ctx: CompilerContext, names: Sequence[str], compile_: Compile) -> dict[str, str]:
    """Those of the executables `names` with which alone the compiler fails."""
    if not names:
        return {}
    excerpt = _only(module, names)
    program = flow_program(excerpt, ctx)
    failures = compile_(program.text).failures
    if not failures:
        return {}
    refused, elsewhere = _by_region(program, failures)
    if len(names) == 1:
        return {names[0]: failures[0].message}
    if refused and not elsewhere:
        return refused
    half = len(names) // 2
    return {**_at_fault(module, ctx, names[:half], compile_), **_at_fault(module, ctx, names[half:], compile_)}


def _only(module: ModuleOp, names: Sequence[str]) -> ModuleOp:
    """A module with a function for each of these executables, which launches it on its arguments."""
    found = {op.sym_name.data: op for op in module.ops if isinstance(op, ExecutableOp)}
    return ModuleOp([op for name in names for op in (_launching(found[name]), found[name].clone())])


def _launching(executable: ExecutableOp) -> FuncOp:
    """A function that launches an executable on what it is given; sizes of results follow from the sizes given."""
    entry = entry_of(executable)
    view, name = DispatchView(entry), executable.sym_name.data
    block = Block(arg_types=entry.function_type.inputs)
    emitter = Emitter.at_end(block)
    sizes = {one: block.args[value.index] for one, value in zip(view.size_names, view.sizes, strict=True)}
    dims = [
        emitter.size(dim, lambda symbol: sizes[symbol.name])
        for value in view.results
        for static, dim in zip(shape_of(value), view.shapes.dims(value), strict=True)
        if static == DYNAMIC_INDEX
    ]
    types = list(entry.function_type.outputs)
    call = DispatchOp(name, entry.sym_name.data, block.args, types, result_dims=dims)
    block.add_ops([call, ReturnOp(*call.results)])
    return FuncOp(name, (list(entry.function_type.inputs), types), Region(block), "public")
