"""What code generation hands back of a dispatch: kernels, their arms, and the launches a dispatch becomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from fuseline.dispatch.arm_entries import Arm
from fuseline.ir.dim import Dim, mul, substitute, sum_of
from fuseline.program.schedule import element_bytes, moved
from fuseline.program.steps import DispatchStep
from fuseline.weight_layouts import PackedLayout

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
