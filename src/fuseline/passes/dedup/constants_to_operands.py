"""constants-to-operands: executables that differ in scalar constants become equal: the constants become operands.

From level `constants` on, and only where another executable is equal but for them and the target loses no time: what is
unique keeps its constants. Constants that are the same in all executables of a class stay in the body. At level
`shapes` a class is what differs in extents, too, which later become operands of the launch.

    f(x) { x * 2.0 }  f(1)        f(x, c) { x * c }  f(1, 2.0)
    g(x) { x * 3.0 }  g(2)   =>   g(x, c) { x * c }  g(2, 3.0)        (deduplicate-executables makes them one)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from fuseline.dispatch.body_constants import BodyConstant
from fuseline.dispatch.executable_entry import entry_of
from fuseline.ir import flow
from fuseline.ir.context import CompilerContext
from fuseline.passes.dedup.constant_classes import ConstantVariant, classes, differing, sharing_for_free
from fuseline.passes.dedup.levels import checked, contains
from fuseline.passes.dedup.scalar_operands import ScalarArguments, add_operands, calls_of
from fuseline.targets.target import SharingPrices


@dataclass(frozen=True)
class ConstantsToOperandsPass(ModulePass):
    """`level`: one of `levels.LEVELS`."""

    name = "constants-to-operands"
    level: str = "constants"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Add operands to entries and their calls. Raises FuselineError: E0304 for an unknown level."""
        assert isinstance(ctx, CompilerContext)
        if not contains(checked(self.level, self.name), "constants"):
            return
        executables = [executable for executable in op.ops if isinstance(executable, flow.ExecutableOp)]
        found = classes(executables, extents=not contains(self.level, "shapes"))
        calls, arguments = calls_of(op), ScalarArguments()
        for executable, groups in _fitting([variants for variants in found if len(variants) > 1], ctx).items():
            for call in calls.get(executable.sym_name.data, ()):
                arguments.append(call, [group[0].value for group in groups])
            add_operands(entry_of(executable), groups)


_Operands: TypeAlias = dict[flow.ExecutableOp, list[list[BodyConstant]]]
"""The constants of each executable that become operands; those that are equal to each other in all of its class are
one."""


def _fitting(found: Sequence[Sequence[ConstantVariant]], ctx: CompilerContext) -> _Operands:
    """What is shared; an executable that could not bind all of its operands keeps its constants, and the others share
    what they have in common without it."""
    operands = _shared(found, ctx.sharing_price)
    too_many = [one for one, groups in operands.items() if not _fits(one, len(groups), ctx.target.binding_limit)]
    if not too_many:
        return operands
    return _fitting([[one for one in variants if one.executable not in too_many] for variants in found], ctx)


def _shared(found: Sequence[Sequence[ConstantVariant]], price: SharingPrices) -> _Operands:
    operands: _Operands = {}
    for variants in (free for each in found for free in sharing_for_free(each, price)):
        for variant, groups in _operands(variants):
            operands.setdefault(variant.executable, []).extend(groups)
    return operands


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
