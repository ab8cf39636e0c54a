"""What a lowering sees of its node: inputs, attributes, and the place where it emits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import onnx_ir as ir
from xdsl.ir import SSAValue

from fuseline.frontends.onnx.attribute_values import text_of
from fuseline.frontends.onnx.host_values import KnownSequence, Value
from fuseline.frontends.onnx.node_importer import Frame, NodeImporter
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import Emitter
from fuseline.ir.dim import Dim


@dataclass(eq=False)
class OnnxNode:
    """One node under translation. `attributes` are resolved (no references to a function's attributes remain); `scope`
    holds the values that subgraphs may read by name, `opsets` and `outer` what operator sets and function attributes
    hold inside them. An input that is a sequence stands in `sequences`, by its number, and is None among `inputs`."""

    importer: NodeImporter
    program: Program
    source: ir.Node
    label: str
    inputs: list[Tensor | None]
    attributes: Mapping[str, ir.Attr]
    opset: int
    provenance: tuple[str, ...] = field(default=())
    scope: Mapping[str, Value] = field(default_factory=dict[str, Value])
    opsets: Mapping[str, int] = field(default_factory=dict[str, int])
    outer: Mapping[str, ir.Attr] = field(default_factory=dict[str, ir.Attr])
    sequences: Mapping[int, KnownSequence] = field(default_factory=dict[int, KnownSequence])

    @property
    def op_type(self) -> str:
        """The operator."""
        return self.source.op_type

    @property
    def output_count(self) -> int:
        """How many outputs the node names (an empty name counts)."""
        return len(self.source.outputs)

    def wants_output(self, index: int) -> bool:
        """Whether the output exists and something names it."""
        return index < len(self.source.outputs) and bool(self.source.outputs[index].name)

    @cached_property
    def emit(self) -> Emitter:
        """Emits at the end of the program with this node's provenance."""
        return Emitter.at_end(self.program.block, self.provenance)

    def inline(self, graph: ir.Graph) -> list[Value]:
        """The outputs of a subgraph of the node, translated in place.

        Raises:
            InvalidSubgraph: a node inside is wrong, whatever the inputs are.
            NoNativeLowering: something inside is unsupported; the node as a whole may still run on the host.
        """
        return self.importer.inline(graph, Frame(dict(self.scope), self.opsets, self.outer, self.label))

    def only_way(self) -> bool | None:
        """The only way that the node, an `If` over sizes, can go (`assumptions.py`); None where both may be."""
        return self.importer.assumptions.way(self.source, self.scope, self.program, self.label)

    # -- sizes ---------------------------------------------------------------------------------------------------------

    def broadcast(self, *shapes: Sequence[Dim]) -> tuple[Dim, ...]:
        """The sizes that all `shapes` broadcast to; raises like `broadcasting.broadcast_dim`."""
        return self.program.broadcasting.dims(shapes, self.take_equal)

    def take_equal(self, left: Dim, right: Dim) -> None:
        """Note that the node takes two sizes to be equal, where one of them may be 1 alone."""
        self.program.take_equal(left, right, self.label)

    # -- inputs --------------------------------------------------------------------------------------------------------

    def __getitem__(self, index: int) -> Tensor:
        """Input `index`, which must be there."""
        found = self.get(index)
        if found is None:
            raise NoNativeLowering("missing-input", f"input {index} is left out")
        return found

    def get(self, index: int) -> Tensor | None:
        """Input `index`, None where it is left out."""
        return self.inputs[index] if index < len(self.inputs) else None

    def sequence(self, index: int) -> KnownSequence:
        """Input `index`, a sequence that is known."""
        if index not in self.sequences:
            raise NoNativeLowering("missing-input", f"input {index} is no known sequence")
        return self.sequences[index]

    def value(self, index: int) -> Value:
        """Input `index`, a sequence that is known or a tensor, which must be there."""
        return self.sequences.get(index) or self[index]

    @property
    def values(self) -> list[Value | None]:
        """All inputs, sequences among them."""
        return [self.sequences.get(number, t) for number, t in enumerate(self.inputs)]

    def present(self) -> list[Tensor]:
        """All inputs that are there."""
        return [t for t in self.inputs if t is not None]

    def ssa(self, t: Tensor) -> SSAValue:
        """`t` as an SSA value."""
        return self.program.ssa(t, self.emit)

    def index(self, dim: Dim) -> SSAValue:
        """A size as an index value."""
        return self.program.index(dim, self.emit)

    # -- attributes ----------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether the attribute is given."""
        return name in self.attributes

    def _value(self, name: str, default: Any) -> Any:
        attribute = self.attributes.get(name)
        return default if attribute is None else attribute.value

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        return int(self._value(name, default))

    def number(self, name: str, default: float = 0.0) -> float:
        """A float attribute, as the f32 that the file holds; the default rounded to one too, as it is in ONNX's
        schemas."""
        return float(np.float32(self._value(name, default)))

    def text(self, name: str, default: str = "") -> str:
        """A string attribute; raises FuselineError (E0105) for one that the operator does not know."""
        return (
            text_of(self._value(name, default), self.op_type, name, self.label) if name in self.attributes else default
        )

    def integers(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """A list of integers."""
        return [int(v) for v in self._value(name, default)]

    def numbers(self, name: str) -> list[float]:
        """A list of floats, empty where it is left out."""
        return [float(v) for v in self._value(name, ())]

    def texts(self, name: str) -> list[str]:
        """A list of strings."""
        return [text_of(v, self.op_type, name, self.label) for v in self._value(name, ())]

    def axis(self, name: str, default: int, rank: int) -> int:
        """An axis attribute, counted from the front."""
        return normal_axis(self.integer(name, default), rank)

    def ints_or_input(self, name: str, index: int) -> list[int] | None:
        """Integers that older operator sets have as an attribute and newer ones as an input; None where neither is
        given.

        Raises:
            NoNativeLowering: the input is computed at run time.
        """
        if self.has(name):
            return self.integers(name)
        t = self.get(index)
        return None if t is None else [int(v) for v in t.numbers().reshape(-1).tolist()]


def normal_axis(axis: int, rank: int) -> int:
    """`axis` counted from the front; raises NoNativeLowering outside the rank."""
    if not -rank <= axis < max(rank, 1):
        raise NoNativeLowering("axis-out-of-range", f"axis {axis} of rank {rank}")
    return axis + rank if axis < 0 else axis
