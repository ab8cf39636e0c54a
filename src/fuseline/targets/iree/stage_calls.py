"""The calls of IREE's code, complete: what is called, where it runs, and the code and its parameters as constants."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseResourceAttr, IndexType, StringAttr, TensorType, i8
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Region, SSAValue

from fuseline import executors
from fuseline.ir.context import CompilerContext
from fuseline.targets.iree.flow.archive import archive_in_memory
from fuseline.targets.iree.stage_functions import PREFIX, StagedProgram


def complete_calls(
    stages: StagedProgram, ctx: CompilerContext, code: bytes, parameters: Mapping[str, NDArray[Any]], device: str
) -> None:
    """Give each call its first two operands, the module and the archive of its parameters, and declare what it
    calls."""
    archive = archive_in_memory(parameters)
    key = _digest(np.frombuffer(code, np.int8), archive)
    held = {"iree.module": np.frombuffer(code, np.int8), "iree.parameters": archive}
    main = next(op for op in stages.host.ops if isinstance(op, FuncOp) and op.sym_name.data == "main")
    block = main.body.block
    constants: list[SSAValue] = []
    for name, array in held.items():
        type_ = TensorType(i8, [array.size])
        constant = ConstantOp(DenseResourceAttr.from_params(ctx.add_resource(name, array), type_))
        assert block.first_op is not None
        block.insert_op_before(constant, block.first_op)
        constants.append(constant.result)
    for name, call in stages.calls.items():
        indices = [i for i, value in enumerate(call.arguments) if _is_index(value)]
        call.operands = [*constants, *call.arguments]
        node = {"function": name, "key": key, "device": device, "indices": indices}
        stages.host.body.block.add_op(_declaration(call, json.dumps(node).encode()))


def _declaration(call: CallOp, node: bytes) -> FuncOp:
    types = [value.type for value in call.arguments], [value.type for value in call.res]
    name = call.callee.root_reference.data
    declared = FuncOp(name, types, Region(), "private")
    texts = {
        "host_op": name.removeprefix(PREFIX),
        "onnx_node": base64.b64encode(node).decode(),
        "executor": executors.IREE,
    }
    declared.attributes |= {f"fuseline.{key}": StringAttr(text) for key, text in texts.items()}
    return declared


def _is_index(value: SSAValue) -> bool:
    return isinstance(value.type, TensorType) and isinstance(value.type.get_element_type(), IndexType)


def _digest(*arrays: NDArray[np.int8]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        digest.update(array.data)
    return digest.hexdigest()
