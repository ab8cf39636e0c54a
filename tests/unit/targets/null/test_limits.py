"""The limits of a described target: no dispatch is beyond them, what is refused is on record, and an op that none takes
is an error."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.report.explain import explain_model
from fuseline.report.records import CompileRecord
from fuseline.targets import create_target
from tests.draws import RNG
from tests.graphs.onnx_builder import FLOAT, Builder

LAYER = """
name = "toy"
[limits]
"""


def _layer() -> onnx.ModelProto:
    """A product, bias, relu, and the norm of its rows."""
    b = Builder(3)
    product = b.node("MatMul", "x", b.weight(24, 16))
    relu = b.node("Relu", b.node("Add", product, b.weight(16)))
    mean = b.node("ReduceMean", relu, b.constant([-1]), keepdims=1)
    return b.model({"x": (FLOAT, (32, 24))}, {b.node("Sub", relu, mean): (32, 16)})


def _target(folder: Path, limits: str) -> str:
    path = folder / "toy.toml"
    path.write_text(LAYER + limits, encoding="utf-8")
    return f"null:{path}"


def _record(folder: Path, limits: str) -> CompileRecord:
    return fuseline.compile(_layer(), target=_target(folder, limits)).record


def _sizes(record: CompileRecord) -> list[int]:
    return sorted(len(dispatch.members) for dispatch in record.dispatches)


def test_without_limits_the_layer_is_one_dispatch(tmp_path: Path):
    (size,) = _sizes(_record(tmp_path, ""))
    assert size > 3


@pytest.mark.parametrize("most", [1, 2, 3])
def test_members(tmp_path: Path, most: int):
    record = _record(tmp_path, f"members = {most}")
    assert max(_sizes(record)) == most
    refused = [decision for decision in record.decisions if decision.code == "target"]
    assert refused and all(
        decision.detail
        == f"members-limit: {decision.numbers['members']:.0f} members, the target takes {most} (toy.toml:4)"
        for decision in refused
    )
    assert all(decision.numbers["members"] > most == decision.numbers["limit_members"] for decision in refused)
    assert any("missed for target" in line for line in explain_model(record).lines)


def test_a_limit_that_is_met_exactly_refuses_nothing(tmp_path: Path):
    whole = len(_record(tmp_path, "").dispatches[0].members)
    assert _sizes(_record(tmp_path, f"members = {whole}")) == [whole]
    assert len(_sizes(_record(tmp_path, f"members = {whole - 1}"))) > 1


@pytest.mark.parametrize(
    ("enough", "less", "code"),
    [
        ("operands = 3", "operands = 2", "operands-limit"),
        ("results = 1", None, ""),
        ("loops = 3", None, ""),
        ("code_bytes = 4000", "code_bytes = 100", "code-bytes-limit"),
    ],
)
def test_other_counts(tmp_path: Path, enough: str, less: str | None, code: str):
    assert len(_sizes(_record(tmp_path, enough))) == 1
    if less is not None:
        record = _record(tmp_path, less)
        assert len(record.dispatches) > 1
        assert {decision.detail.partition(":")[0] for decision in record.decisions if decision.code == "target"} == {
            code
        }


def test_results(tmp_path: Path):
    b = Builder(3)
    relu = b.node("Relu", "x")
    model = b.model({"x": (FLOAT, (32, 24))}, {relu: (32, 24), b.node("Neg", relu): (32, 24)})
    assert len(fuseline.compile(model, target=_target(tmp_path, "results = 2")).record.dispatches) == 1
    record = fuseline.compile(model, target=_target(tmp_path, "results = 1")).record
    assert len(record.dispatches) == 2
    assert any(decision.detail.startswith("results-limit: 2 results") for decision in record.decisions)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("loops = 2", "contraction.*loops-limit: 3 loops, the target takes 2"),
        ("code_bytes = 1", "code-bytes-limit"),
    ],
)
def test_an_op_that_no_dispatch_may_hold_is_an_error_with_its_node(tmp_path: Path, limits: str, said: str):
    with pytest.raises(FuselineError, match=rf"E0307 \[(MatMul|n)[^\]]*\]: .*{said}") as caught:
        _record(tmp_path, limits)
    assert caught.value.code == "E0307" and caught.value.hint


def test_an_op_that_reads_too_much_runs_on_the_host(tmp_path: Path):
    record = _record(tmp_path, "operands = 1")
    reasons = {one.op_type: one.reason for one in record.host_ops}
    assert "2 operands, the target takes 1 (" in reasons["MatMul"] and "toy.toml:4" in reasons["MatMul"]


@pytest.mark.parametrize("operands", (2, 3, 4, 5))
def test_a_node_that_reads_too_much_is_made_of_its_function_body(tmp_path: Path, operands: int):
    width = int(RNG.integers(5, 40))
    b = Builder(int(RNG.integers(100)))
    norm = b.node("LayerNormalization", b.node("Add", "x", "y"), b.weight(width), b.weight(width), axis=-1)
    model = b.model({"x": (FLOAT, (7, width)), "y": (FLOAT, (7, width))}, {norm: (7, width)})
    record = fuseline.compile(model, target=_target(tmp_path, f"operands = {operands}")).record
    assert not record.host_ops
    assert (len(record.dispatches) == 1) == (operands >= 4)


def test_kinds_and_types_that_are_all_there_refuse_nothing(tmp_path: Path):
    limits = 'kinds = ["contraction", "elementwise", "reduction"]\nelement_types = ["f32"]'
    assert _sizes(_record(tmp_path, limits)) == _sizes(_record(tmp_path, ""))


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("member = 4", "member limits nothing"),
        ("members = 0", "members is no positive integer: 0"),
        ('members = "4"', "members is no positive integer"),
        ("members = true", "members is no positive integer"),
        ('kinds = "contraction"', "kinds = 'contraction'"),
        ("kinds = []", "kinds = "),
        ('kinds = ["matmul"]', "kinds = .*contraction"),
        ('element_types = ["float"]', "element_types = .*f32"),
    ],
)
def test_what_limits_nothing_is_refused(tmp_path: Path, limits: str, said: str):
    with pytest.raises(FuselineError, match=f"E0501.*{said}"):
        create_target(_target(tmp_path, limits))


def test_limits_that_are_no_table_are_refused(tmp_path: Path):
    path = tmp_path / "toy.toml"
    path.write_text("limits = 4", encoding="utf-8")
    with pytest.raises(FuselineError, match="E0501.*limits is no table"):
        create_target(f"null:{path}")


@pytest.mark.parametrize("strict", [False, True])
def test_a_plan_cannot_waive_a_limit(tmp_path: Path, strict: bool):
    plan = tmp_path / "plan.toml"
    from fuseline.compilation import emit
    from fuseline.pipeline import CompileOptions

    plan.write_text(emit(_layer(), CompileOptions(target="null", emit="plan")), encoding="utf-8")
    assert (
        len(fuseline.compile(_layer(), target=_target(tmp_path, ""), plan=plan, plan_strict=strict).record.dispatches)
        == 1
    )
    with pytest.raises(FuselineError, match="E0703.*target: members-limit: "):
        fuseline.compile(_layer(), target=_target(tmp_path, "members = 2"), plan=plan, plan_strict=strict)
