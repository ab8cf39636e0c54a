"""Both branches of an `If` become programs of its own; what cannot be compiled stays with the host."""

from __future__ import annotations

import base64
from functools import cache
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from fuseline import executors
from fuseline.branches import compile_branches, record_branches
from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.phase_runner import run_phases
from fuseline.report.records import CompileRecord, HostOpRecord, decode
from fuseline.runtime.artifact import Artifact
from fuseline.runtime.branches import execute
from fuseline.source_program import prepare
from fuseline.targets import create_target
from tests.graphs.onnx_text import onnx_model

OPTIONS = CompileOptions(threads=1, shapes={"n": 4})
WEIGHT = np.arange(6, dtype=np.float32).reshape(2, 3)


def _outlined(condition: str = "k") -> tuple[ModuleOp, CompilerContext]:
    text = f"""(float[n, 2] x, bool k) => (y) {{
      [choose] y = If({condition}) <then_branch = a () => (u) {{ u = Softmax(x) }},
                                   else_branch = b () => (v) {{ v = MatMul(x, w) }}>
    }}"""
    target = create_target("cpu", 1)
    module, ctx = prepare(onnx_model(text, w=WEIGHT), CompileOptions(threads=1), target)
    run_phases(module, ctx, CompileOptions(threads=1))
    return module, ctx


def _declared(module: ModuleOp) -> FuncOp:
    (found,) = [op for op in module.ops if isinstance(op, FuncOp) and "fuseline.host_op" in op.attributes]
    return found


@cache
def _program(op: str) -> Artifact:
    return compile_program(onnx_model(f"(float[n, 2] x) => (y) {{ y = {op}(x) }}"), CompileOptions(threads=1))


class _Compiler:
    """Compiles branches in order as `answers` says, and remembers what it was asked."""

    def __init__(self, *answers: Artifact | FuselineError) -> None:
        self.answers, self.asked = list(answers), list[tuple[Any, CompileOptions]]()

    def __call__(self, branch: Any, options: CompileOptions) -> Artifact | FuselineError:
        self.asked.append((branch, options))
        answer = self.answers[len(self.asked) - 1]
        if isinstance(answer, FuselineError) and answer.code.startswith(("E03", "E09")):
            raise answer
        return answer


def test_the_host_operator_runs_either_program():
    module, ctx = _outlined()
    compiler = _Compiler(_program("Neg"), _program("Abs"))
    found = compile_branches(module, ctx, OPTIONS, compiler)
    assert found == {"choose": [_program("Neg"), _program("Abs")]}
    assert [len(branch.operands) for branch, _ in compiler.asked] == [1, 1]
    assert all(options.shapes is None and options.threads == 1 for _, options in compiler.asked)
    function = _declared(module)
    assert function.attributes["fuseline.executor"] == StringAttr(executors.BRANCHES)
    node = function.attributes["fuseline.onnx_node"]
    assert isinstance(node, StringAttr)
    x = np.random.default_rng().standard_normal((4, 2)).astype(np.float32)
    reads = {branch.operands for branch, _ in compiler.asked}
    (place,) = reads.pop()
    for condition, expected in ((True, -x), (False, np.abs(x))):
        operands: list[Any] = [np.array(condition)] * 2
        operands[place] = x
        np.testing.assert_array_equal(execute(base64.b64decode(node.data), operands)[0], expected)


@pytest.mark.parametrize("which", [0, 1])
def test_a_branch_that_no_run_can_take_is_an_error_of_its_own(which: int):
    module, ctx = _outlined()
    answers: list[Any] = [_program("Neg"), _program("Neg")]
    answers[which] = FuselineError("E0103", "no such operator", node="odd")
    assert compile_branches(module, ctx, OPTIONS, _Compiler(*answers)) == {"choose": [_program("Neg")]}
    assert _declared(module).attributes["fuseline.executor"] == StringAttr(executors.BRANCHES)


def test_two_such_branches_stay_with_the_host():
    module, ctx = _outlined()
    before = dict(_declared(module).attributes)
    wrong = FuselineError("E0103", "no such operator")
    assert compile_branches(module, ctx, OPTIONS, _Compiler(wrong, wrong)) == {}
    assert _declared(module).attributes == before


def test_a_branch_that_is_refused_stays_with_the_host():
    module, ctx = _outlined()
    before = dict(_declared(module).attributes)
    assert compile_branches(module, ctx, OPTIONS, _Compiler(FuselineError("E0307", "too large"))) == {}
    assert _declared(module).attributes == before


def test_a_failure_of_our_own_is_raised():
    module, ctx = _outlined()
    with pytest.raises(FuselineError, match="broken"):
        compile_branches(module, ctx, OPTIONS, _Compiler(FuselineError("E0901", "broken")))


@pytest.mark.parametrize("change", ["no record", "another operator", "no node"])
def test_what_is_no_if_is_left_alone(change: str):
    module, ctx = _outlined()
    function, compiler = _declared(module), _Compiler()
    if change == "no record":
        ctx.records.host_ops.clear()
    elif change == "another operator":
        function.attributes["fuseline.host_op"] = StringAttr("Loop")
    else:
        del function.attributes["fuseline.onnx_node"]
    assert compile_branches(module, ctx, OPTIONS, compiler) == {} and not compiler.asked


def _record() -> CompileRecord:
    hosts = [("choose", "inside If"), ("choose", "another reason"), ("other", "inside If")]
    return CompileRecord(host_ops=[HostOpRecord(node=n, op_type="Foo", reason=r) for n, r in hosts])


@pytest.mark.parametrize("names", [["Neg"], ["Neg", "Det"]])
def test_what_was_found_inside_takes_the_place_of_what_was_noted(names: list[str]):
    record = _record()
    programs = [_program(name) for name in names]
    record_branches(record, "choose", programs)
    inner = [decode(program.records) for program in programs]
    expected = [("choose", "another reason"), ("other", "inside If")]
    expected += [(host.node, host.reason) for one in inner for host in one.host_ops]
    assert [(host.node, host.reason) for host in record.host_ops] == expected
    assert record.statistics["host_ops"] == len(expected) == 2 + ("Det" in names)
    (note,) = record.notes
    counts = " and ".join(str(len(one.dispatches)) for one in inner)
    assert note.startswith(f"choose: the branches are programs of {counts} dispatches")
    assert note.endswith("no run can take the other one") == (len(names) == 1)
