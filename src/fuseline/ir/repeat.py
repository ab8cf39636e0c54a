"""Loops whose end only the run knows, as calls of the host that repeat programs of their own.

    %r = scf.while ..     =>     func.call @host.While.<n>(states, what it reads from outside)
                                 func.func private @host.While.<n> {fuseline.executor = "repeat-texts", ..}

The declaration has the programs as MLIR text (`fuseline.onnx_node`).

The compiler compiles the programs (`fuseline.repeats`); what they do is said by `runtime/repeats.py`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Region

from fuseline import executors


@dataclass(frozen=True)
class MlirText:
    """A program as MLIR text; `name` is what errors call it."""

    text: str
    name: str


@dataclass(frozen=True)
class RepeatNode:
    """`header` as `runtime/repeats.py` has it, and the programs by name."""

    header: Mapping[str, Any]
    texts: Mapping[str, str]

    def encoded(self) -> str:
        """As an attribute has it."""
        return base64.b64encode(json.dumps({"header": self.header, "texts": self.texts}).encode()).decode()


def decoded(data: bytes) -> RepeatNode:
    """The node that `RepeatNode.encoded` wrote, its base64 undone."""
    said = json.loads(data)
    return RepeatNode(said["header"], said["texts"])


def declare_repeat(
    name: str, kind: str, node: RepeatNode, operands: Sequence[Attribute], results: Sequence[Attribute]
) -> FuncOp:
    """The declaration of a host operator that repeats programs; `kind` is what reports call it."""
    declared = FuncOp(name, (list(operands), list(results)), Region(), "private")
    texts = {"host_op": kind, "onnx_node": node.encoded(), "executor": executors.REPEAT_TEXTS}
    declared.attributes |= {f"fuseline.{key}": StringAttr(text) for key, text in texts.items()}
    return declared
