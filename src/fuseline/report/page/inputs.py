"""What a page is made of: records, and what only those who compiled or measured know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fuseline.report.records import CompileRecord


@dataclass(frozen=True, slots=True)
class SourceNode:
    """A node of the model as it was read: its name in records, its operator, and the nodes whose results it reads, by
    position in the list of all."""

    name: str
    operator: str
    inputs: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Peaks:
    """What a machine can do at most, all threads together: f32 operations, bytes through its caches and bytes of memory
    in a nanosecond. `measured`: here, rather than assumed."""

    flops_per_ns: float
    cached_bytes_per_ns: float
    memory_bytes_per_ns: float
    measured: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """One compile.

    Attributes:
        title: what it is called beside another. record: of the compile.
        sources: the model's nodes in order, where the model was at hand.
        seconds: measured seconds of each dispatch, in the order of the record. total_seconds: of a whole run.
        ir_texts: ops as text, each once. ir: by the name of a source node and phase, which of them.
        assembly: by the symbol of a kernel. peaks: of the machine that it is for.
    """

    title: str
    record: CompileRecord
    sources: Sequence[SourceNode] = ()
    seconds: Sequence[float] = ()
    total_seconds: float = 0.0
    ir_texts: Sequence[str] = ()
    ir: Mapping[str, Mapping[str, Sequence[int]]] = field(default_factory=dict[str, Mapping[str, Sequence[int]]])
    assembly: Mapping[str, str] = field(default_factory=dict[str, str])
    peaks: Peaks | None = None


@dataclass(frozen=True, slots=True)
class PageInputs:
    """`first`, and what it is compared with. `reasons`: by code what a reader may read about it (Markdown)."""

    first: Side
    second: Side | None = None
    reasons: Mapping[str, str] = field(default_factory=dict[str, str])
    version: str = ""
