"""`@main` as data: the graph of its steps over buffers, before anything is ordered or placed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.ir.dim import Dim
from fuseline.ir.fast import attributes
from fuseline.ir.fast.identity import by_identity
from fuseline.program.schedule import Boundary, Segment

_DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i1": "bool", "index": "int64"}
_ELEMENT_BYTES = {"bfloat16": 2, "float8_e4m3fn": 1, "float8_e5m2": 1, "object": 0}


@dataclass(eq=False)
class Buffer:
    """Memory of one or more tensor values. `index` says which constant, input or output; transients get their offset
    later."""

    segment: Segment
    index: int
    bytes: Dim


@dataclass(frozen=True)
class TensorUse:
    """A buffer seen as a tensor, from `offset` bytes on."""

    buffer: Buffer
    dims: tuple[Dim, ...]
    dtype: str
    offset: Dim = 0

    @property
    def element_bytes(self) -> int:
        """Bytes of one element."""
        return element_bytes(self.dtype)


@dataclass(frozen=True)
class Route:
    """Where a tensor at the border of a loop's body lies, bytes; see `fuseline.program.schedule.Walk`. `special` is a
    buffer and an offset."""

    buffer: Buffer
    offset: Dim = 0
    stride: Dim = 0
    lag: int = 0
    alternates: bool = False
    special: tuple[Buffer, Dim] | None = None
    at: Dim = 0


@dataclass(eq=False)
class LoopBody:
    """What a loop does `trips` times. `routes` are its body's inputs and outputs, by segment and number."""

    trips: Dim
    nodes: list[Node]
    routes: dict[tuple[Segment, int], Route]


@dataclass(eq=False)
class Node:
    """A step to be: a dispatch, a host call, a loop, a tensor of sizes (`tensor.from_elements`), or a copy (`op`
    None)."""

    op: Operation | None
    reads: tuple[TensorUse, ...]
    writes: tuple[TensorUse, ...]
    sizes: tuple[tuple[str, Dim], ...] = ()
    label: str = ""
    nodes: tuple[str, ...] = ()
    host: tuple[str, bytes] | None = None
    loop: LoopBody | None = None

    @property
    def alone(self) -> bool:
        """Whether nothing may run beside it: a host call returns to Python, a loop has waves of its own."""
        return self.host is not None or self.loop is not None


@dataclass(eq=False)
class MainGraph:
    """`@main` read: nodes in program order (a topological one), and what crosses its border."""

    nodes: list[Node] = field(default_factory=list[Node])
    inputs: list[Boundary] = field(default_factory=list[Boundary])
    outputs: list[Boundary] = field(default_factory=list[Boundary])
    constants: list[NDArray[Any]] = field(default_factory=list[NDArray[Any]])
    shapes: ShapeAnalysis = field(default_factory=ShapeAnalysis)
    slots: int = 0


def element_bytes(dtype: str) -> int:
    """Bytes of one element of a NumPy dtype name, ml_dtypes' included."""
    known = _ELEMENT_BYTES.get(dtype)
    return np.dtype(dtype).itemsize if known is None else known


def dtype_name(type_: TensorType[Attribute], override: str | None = None) -> str:
    """The NumPy name of a tensor's elements; `override` is a `fuseline.dtype` attribute, which says what a signless
    type cannot."""
    return override or _name_of(type_.element_type)


@by_identity
def _name_of(element: Attribute) -> str:
    text = attributes.text(element)
    found = _DTYPES.get(text) or f"int{text.lstrip('i')}"
    if found not in _DTYPES.values() and not found[3:].isdecimal():
        raise FuselineError("E0305", f"tensors of {text} cannot be scheduled", hint="convert them to f32 in the model")
    return found
