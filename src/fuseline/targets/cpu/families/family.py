"""What a kernel family is: it accepts a dispatch with a plan, or says why not, and builds a kernel from the plan."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar

from fuseline.analysis.extents_key import extents_key
from fuseline.analysis.structural_key import AttributeNumbers
from fuseline.dispatch.view import DispatchView
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.target import Refusal
from fuseline.weight_layouts import PackedLayout

__all__ = ["Family", "Plan", "Refusal"]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a family has decided about a dispatch. Families subclass it with what their `emit` needs.

    Attributes:
        view: the dispatch.
        workgroups: the size of the grid, over the dispatch's size names.
        constant_layouts: by binding position, how a constant's bytes must lie.
        extra_constants: further read-only buffers (bytes), bound after the results.
        notes: what the report shows of the choice (tile sizes and the like).
    """

    view: DispatchView
    workgroups: Dim
    constant_layouts: Mapping[int, PackedLayout] = field(default_factory=dict[int, PackedLayout])
    extra_constants: Sequence[bytes] = ()
    notes: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class Policy:
    """What kernels depend on beside the machine.

    Attributes:
        numerics: how exact they are: `strict`, `default` or `fast`.
        threads: per run.
        filter_growth: how many times as large as the model's a filter may be that is transformed at compile time.
    """

    numerics: str = "default"
    threads: int = 1
    filter_growth: float = inf


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

    def __init__(self, policy: Policy | None = None) -> None:
        self.policy = policy or Policy()

    @abstractmethod
    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan for the dispatch, or why this family cannot take it."""

    def emit(self, plan: Plan, kernel: KernelBuilder) -> None:
        """Build the kernel: workgroups `kernel.begin` to `kernel.end`."""
        self.kernel_type(plan, kernel).emit()

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
