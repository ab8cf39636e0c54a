"""The programs of loops whose end only the run knows: each compiled as a program of its own; the host repeats them."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp

from fuseline import executors
from fuseline.compile_options import CompileOptions
from fuseline.ir.provenance import provenance
from fuseline.ir.repeat import MlirText, decoded
from fuseline.report.records import CompileRecord, decode

if TYPE_CHECKING:
    from fuseline.runtime.artifact import Artifact

CompileProgram = Callable[[Any, CompileOptions], "Artifact"]


def compile_repeats(
    module: ModuleOp, options: CompileOptions, compile_program: CompileProgram
) -> dict[str, list[Artifact]]:
    """Compile what the host repeats, and answer the programs by loop. Raises FuselineError for what has no form in
    them."""
    declared = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and _is_text(op)}
    if not declared:
        return {}
    found: dict[str, list[Artifact]] = {}
    options = replace(options, shapes=None, plan=None, progress=None, after_pass=None)
    for call in [op for op in module.walk() if isinstance(op, CallOp)]:
        function = declared.get(call.callee.string_value())
        if function is not None:
            label = ", ".join(provenance(call)) or call.callee.string_value()
            found[label] = _install(function, label, options, compile_program)
    return found


def _is_text(function: FuncOp) -> bool:
    return function.attributes.get("fuseline.executor") == StringAttr(executors.REPEAT_TEXTS)


def _install(function: FuncOp, label: str, options: CompileOptions, compile_program: CompileProgram) -> list[Artifact]:
    from fuseline.runtime.repeats import pack_repeat

    data = function.attributes["fuseline.onnx_node"]
    assert isinstance(data, StringAttr)
    node = decoded(base64.b64decode(data.data))
    programs = {name: compile_program(MlirText(text, label), options) for name, text in node.texts.items()}
    packed = base64.b64encode(pack_repeat(node.header, programs)).decode()
    function.attributes["fuseline.onnx_node"] = StringAttr(packed)
    function.attributes["fuseline.executor"] = StringAttr(executors.REPEATS)
    return [*programs.values()]


def record_repeats(record: CompileRecord, loop: str, programs: list[Artifact]) -> None:
    """Note what the programs of a loop are, and what of them runs on the host."""
    inner = [decode(program.records) for program in programs]
    record.host_ops += [host for one in inner for host in one.host_ops]
    record.statistics["host_ops"] = len(record.host_ops)
    counts = " and ".join(str(len(one.dispatches)) for one in inner)
    record.notes.append(
        f"{loop}: a loop whose end only the run knows; the host repeats programs of {counts} dispatches"
    )
