"""What a lowering asks of the importer that reads the nodes around its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import onnx_ir as ir
from xdsl.dialects.func import FuncOp

from fuseline.frontends.onnx.assumptions import Assumptions
from fuseline.frontends.onnx.host_ops import HostOps
from fuseline.frontends.onnx.host_values import Value


@dataclass(frozen=True)
class Frame:
    """Where nodes are read: their names, the operator sets in force, and attributes that a function was called with."""

    scope: dict[str, Value]
    opsets: Mapping[str, int]
    attributes: Mapping[str, ir.Attr] = field(default_factory=dict[str, ir.Attr])
    label: str = ""


class NodeImporter(Protocol):
    """Reads the nodes of a model; `functions` are those of loops."""

    assumptions: Assumptions
    host: HostOps
    functions: list[FuncOp]

    def inline(self, graph: ir.Graph, around: Frame) -> list[Value]:
        """The outputs of a subgraph of a node, translated in place; `around` is what the node itself sees."""
        ...
