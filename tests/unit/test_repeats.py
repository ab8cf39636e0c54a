"""What compiles the programs that the host repeats, and what it notes of them."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType, f32
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Region

from fuseline import executors
from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.interop import repeated_texts
from fuseline.ir.repeat import RepeatNode, declare_repeat, decoded
from fuseline.repeats import compile_repeats, record_repeats
from fuseline.report.records import CompileRecord, HostOpRecord
from fuseline.runtime import host

BODY = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = arith.addf %x, %x : tensor<2xf32>
  return %y : tensor<2xf32>
}
"""
NODE = RepeatNode({"counted": True, "states": 1, "reads": {"body": [1]}}, {"body": BODY})
OPERANDS = [np.array(0), np.array(3), np.array(1), np.array([1.5, -2], np.float32)]


repeated_texts.install()


def _module() -> tuple[ModuleOp, FuncOp]:
    type_ = TensorType(f32, [2])
    declared = declare_repeat("host.For.0", "For", NODE, [type_], [type_])
    block = Block(arg_types=[type_])
    call = CallOp("host.For.0", list(block.args), [type_])
    block.add_ops([call, ReturnOp(*call.res)])
    return ModuleOp([FuncOp("main", ([type_], [type_]), Region(block)), declared]), declared


def _data(declared: FuncOp) -> bytes:
    text = declared.attributes["fuseline.onnx_node"]
    assert isinstance(text, StringAttr)
    return base64.b64decode(text.data)


def _run(executor: str, node: bytes) -> Any:
    return host.executor(executor)(node, OPERANDS)[0]


def test_a_declaration_has_the_programs_as_text():
    _, declared = _module()
    assert decoded(_data(declared)) == NODE and declared.attributes["fuseline.executor"] == StringAttr(
        executors.REPEAT_TEXTS
    )
    np.testing.assert_array_equal(_run(executors.REPEAT_TEXTS, _data(declared)), [12, -16])


def test_programs_are_compiled_and_packed():
    module, declared = _module()
    found = compile_repeats(module, CompileOptions(threads=1), compile_program)
    assert declared.attributes["fuseline.executor"] == StringAttr(executors.REPEATS)
    np.testing.assert_array_equal(_run(executors.REPEATS, _data(declared)), [12, -16])
    ((loop, programs),) = found.items()
    record = CompileRecord(host_ops=[HostOpRecord(node=loop, op_type="For", reason="computed")])
    record_repeats(record, loop, programs)
    assert record.statistics["host_ops"] == 1 and "programs of 1 dispatches" in record.notes[0]
