"""What a rule builds a function's body with, and the table of rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from onnx import numpy_helper

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.contrib import Spelling
from fuseline.frontends.onnx.dtypes import to_onnx
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.subgraphs import node_proto
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, static_size
from fuseline.ir.dim import Dim

OPSET = 21
"""The operator set that bodies are written in."""

Rule: TypeAlias = "Callable[[ContribBody], Sequence[str | None]]"
BODIES: dict[str, Rule] = {}
NARROW: set[str] = set()
"""Operators whose bodies take 16-bit floats as they are, for nothing in them rounds twice."""


def contrib_op(*names: str, wide: bool = True) -> Callable[[Rule], Rule]:
    """Register a rule: it answers the names of the outputs, None for one that it does not compute. Inputs of 16-bit
    floats are f32 in the body where it is `wide`, and what it computes is rounded at the end."""

    def register(rule: Rule) -> Rule:
        BODIES.update(dict.fromkeys(names, rule))
        NARROW.update(() if wide else names)
        return rule

    return register


class ContribBody(Spelling):
    """A body under construction; inputs are called `i0`, `i1`, .., and those that are left out have no name."""

    def __init__(self, node: OnnxNode) -> None:
        proto = node_proto(node.source, node.attributes)
        proto.input[:] = ["" if t is None else f"i{position}" for position, t in enumerate(node.inputs)]
        super().__init__(proto, node.label, OPSET)
        self.tensors, self.wanted, self.program = node.inputs, node.wants_output, node.program
        self.names = [f"i{position}" for position in range(len(node.inputs))]

    # -- inputs --------------------------------------------------------------------------------------------------------

    def tensor(self, index: int) -> Tensor:
        """Input `index`; raises NoNativeLowering where it is left out."""
        found = self.tensors[index] if index < len(self.tensors) else None
        return found if found is not None else self.refuse("missing-input", f"input {index} is left out")

    def dims(self, index: int, rank: int | None = None) -> tuple[Dim, ...]:
        """The sizes of input `index`; raises NoNativeLowering for another rank."""
        t = self.tensor(index)
        return (
            t.dims
            if rank in (None, t.rank)
            else self.refuse("unsupported-rank", f"input {index} has {t.rank} dimensions")
        )

    def size(self, index: int, axis: int) -> int:
        """A size that must be a number."""
        return static_size(self.dims(index)[axis])

    def refuse(self, reason: str, detail: str) -> Any:
        """Raise NoNativeLowering."""
        raise NoNativeLowering(reason, detail)

    def wrong_size(self, detail: str) -> FuselineError:
        """The error (E0107) for sizes that do not belong together."""
        return FuselineError("E0107", detail, node=self.label)

    def check_size(self, index: int, axis: int, size: Dim) -> None:
        """Refuse (E0107) an input with another size along `axis`; of symbols, every run checks it (E0203)."""
        found = self.dims(index)[axis]
        if isinstance(found, int) and isinstance(size, int) and found != size:
            raise self.wrong_size(f"input {index} has size {found} along axis {axis}, {size} is needed")
        if found != size:
            self.program.require_equal(found, size, self.label)

    def check_vector(self, index: int) -> None:
        """Refuse (E0107) an input, where it is given, that is not a number for each element of the last axis of the
        first one: onnxruntime broadcasts none."""
        if not self.input(index):
            return
        if not self.tensor(0).rank or self.tensor(index).rank != 1:
            ranks = f"{self.tensor(0).rank} and {self.tensor(index).rank} dimensions"
            raise self.wrong_size(f"inputs 0 and {index} have {ranks}: 1 or more, and 1 are needed")
        self.check_size(index, 0, self.dims(0)[-1])

    def refuse_inputs(self, *indices: int) -> None:
        """Refuse a call with any of these."""
        for index in indices:
            if self.input(index):
                self.refuse("unsupported-input", f"input {index} is given")

    # -- attributes ----------------------------------------------------------------------------------------------------

    def integer(self, name: str, default: int = 0) -> int:
        """An integer attribute."""
        return int(self.attributes.get(name, default))

    def real_number(self, name: str, default: float) -> float:
        """A float attribute."""
        return float(self.attributes.get(name, default))

    def text(self, name: str, default: str = "") -> str:
        """A text attribute."""
        return self.attributes.get(name, default.encode()).decode()

    def heads(self) -> int:
        """The attribute num_heads; raises NoNativeLowering unless it is positive."""
        found = self.integer("num_heads")
        return found if found > 0 else self.refuse("unsupported-attribute", f"num_heads is {found}")

    # -- nodes ---------------------------------------------------------------------------------------------------------

    def array(self, values: Any, dtype: Any) -> str:
        """A constant."""
        return self.op("Constant", value=numpy_helper.from_array(np.asarray(values, dtype)))

    def ints(self, *values: int) -> str:
        """An int64 vector."""
        return self.array(values, np.int64)

    def like(self, value: float, index: int = 0) -> str:
        """A scalar of the type of input `index`."""
        return self.array(value, self.tensor(index).dtype)

    def sized(self, value: str, axis: int) -> str:
        """The size of `value` along `axis`, as an int64 scalar."""
        return self.op("Squeeze", self.op("Shape", value, start=axis, end=axis + 1), self.ints(0))

    def positions(self, count: str, axes: Sequence[int] = ()) -> str:
        """0, 1, .. below the scalar `count`, with unit dimensions at `axes`."""
        line = self.op("Range", self.array(0, np.int64), count, self.array(1, np.int64))
        return self.op("Unsqueeze", line, self.ints(*axes)) if axes else line

    def split(self, value: str, sizes: Sequence[int], axis: int) -> list[str]:
        """`value` cut along `axis`."""
        edges = np.cumsum([0, *sizes])
        return [
            self.op("Slice", value, self.ints(a), self.ints(b), self.ints(axis)) for a, b in pairwise(edges.tolist())
        ]

    def cast(self, value: str, dtype: Any) -> str:
        """`value` in another element type."""
        return self.op("Cast", value, to=int(to_onnx(np.dtype(dtype))))

    def named_outputs(self, outputs: Sequence[str | None]) -> list[str]:
        """`outputs` as a function lists them; raises NoNativeLowering where one that is asked for is missing."""
        for index in range(len(self.node.output)):
            if self.wanted(index) and (index >= len(outputs) or outputs[index] is None):
                self.refuse("unsupported-output", f"output {index} is asked for")
        return [name or str(outputs[0]) for name in outputs]
