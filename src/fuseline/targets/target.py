"""The contract between the compiler and a target: what a target says of itself, and what it makes of an executable.

Passes and analyses import this module and never a target.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.analysis.structured import Kind
from fuseline.dispatch.body_constants import BodyConstant
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.fuel import Fuel
from fuseline.ir.kernel_choice import KernelChoices
from fuseline.ir.target_description import TargetDescription
from fuseline.program.schedule import PackedConstants, Schedule
from fuseline.targets.compiled_kernel import (
    CompiledKernel,
    KernelArm,
    Launch,
    joined_kernel,
    kernel_of_arms,
    launches,
)
from fuseline.weight_layouts import SharedLayout

__all__ = ["CONTRACT", "CompiledKernel", "KernelArm", "Launch", "Legality", "OpLegality", "Refusal", "SharingPrice"]
__all__ += ["SharingPrices", "Target", "TargetDescription", "joined_kernel", "kernel_of_arms", "launches"]

CONTRACT = 1
"""The version of this contract. A target from outside the tree says for which one it was written (`Target.contract`);
docs/targets.md has what changed."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a target cannot take a dispatch: a stable kebab-case code and the numbers or ops at fault. `numbers` go into
    the decision record."""

    code: str
    detail: str
    numbers: Mapping[str, float] = field(default_factory=dict[str, float])


OpLegality: TypeAlias = Callable[[Operation, Kind], "Refusal | None"]
"""`Target.takes_op` of some target."""

Legality: TypeAlias = Callable[[DispatchCandidate], "Refusal | None"]
"""`Target.legal` of some target."""


@dataclass(frozen=True, slots=True)
class SharingPrice:
    """Why sharing code costs time: `ns` that a launch takes longer, predicted, and the reason in words."""

    ns: float
    reason: str


SharingPrices: TypeAlias = Callable[[FuncOp, BodyConstant], "SharingPrice | None"]
"""`Target.sharing_price` of some target."""


class Target(ABC):
    """A place where executables run.

    `contract`: the version of the contract that a target from outside the tree was written for (`CONTRACT`); those of
    the tree leave it at 0. `makes_artifacts`: what it assembles is an artifact, which can be saved and put inside
    another. `runs_programs`: what it assembles can be run, and takes a fallback (`with_fallback`). `suffix`: how files
    of what it assembles end, where that is bytes or text (`.lst`). `fuel`: what a compile has left for choices that the
    target could do without; None for as much as it likes.
    """

    description: TargetDescription
    contract: int = 0
    makes_artifacts: bool = False
    runs_programs: bool = False
    fuel: Fuel | None = None
    suffix: str = ""

    def legal(self, candidate: DispatchCandidate) -> Refusal | None:
        """Why the target would not take a dispatch, or not as more than single loops over its points; None where it
        would.

        Asked before each merge is applied, and once more of every dispatch that is formed: the answer must be cheap,
        and depend on nothing but the candidate. A dispatch of one op that is refused cannot be compiled (E0307). Takes
        everything unless a target says otherwise.
        """
        del candidate
        return None

    def takes_op(self, op: Operation, kind: Kind) -> Refusal | None:
        """Why the target has no way to run an op, of this kind, in any dispatch; None where it has.

        Asked by frontends, which run what it refuses on the host. Takes everything unless a target says otherwise.
        """
        del op, kind
        return None

    def sharing_price(self, entry: FuncOp, constant: BodyConstant) -> SharingPrice | None:
        """What a launch of `entry` loses if `constant` is an operand that the kernel reads once, before its loops; None
        where nothing.

        Asked for every constant in which executables differ that are otherwise equal; they share code where nothing is
        lost. Free unless a target says otherwise.
        """
        del entry, constant
        return None

    def layout_price(self, entry: FuncOp, layouts: Mapping[int, SharedLayout]) -> SharingPrice | Refusal:
        """What a launch of `entry` loses if it reads constants (by the position of the operand) as other kernels asked
        for them, or why it cannot. Targets refuse unless they say otherwise.
        """
        del entry, layouts
        return Refusal("row-major", "the target reads constants as the model has them")

    def compile_reader(
        self, entry: FuncOp, kernel: CompiledKernel, layouts: Mapping[int, SharedLayout]
    ) -> CompiledKernel | Refusal:
        """The code of `entry`, which `kernel` is without them, where constants lie in `layouts` that `layout_price` has
        a price for; or why there is none. Raises NotImplementedError for a target without layouts."""
        raise NotImplementedError

    def take_program(self, module: ModuleOp, ctx: CompilerContext, *, splits: bool) -> ModuleOp | None:
        """For a target that compiles the dispatches of a program together: `module`, whose dispatches are outlined and
        which stays as it is, with calls of host operators in their place; it is what is scheduled and assembled then,
        and has no kernels. Asked before `compile_executables`, `splits` as there; a target whose kernels are launched
        one by one answers None.
        """
        del module, ctx, splits
        return None

    def counted(self) -> Mapping[str, Any]:
        """What such a target knows of the finished program: entries of its statistics, in place of those that were
        counted."""
        return {}

    def follow(self, choices: KernelChoices) -> None:
        """Ask kernels from now on for `choices`, each of its class, where that is legal; asked before the first is
        compiled. A target whose kernels have no choices makes nothing of them: what is asked in vain is on record.
        """
        del choices

    def keep_code(self) -> None:
        """Remember from now on what kernels are made from, for `code_text`. Raises E0501 for a target without code."""
        raise FuselineError(
            "E0501", f"the target {self.description.name} generates no code to print", hint="compile for cpu"
        )

    def code_text(self, headings: Mapping[str, Sequence[str]], form: str) -> str:
        """The kernels whose symbols have a heading (lines of text), each once under its own, in a form of
        `CODE_FORMS`. Raises NotImplementedError for a target without code."""
        raise NotImplementedError

    @abstractmethod
    def compile_executables(
        self, entries: Sequence[FuncOp], resources: Mapping[str, Any], *, splits: bool = False, merges: bool = False
    ) -> list[CompiledKernel]:
        """Code for each entry function, in order; raises FuselineError naming the dispatch that failed.

        `splits`: whether one of several ops may come back `too_long`, to be split and asked for again. `merges`:
        whether code that differs in extents alone may be one, where that costs little time
        (`MachineCosts.sharing_loss`).
        """

    @abstractmethod
    def assemble(
        self,
        schedule: Schedule,
        kernels: Mapping[str, CompiledKernel],
        constants: PackedConstants,
        *,
        records: bytes,
        metadata: Mapping[str, Any],
    ) -> Any:
        """The artifact that the runtime runs: `kernels` by executable symbol, `constants` laid out as they ask, opaque
        `records` travel along. A target from outside may answer bytes or text, which is what is written to a file."""
