"""constants-to-operands: executables that differ in scalar constants become equal: the constants become operands.

From level `constants` on, and only where another executable is equal but for them and the target loses no time: what is
unique keeps its constants. Constants that are the same in all executables of a class stay in the body.

    f(x) { x * 2.0 }  f(1)        f(x, c) { x * c }  f(1, 2.0)
    g(x) { x * 3.0 }  g(2)   =>   g(x, c) { x * c }  g(2, 3.0)        (deduplicate-executables makes them one)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fuseline.dispatch.body_constants import BodyConstant
from fuseline.ir import flow
from fuseline.ir.context import CompilerContext
from fuseline.passes.dedup.constant_classes import ConstantVariant, classes, differing, sharing_for_free
from fuseline.passes.dedup.levels import checked, contains
from fuseline.passes.dedup.scalar_operands import ScalarArguments, add_operands, calls_of
from fuseline.passes.dispatch.outline_executables import entry_of


@dataclass(frozen=True)
class ConstantsToOperandsPass(ModulePass):
    """`level`: one of `levels.LEVELS`."""

    name = "constants-to-operands"
    level: str = "constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        assert isinstance(ctx, CompilerContext)
        if not contains(checked(self.level, self.name), "constants"):
            return
        executables = [executable for executable in op.ops if isinstance(executable, flow.ExecutableOp)]
        shared: dict[flow.ExecutableOp, list[list[BodyConstant]]] = {}
        for variants in classes(executables):
            for part in sharing_for_free(variants, ctx.sharing_price) if len(variants) > 1 else ():
                for variant, groups in _operands(part):
                    shared.setdefault(variant.executable, []).extend(groups)
        calls, arguments = calls_of(op), ScalarArguments()
        for executable, groups in shared.items():
            if _fits(executable, len(groups), ctx.target.binding_limit):
                for call in calls.get(executable.sym_name.data, ()):
                    arguments.append(call, [group[0].value for group in groups])
                add_operands(entry_of(executable), groups)


def _operands(variants: Sequence[ConstantVariant]) -> Iterator[tuple[ConstantVariant, list[list[BodyConstant]]]]:
    """The constants of each variant that become operands: those that vary, each group equal to each other in every
    variant."""
    found: dict[Hashable, list[int]] = {}
    for i in differing(variants):
        found.setdefault(tuple(variant.values[i] for variant in variants), []).append(i)
    for variant in variants if found else ():
        yield variant, [[variant.originals[i] for i in group] for group in found.values()]


def _fits(executable: flow.ExecutableOp, more: int, limit: int) -> bool:
    """Whether a dispatch may bind so many more operands."""
    type_ = entry_of(executable).function_type
    return len(type_.inputs) + len(type_.outputs) + more <= limit


EXPORT = ConstantsToOperandsPass
