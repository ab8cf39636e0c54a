"""Calls of functions, and composites that are not known by name: the body takes their place.

What is called `max` inside of what is called `jit(relu)` becomes `jit(relu)/max`.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.dialects.builtin import ModuleOp, NameLoc, NoneAttr, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from fuseline.errors import FuselineError
from fuseline.frontends.stablehlo.labels import source_name
from fuseline.frontends.stablehlo.reading import text_of
from fuseline.frontends.stablehlo.registry import lowering_of
from fuseline.ir.hlo.ops import HloOp
from fuseline.ir.text import text_location

MOST_OPS = 1_000_000
"""Ops that calls may become: functions that call others twice grow without end."""


def inline_calls(module: ModuleOp, main: FuncOp) -> None:
    """Leave no call in `main`. Raises FuselineError: E0305 for a function that is not there, E0306 for one that calls
    itself, E0302 for one of another type."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    _Inlining(functions).inside(main.body.block, (main.sym_name.data,))


class _Inlining:
    def __init__(self, functions: Mapping[str, FuncOp]) -> None:
        self.functions, self.count = functions, 0

    def inside(self, block: Block, around: tuple[str, ...]) -> None:
        """Replace the calls in `block`, which is in the functions `around`."""
        op = block.first_op
        while op is not None:
            following, name = op.next_op, _callee(op)
            if name is not None:
                self._replace(op, name, around)
            for region in op.regions if name is None else ():
                for inner in region.blocks:
                    self.inside(inner, around)
            op = following

    def _replace(self, call: Operation, name: str, around: tuple[str, ...]) -> None:
        callee = _function(call, name, self.functions)
        if name in around:
            raise FuselineError("E0306", f"@{name} calls itself", node=text_location(call.location))
        body = self._copied(call, callee)
        self.inside(body, (*around, name))
        *ops, end = body.ops
        assert call.parent is not None
        for op in ops:
            op.detach()
            call.parent.insert_op_before(op, call)
        results = list(end.operands)
        end.detach()
        end.erase()
        Rewriter.replace_op(call, [], results)

    def _copied(self, call: Operation, callee: FuncOp) -> Block:
        """The body with the operands of the call as its arguments, named after it."""
        values: dict[SSAValue, SSAValue] = dict(zip(callee.body.block.args, call.operands, strict=True))
        body, prefix = Block(), source_name(call.location)
        for op in callee.body.block.ops:
            copy = op.clone(values)
            _name(copy, prefix)
            body.add_op(copy)
            self.count += 1
        if self.count > MOST_OPS:
            raise FuselineError("E0306", f"calls become more than {MOST_OPS} ops", node=text_location(call.location))
        return body


def _callee(op: Operation) -> str | None:
    """The function that an op stands for, None for one that stands for itself."""
    if isinstance(op, CallOp):
        return op.callee.string_value()
    if (
        isinstance(op, HloOp)
        and op.name == "stablehlo.composite"
        and lowering_of(text_of(op.attribute("name"))) is None
    ):
        target = op.attribute("decomposition")
        return target.string_value() if isinstance(target, SymbolRefAttr) else None
    return None


def _function(op: Operation, name: str, functions: Mapping[str, FuncOp]) -> FuncOp:
    found = functions.get(name)
    location = text_location(op.location)
    if found is None or found.is_declaration:
        raise FuselineError("E0305", f"{op.name}: there is no function @{name} with a body", node=location)
    if len(found.body.blocks) != 1:
        raise FuselineError("E0306", f"@{name} has {len(found.body.blocks)} blocks", node=location)
    types = found.function_type
    if [v.type for v in op.operands] != list(types.inputs) or [v.type for v in op.results] != list(types.outputs):
        raise FuselineError("E0302", f"{op.name}: @{name} has another type", node=location)
    return found


def _name(op: Operation, around: str) -> None:
    """Let `op` and what is inside be called after the call, too."""
    if not around:
        return
    for inner in op.walk():
        name = source_name(inner.location)
        if name:
            inner.location = NameLoc(StringAttr(f"{around}/{name}"), NoneAttr())
