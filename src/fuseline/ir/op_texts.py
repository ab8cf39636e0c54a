"""The ops behind each source node after each phase, as text for readers: an observer of passes.

texts   ["%3 = tensor.pad ..", "%7 = linalg.generic ..", ..]                     each once
nodes   {"/layer1/conv/Conv": {"input": [0], "layout": [1], ..}, ..}            by source node and phase
"""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.dialects.tensor import EmptyOp
from xdsl.ir import Operation
from xdsl.printer import Printer

from fuseline.ir.context import CompilerContext
from fuseline.ir.flow import DispatchRegionOp, ExecutableOp
from fuseline.ir.printed_after import START
from fuseline.ir.provenance import provenance

_UNTOLD = (ConstantOp, EmptyOp)

LONGEST_TEXT = 4000
"""Letters of one op's text; the rest of it is cut."""

_AROUND = (ModuleOp, FuncOp, ExecutableOp, DispatchRegionOp)
"""Ops that hold others, each of which is told by itself."""


class OpTexts:
    """Called after every pass; keeps what stands after the last one of each of `phases` (its passes by name), and, as
    `input`, before the first. Constants and empty tensors are left out: they belong to too many."""

    def __init__(self, phases: Mapping[str, Sequence[str]]) -> None:
        self.nodes: dict[str, dict[str, list[int]]] = {}
        self._numbers: dict[str, int] = {}
        self._left = Counter({phase: len(names) for phase, names in phases.items()})

    @property
    def texts(self) -> list[str]:
        """The texts that `nodes` has the numbers of."""
        return list(self._numbers)

    def __call__(self, position: str, module: ModuleOp, ctx: CompilerContext) -> None:
        """`position`: `phase/pass`, or `START`."""
        del ctx
        phase = position.partition("/")[0]
        self._left[phase] -= 1
        if position == START or self._left[phase] == 0:
            self._keep(phase, module)

    def _keep(self, phase: str, module: ModuleOp) -> None:
        stream = io.StringIO()
        printer = Printer(stream)
        for op in _told(module):
            start = stream.tell()
            printer.print_op(op)
            text = stream.getvalue()[start:].strip()
            stream.seek(0)
            stream.truncate()
            self._add(phase, provenance(op), text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} ...")

    def _add(self, phase: str, nodes: Sequence[str], text: str) -> None:
        number = self._numbers.setdefault(text, len(self._numbers))
        for node in nodes:
            self.nodes.setdefault(node, {}).setdefault(phase, []).append(number)


def _told(op: Operation) -> Iterator[Operation]:
    """The ops that are told, in order."""
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                if isinstance(inner, _AROUND):
                    yield from _told(inner)
                elif not isinstance(inner, _UNTOLD):
                    yield inner
