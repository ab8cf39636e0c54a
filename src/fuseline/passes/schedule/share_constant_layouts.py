"""One layout for several readers of a constant: those that ask for elements by their coordinates take them from where
another kernel wants them, if the target says that this costs next to nothing.

    table ── gather (rows by index)                            reads the panels, by index arithmetic
          └─ transposed ── product (panels of columns)         stays as it is

The first form that a kernel asked for, else the first that cannot move, is the one that others may read. What is read
in two forms all the same is recorded with the reason and the bytes that it costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.func import FuncOp

from fuseline.buffers import BufferRef
from fuseline.ir.costs import assumed_size
from fuseline.ir.dim import add, substitute
from fuseline.passes.schedule.constant_forms import ConstantForm, axes_between, constant_forms, memory_of
from fuseline.program.schedule import Schedule
from fuseline.program.steps import DispatchStep
from fuseline.report.records import LayoutDecision
from fuseline.targets.compiled_kernel import CompiledKernel
from fuseline.targets.target import Refusal, Target
from fuseline.weight_layouts import LayoutKey, PackedLayout, SharedLayout, packed_bytes

LEAST_BYTES = 1 << 16
"""Constants below this size are not worth compiling a kernel again."""

FREE_SHARE = 0.01
"""Of the time that the owner of a layout takes, what its readers may lose."""

_WHY = {
    "no-plain-dispatch": "it is read in a loop, by a host operator, a copy or one of several arms",
    "own-layout": "both kernels ask for a layout of their own",
    "part-or-reshaped": "a part of it is read, or it is read in another shape",
    "shared-code": "the code reads other constants in its place elsewhere",
}
"""Why a form of a constant stays, in words."""


def share_constant_layouts(
    schedule: Schedule,
    kernels: Mapping[str, CompiledKernel],
    entries: Mapping[str, FuncOp],
    target: Target,
    decisions: list[LayoutDecision],
) -> tuple[Schedule, dict[str, CompiledKernel]]:
    """The schedule and the kernels, fewer layouts for each constant; what was decided goes into `decisions`. `entries`
    are the functions behind executables."""
    memories: dict[object, list[ConstantForm]] = {}
    for form in constant_forms(schedule, kernels):
        if form.array.nbytes >= LEAST_BYTES and (memory := memory_of(form.array)) is not None:
            memories.setdefault(memory, []).append(form)
    sharer = _Sharer(schedule, dict(kernels), entries, target)
    for forms in memories.values():
        decisions += sharer.share(forms) if len(forms) > 1 else []
    return sharer.schedule, sharer.kernels


@dataclass(eq=False)
class _Sharer:
    """The program so far; `_layouts` are those that readers have been given, by executable and position."""

    schedule: Schedule
    kernels: dict[str, CompiledKernel]
    entries: Mapping[str, FuncOp]
    target: Target
    _layouts: dict[str, dict[int, SharedLayout]] = field(default_factory=dict[str, dict[int, SharedLayout]])

    def share(self, forms: Sequence[ConstantForm]) -> list[LayoutDecision]:
        """Decide about all forms of one constant."""
        owner = min(forms, key=lambda form: (form.stays != "own-layout", not form.stays))
        return [self._decided(form, owner) for form in forms if form is not owner]

    def _decided(self, form: ConstantForm, owner: ConstantForm) -> LayoutDecision:
        """Whether the readers of `form` read as `owner` lies, and have been made to."""
        ns = share = 0.0
        refused = Refusal(form.stays, _WHY[form.stays]) if form.stays else None
        shared = None if refused else _shared_layout(owner, form)
        if refused is None and shared is None:
            refused = Refusal("reshaped", "the two are read with different dimensions")
        elif shared is not None:
            priced = self._price(form, shared)
            refused = priced if isinstance(priced, Refusal) else None
            if not isinstance(priced, Refusal):
                ns, share = priced, priced / max(self._ns(owner), 1.0)
                refused = self._apply(form, owner, shared) if share <= FREE_SHARE else _too_dear(share)
        return LayoutDecision(
            verdict="shared" if refused is None else "repeated",
            reader=", ".join(form.readers),
            owner=", ".join(owner.readers),
            bytes=packed_bytes(form.array, form.key),
            code=refused.code if refused is not None else "shared",
            detail=refused.detail if refused is not None else "",
            ns=ns,
            share=share,
        )

    def _price(self, form: ConstantForm, shared: SharedLayout) -> float | Refusal:
        """Nanoseconds that all readers of `form` lose in a run."""
        total = 0.0
        for use in form.uses:
            found = self.target.layout_price(self.entries[use.executable], {use.position: shared})
            if isinstance(found, Refusal):
                return found
            total += found.ns
        return total

    def _ns(self, owner: ConstantForm) -> float:
        """What the readers of `owner` take in a run, at the sizes that are assumed."""
        costs, total = self.target.description.costs, 0.0
        for number in {use.number for use in owner.uses}:
            step = self.schedule.steps[number]
            assert isinstance(step, DispatchStep)
            kernel, sizes = self.kernels[step.executable], dict(step.sizes)
            moved = substitute(add(kernel.bytes_read, kernel.bytes_written), sizes)
            flops = assumed_size(substitute(kernel.flops, sizes)) / costs.flops_per_ns
            total += max(flops, assumed_size(moved) / costs.memory_bytes_per_ns)
        return total

    def _apply(self, form: ConstantForm, owner: ConstantForm, shared: SharedLayout) -> Refusal | None:
        """Compile the readers for the layout and redirect their operands; nothing where one cannot."""
        made: dict[str, CompiledKernel] = {}
        layouts: dict[str, dict[int, SharedLayout]] = {}
        for use in form.uses:
            layouts.setdefault(use.executable, dict(self._layouts.get(use.executable, {})))[use.position] = shared
        for name, asked in layouts.items():
            found = self.target.compile_reader(self.entries[name], self.kernels[name], asked)
            refused = found if isinstance(found, Refusal) else _other_memory(self.kernels[name], found)
            if refused is not None:
                return refused
            assert isinstance(found, CompiledKernel)
            made[name] = found
        self.kernels.update(made)
        self._layouts.update(layouts)
        self._redirect(form, owner, shared)
        return None

    def _redirect(self, form: ConstantForm, owner: ConstantForm, shared: SharedLayout) -> None:
        steps = list(self.schedule.steps)
        for use in form.uses:
            step = steps[use.number]
            assert isinstance(step, DispatchStep)
            operands = list(step.operands)
            operands[use.position] = operands[use.position]._replace(
                buffer=BufferRef("constant", owner.constant), dims=shared.key.dims
            )
            steps[use.number] = step._replace(operands=tuple(operands))
        self.schedule = replace(self.schedule, steps=tuple(steps))


def _shared_layout(owner: ConstantForm, form: ConstantForm) -> SharedLayout | None:
    """How the readers of `form` find an element where `owner` has it; None where dimensions do not correspond."""
    shape = owner.array.shape
    key = owner.key or LayoutKey(shape, PackedLayout(shape, shape, tuple(range(len(shape)))))
    if key.dims != shape or owner.array.ndim != form.array.ndim:
        return None
    axes = axes_between(owner.array, form.array)
    return SharedLayout(axes, key) if axes else None


def _too_dear(share: float) -> Refusal:
    return Refusal("costs-time", f"readers would lose {share:.1%} of what the other takes")


def _other_memory(before: CompiledKernel, after: CompiledKernel) -> Refusal | None:
    """Transients have their places already: code that needs others cannot take the place of what was planned for."""
    if after.scratch_bytes > before.scratch_bytes or not set(before.in_place) <= set(after.in_place):
        return Refusal("other-memory", "the reader would need more memory")
    return None
