"""The contract between the compiler and a target: what a target says of itself, and what it makes of an executable.

Passes and analyses import this module and never a target.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.analysis.structured import Kind
from fuseline.dispatch.arm_entries import Arm
from fuseline.dispatch.body_constants import BodyConstant
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim, mul, substitute, sum_of
from fuseline.ir.fuel import Fuel
from fuseline.ir.kernel_choice import KernelChoices
from fuseline.ir.target_description import TargetDescription
from fuseline.program.schedule import DispatchStep, PackedConstants, Schedule, element_bytes, moved
from fuseline.weight_layouts import PackedLayout, SharedLayout

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


CODE_FORMS = ("kernel", "llvm", "asm")
"""What code can be printed as: kernel IR, LLVM text, assembly."""

FORMS = ("", "full", "compact", "over-budget")
"""Of a kernel's code, the most that was done to it last."""


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """One executable's code and everything the runtime must know to launch it.

    `workgroups` counts the grid in terms of the executable's size names; `constant_layouts` maps the position of a
    constant tensor operand to the layout its bytes must have; `extra_constants` are further read-only bindings after
    the results (bytes); `scratch_bytes` per thread. `signature` is what the target's runtime checks launches against.
    `form`, one of `FORMS`: how it was kept within the budget of code; empty for a target without one. `too_long`: it
    has no code, since it would exceed that budget; the dispatch is to be split. An executable of several `arms` has no
    code of its own: each arm is launched on its part of the operands and results (`launches`). `in_place` are results,
    each with a tensor operand (both by position) in whose place it may lie where nothing else needs the operand: an
    element is written when it is read no more. `numbers`: what code that others share takes for this executable, at
    every launch, behind the sizes.
    """

    symbol: str
    object_code: bytes
    family: str
    workgroups: Dim
    scratch_bytes: int = 0
    constant_layouts: Mapping[int, PackedLayout] = field(default_factory=dict[int, PackedLayout])
    extra_constants: Sequence[bytes] = ()
    flops: Dim = 0
    bytes_read: Dim = 0
    bytes_written: Dim = 0
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    arms: Sequence[KernelArm] = ()
    signature: Any = None
    form: str = ""
    too_long: bool = False
    in_place: Sequence[tuple[int, int]] = ()
    numbers: tuple[int, ...] = ()

    @property
    def bodies(self) -> Sequence[CompiledKernel]:
        """The pieces of code that a launch runs: itself, or those of its arms."""
        return [arm.kernel for arm in self.arms] or [self]


@dataclass(frozen=True, slots=True)
class KernelArm:
    """One arm of an executable: code, and what of the executable it works on.

    `operands[i]` is the executable's tensor operand behind operand `i` of `kernel`; `results[i]` its result and the
    elements from there to where the arm's begins; `sizes` are the arm's size names, each in terms of the executable's.
    """

    kernel: CompiledKernel
    operands: tuple[int, ...]
    results: tuple[tuple[int, Dim], ...]
    sizes: tuple[tuple[str, Dim], ...]


def kernel_of_arms(symbol: str, arms: Sequence[Arm], kernels: Sequence[CompiledKernel]) -> CompiledKernel:
    """The kernel of an executable from those of its arms: that of its only arm, or all of them."""
    if len(arms) == 1 and arms[0].is_whole:
        return kernels[0]
    places = [tuple((result.position, result.offset) for result in arm.results) for arm in arms]
    placed = zip(arms, kernels, places, strict=True)
    return joined_kernel(
        symbol, [KernelArm(kernel, arm.operands, results, arm.sizes) for arm, kernel, results in placed]
    )


def joined_kernel(symbol: str, arms: Sequence[KernelArm]) -> CompiledKernel:
    """The kernel of an executable that consists of `arms`: what they do is added up, their own constants follow each
    other."""
    bodies = [arm.kernel for arm in arms]
    local = [dict(arm.sizes) for arm in arms]

    def total(field_: str) -> Dim:
        return sum_of(substitute(getattr(body, field_), sizes) for body, sizes in zip(bodies, local, strict=True))

    return CompiledKernel(
        symbol=symbol,
        object_code=b"",
        family="+".join(sorted({body.family for body in bodies})),
        workgroups=total("workgroups"),
        scratch_bytes=max(body.scratch_bytes for body in bodies),
        form=max((body.form for body in bodies), key=FORMS.index),
        extra_constants=tuple(block for body in bodies for block in body.extra_constants),
        flops=total("flops"),
        bytes_read=total("bytes_read"),
        bytes_written=total("bytes_written"),
        arms=tuple(arms),
        in_place=tuple(_in_place_of_arms(arms)),
    )


def _in_place_of_arms(arms: Sequence[KernelArm]) -> Iterator[tuple[int, int]]:
    """What the arms say of operands that no other arm reads, and results that no other arm writes: arms run side by
    side."""
    readers = Counter(operand for arm in arms for operand in set(arm.operands))
    writers = Counter(position for arm in arms for position, _ in arm.results)
    for arm in arms:
        for result, operand in arm.kernel.in_place:
            position, offset = arm.results[result]
            if offset == 0 and writers[position] == 1 and readers[arm.operands[operand]] == 1:
                yield position, arm.operands[operand]


class Launch(NamedTuple):
    """One arm of a dispatch as a dispatch of its own; its extra constants are those of the executable from number
    `first_extra` on."""

    kernel: CompiledKernel
    step: DispatchStep
    first_extra: int = 0


def launches(step: DispatchStep, kernel: CompiledKernel) -> Iterator[Launch]:
    """What a dispatch launches: its kernel, or each of its kernel's arms, on the operands, results and sizes of that
    arm."""
    if not kernel.arms:
        yield Launch(kernel, step)
        return
    sizes, extra = dict(step.sizes), 0
    for arm in kernel.arms:
        operands = tuple(step.operands[i] for i in arm.operands)
        results = tuple(
            moved(step.results[i], substitute(mul(offset, element_bytes(step.results[i].dtype)), sizes))
            for i, offset in arm.results
        )
        own = tuple((name, substitute(size, sizes)) for name, size in arm.sizes)
        yield Launch(arm.kernel, step._replace(operands=operands, results=results, sizes=own), extra)
        extra += len(arm.kernel.extra_constants)


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
