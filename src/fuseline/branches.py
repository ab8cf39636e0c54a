"""Both branches of an `If` that only the run decides, each a program of its own; the host chooses between them."""

from __future__ import annotations

import base64
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp

from fuseline import executors
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.provenance import provenance
from fuseline.report.records import CompileRecord, decode

if TYPE_CHECKING:
    from fuseline.runtime.artifact import Artifact

CompileBranch = Callable[[Any, CompileOptions], "Artifact | FuselineError"]
"""Compiles a branch (a `BranchModel`) as a program; answers why no run can take it instead, where reading it finds
that."""


def compile_branches(
    module: ModuleOp, ctx: CompilerContext, options: CompileOptions, compile_branch: CompileBranch
) -> dict[str, list[Artifact]]:
    """Compile both branches of each `If` that is left to the host, and answer them by source node; one with a branch
    that cannot be compiled stays as it is."""
    found: dict[str, list[Artifact]] = {}
    calls = [op for op in module.walk() if isinstance(op, CallOp)] if ctx.records.host_ops else []
    declared = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
    for call in calls:
        function = declared.get(call.callee.string_value())
        if function is not None and function.attributes.get("fuseline.host_op") == StringAttr("If"):
            with _left_to_the_host():
                programs = _install_branches(
                    function, replace(options, shapes=None, plan=None, progress=None), compile_branch
                )
                found |= {node: programs for node in provenance(call) if programs}
    return found


@contextmanager
def _left_to_the_host() -> Generator[None]:
    """A refusal inside leaves the operator to the host; a failure of our own (E0901) is none and is raised."""
    try:
        yield
    except FuselineError as error:
        if error.code == "E0901":
            raise


def _install_branches(function: FuncOp, options: CompileOptions, compile_branch: CompileBranch) -> list[Artifact]:
    """Make the declared host operator one that runs either of two programs; answers them (none where it is no such
    operator)."""
    from fuseline.frontends.onnx.branches import branches_of
    from fuseline.runtime.branches import Branch, pack_branches

    node = function.attributes.get("fuseline.onnx_node")
    found = branches_of(base64.b64decode(node.data)) if isinstance(node, StringAttr) else None
    if found is None:
        return []
    compiled = [(compile_branch(branch, options), branch.operands) for branch in (found.then, found.otherwise)]
    then, otherwise = (
        program if isinstance(program, FuselineError) else Branch(program, operands) for program, operands in compiled
    )
    programs = [branch.artifact for branch in (then, otherwise) if isinstance(branch, Branch)]
    if programs:
        function.attributes["fuseline.onnx_node"] = StringAttr(
            base64.b64encode(pack_branches(found.condition, then, otherwise)).decode()
        )
        function.attributes["fuseline.executor"] = StringAttr(executors.BRANCHES)
    return programs


def record_branches(record: CompileRecord, node: str, programs: Sequence[Artifact]) -> None:
    """What was noted of the operators inside `node` gives way to what compiling them found."""
    inner = [decode(program.records) for program in programs]
    record.host_ops = [host for host in record.host_ops if host.node != node or host.reason != "inside If"]
    record.host_ops += [host for branch in inner for host in branch.host_ops]
    record.statistics["host_ops"] = len(record.host_ops)
    counts = " and ".join(str(len(branch.dispatches)) for branch in inner)
    one = "; no run can take the other one" if len(inner) == 1 else ""
    record.notes.append(
        f"{node}: the branches are programs of {counts} dispatches; the host only chooses between them{one}"
    )
