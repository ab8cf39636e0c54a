"""The contract between the compiler and a target: what a target says of itself, and what it makes of an executable.

Passes and analyses import this module and never a target.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.func import FuncOp

from fuseline.analysis.schedule import PackedConstants, Schedule
from fuseline.ir.dim import Dim
from fuseline.ir.target_description import STACK_LIMIT_BYTES, TargetDescription

__all__ = ["STACK_LIMIT_BYTES", "CompiledKernel", "PackedLayout", "Refusal", "Target", "TargetDescription"]


@dataclass(frozen=True, slots=True)
class PackedLayout:
    """How a constant is laid out for a kernel: zero-pad each dimension to `pad_to`, reshape, permute, store contiguously."""

    pad_to: tuple[int, ...]
    reshape: tuple[int, ...]
    permutation: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a target cannot take a dispatch: a stable kebab-case code and the numbers or ops at fault."""

    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """One executable's code and everything the runtime must know to launch it.

    `workgroups` counts the grid in terms of the executable's size names; `constant_layouts` maps the position of a constant tensor operand to
    the layout its bytes must have; `extra_constants` are further read-only bindings after the results (bytes); `scratch_bytes` per thread.
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


class Target(ABC):
    """A place where executables run."""

    description: TargetDescription

    def refuse(self, entry: FuncOp) -> Refusal | None:
        """Why this target cannot emit the dispatch `entry` (an outlined entry function), or None."""
        del entry
        return None

    @abstractmethod
    def compile_executables(self, entries: Sequence[FuncOp], resources: Mapping[str, Any]) -> list[CompiledKernel]:
        """Code for each entry function, in order; raises FuselineError naming the dispatch that failed."""

    @abstractmethod
    def assemble(
        self, schedule: Schedule, kernels: Mapping[str, CompiledKernel], constants: PackedConstants, *, records: bytes, metadata: Mapping[str, Any]
    ) -> Any:
        """The artifact that the runtime runs: `kernels` by executable symbol, `constants` laid out as they ask, opaque `records` travel along."""
