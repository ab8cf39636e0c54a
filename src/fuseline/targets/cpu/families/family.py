"""What a kernel family is: it accepts a dispatch with a plan, or says why not, and builds a kernel from the plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, ClassVar

from fuseline.analysis.extents_key import extents_key
from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.dispatch.view import DispatchView
from fuseline.ir.dim import Dim
from fuseline.ir.kernel_choice import NO_CHOICES, Asked, KernelChoice, KernelChoices, class_id, parse_choice
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.target import Refusal
from fuseline.weight_layouts import PackedLayout

__all__ = ["NEVER_RUNS", "Family", "Plan", "Refusal"]

NEVER_RUNS = Refusal("empty", "a loop never runs")
"""Of all families but the nests of loops, which write what results start from."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a family has decided about a dispatch. Families subclass it with what their `emit` needs.

    Attributes:
        view: the dispatch.
        workgroups: the size of the grid, over the dispatch's size names.
        constant_layouts: by binding position, how a constant's bytes must lie.
        extra_constants: further read-only buffers (bytes), bound after the results.
        notes: what the report shows of the choice (tile sizes and the like).
        choice: the text of a choice from outside that the plan follows; unfollowed: that it does not, and why.
    """

    view: DispatchView
    workgroups: Dim
    constant_layouts: Mapping[int, PackedLayout] = field(default_factory=dict[int, PackedLayout])
    extra_constants: Sequence[bytes] = ()
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    choice: str = ""
    unfollowed: Unfollowed | None = None

    @property
    def kernel_plans(self) -> Sequence[Plan]:
        """The plans of the kernels that it puts together, or only itself."""
        return (self,)

    def work_made(self, machine: Machine) -> Mapping[str, float]:
        """What the kernel does beside what is counted of its dispatch, by the kinds of `ir.work_costs`."""
        del machine
        return {}


@dataclass(frozen=True, slots=True)
class Unfollowed:
    """A choice that was asked for, and why it is not followed."""

    text: str
    why: Refusal


@dataclass(frozen=True, slots=True)
class Alternative:
    """A choice in place of what a family chooses by itself, as text, and the share of the time of that which the
    family's model expects it to take."""

    text: str
    time: float = 1.0


@dataclass(frozen=True, slots=True)
class Policy:
    """What kernels depend on beside the machine.

    Attributes:
        numerics: how exact they are: `strict`, `default` or `fast`.
        threads: per run.
        filter_growth: how many times as large as the model's a filter may be that is transformed at compile time.
        choices: what is asked of kernels from outside, in place of what their families choose.
    """

    numerics: str = "default"
    threads: int = 1
    filter_growth: float = inf
    choices: KernelChoices = NO_CHOICES

    def asked(self, view: DispatchView) -> Asked | None:
        """What is asked of the kernel of a dispatch; None for nothing, as ever without tuning."""
        return self.choices.of(class_id(view.kernel_class)) if self.choices else None

    def without(self, view: DispatchView) -> Policy:
        """The same, nothing asked of the kernel of a dispatch."""
        return replace(self, choices=self.choices.without(class_id(view.kernel_class)))

    def choice(self, view: DispatchView) -> KernelChoice | None:
        """The same as a value; None, too, for text that is no choice."""
        asked = self.asked(view)
        return parse_choice(asked.text) if asked is not None else None


@dataclass(frozen=True, slots=True)
class Shared:
    """Dispatches, by their numbers, whose kernels are the same code up to numbers with these plans, and the share of
    its time that each is predicted to lose by that."""

    members: tuple[int, ...]
    plans: tuple[Plan, ...]
    lost: tuple[float, ...]


class Family(ABC):
    """A way to lower dispatches of one shape. `name` goes into reports."""

    name: str
    kernel_type: type[Any]
    """Made of a plan and a kernel builder; its `emit` builds the kernel."""
    reads_shared_layouts: ClassVar[bool] = False
    """Whether its kernels ask for every element by its coordinates, so that arguments may lie in other orders."""
    computes_rows_alike: ClassVar[bool] = True
    """Whether what its kernels make of a row is the same to the bit whichever rows are made with it."""

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()

    @abstractmethod
    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan for the dispatch, or why this family cannot take it. Where the policy asks for a choice: a plan that
        follows it, or a refusal."""

    def emit(self, plan: Plan, kernel: KernelBuilder) -> None:
        """Build the kernel: workgroups `kernel.begin` to `kernel.end`."""
        self.kernel_type(plan, kernel).emit()

    def alternatives(self, plan: Plan, machine: Machine) -> Iterator[Alternative]:
        """What may be asked of the kernel that is planned as `plan`, by this family or another, in place of it: all
        that this family would follow, each beside the expected time of `plan`; none unless a family says otherwise."""
        del plan, machine
        return iter(())

    @property
    def kernels(self) -> str:
        """Families that answer the same emit the same kernels for plans that are alike."""
        return self.name

    def likeness(self, plan: Plan, numbers: AttributeNumbers) -> Hashable:
        """What dispatches are equal in that may have one form; comparable among families that emit the same kernels and
        keys made with the same `numbers`."""
        return extents_key(plan.view.entry, numbers)

    def shared(self, plans: Sequence[Plan], machine: Machine) -> Sequence[Shared]:
        """Plans of one form for dispatches of one `likeness` that have these plans, where that costs little; none
        unless a family says otherwise."""
        del plans, machine
        return ()
