"""Operators of onnxruntime's own domain as functions of standard ones, written for the ranks and sizes that one call
has.

What needs no sizes is spelled out before the model is read (`contrib.py`); what none of the rules can express runs on
the host in onnxruntime.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

import onnx_ir as ir
from onnx import helper

from fuseline.frontends.onnx.contrib_bodies.body import BODIES, NARROW, OPSET, ContribBody
from fuseline.frontends.onnx.node import OnnxNode


def contrib_body(node: OnnxNode) -> tuple[ir.Function, Mapping[str, int]] | None:
    """The function that `node` calls, with its operator sets; None where there is no rule for the operator.

    Raises:
        NoNativeLowering: the rule does not cover the call.
    """
    _discover()
    rule = BODIES.get(node.op_type)
    if rule is None:
        return None
    body = ContribBody(node)
    outputs = body.named_outputs(rule(body))
    imports = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    proto = helper.make_function("com.microsoft", node.op_type, body.names, outputs, body.nodes, imports)
    return ir.from_proto(proto), {**node.opsets, "": OPSET}


def takes_halves(op_type: str) -> bool:
    """Whether the body of an operator is to have 16-bit floats as they are."""
    _discover()
    return op_type in NARROW


@cache
def _discover() -> None:
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
