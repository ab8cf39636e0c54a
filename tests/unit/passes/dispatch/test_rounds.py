"""Several rounds of fusion: what a later one makes of the regions that it finds, which round decided what, and regions
that are malformed."""

from __future__ import annotations

from pathlib import Path

import pytest

import fuseline
from fuseline.cli.run_passes import run_passes
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.text import parse_module
from fuseline.passes.registry import parse_passes
from fuseline.pipeline import PASS_PHASES
from fuseline.report.explain import decision_line
from fuseline.report.records import CompileRecord, Decision
from tests.small_models import SMALL_MODELS

BEFORE = "cleanup,layout,padding,materialize-fills,clone-reads"
FORM = "form-dispatch-regions"

CHAIN = """
func.func @main(%x: tensor<9x6xf32>, %w: tensor<6x7xf32>) -> tensor<9x7xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x7xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
  %m = linalg.matmul ins(%x, %w : tensor<9x6xf32>, tensor<6x7xf32>) outs(%z : tensor<9x7xf32>) -> tensor<9x7xf32>
  %a = linalg.elementwise <abs> ins(%m : tensor<9x7xf32>) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
  %b = linalg.elementwise <exp> ins(%a : tensor<9x7xf32>) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
  return %b : tensor<9x7xf32>
}
"""

GIVEN = """
func.func @main(%x: tensor<9x6xf32>, %w: tensor<6x7xf32>) -> tensor<9x7xf32> {
  %c0 = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<9x7xf32>
  %z = linalg.fill ins(%c0 : f32) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
  %m = linalg.matmul ins(%x, %w : tensor<9x6xf32>, tensor<6x7xf32>) outs(%z : tensor<9x7xf32>) -> tensor<9x7xf32>
  %r = flow.dispatch.region -> (tensor<9x7xf32>) {
    %a = linalg.elementwise <abs> ins(%m : tensor<9x7xf32>) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
    %b = linalg.elementwise <exp> ins(%a : tensor<9x7xf32>) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
    flow.return RETURNED
  }
  return %r : tensor<9x7xf32>
}
"""


ATTRIBUTES = """-> (tensor<9x7xf32>) attributes {fuseline.members = ["m.0"],
  fuseline.loops = {grids = [["9", "7"]], members = [array<i64: 0, 1>]}} {"""


def _rounds(text: str, *passes: str) -> tuple[CompileRecord, int]:
    """What is on record after the passes, and how many regions there are."""
    ctx = new_context()
    module = parse_module(text, ctx)
    for step in parse_passes(",".join(("cleanup", *passes)), PASS_PHASES):
        step.apply(ctx, module)
        module.verify()
    return ctx.records, sum(isinstance(op, DispatchRegionOp) for op in module.walk())


def _fused(record: CompileRecord) -> dict[tuple[str, str], Decision]:
    return {(d.producer_op, d.consumer_op): d for d in record.decisions if d.verdict == "fused"}


def test_a_round_extends_the_regions_of_the_one_before_and_says_who_decided_what():
    first, regions = _rounds(CHAIN, f"{FORM}{{rules=elementwise-cluster}}")
    assert regions == 2 and first.fusion_rounds == 1
    record, regions = _rounds(CHAIN, f"{FORM}{{rules=elementwise-cluster}}", "bubble-expand-shapes", FORM)
    assert regions == 1 and record.fusion_rounds == 2 and [len(group) for group in record.groups] == [3]
    found = {edge: (one.rule, one.round) for edge, one in _fused(record).items()}
    assert found == {
        ("elementwise", "elementwise"): ("elementwise-cluster", 1),
        ("contraction", "elementwise"): ("elementwise-epilogue", 2),
    }
    assert "[elementwise-epilogue, round 2]" in decision_line(_fused(record)["contraction", "elementwise"])


def test_a_round_without_rules_leaves_everything():
    record, regions = _rounds(CHAIN, FORM, f"{FORM}{{level=none}}")
    assert regions == 1 and {d.round for d in record.decisions} == {1}


def test_what_a_round_may_not_do_is_left_apart():
    _, regions = _rounds(CHAIN, f"{FORM}{{level=none}}", f"{FORM}{{without=elementwise-epilogue}}")
    assert regions == 2


def test_a_region_of_the_input_is_a_node_like_any_other():
    text = GIVEN.replace("RETURNED", "%b : tensor<9x7xf32>")
    record, regions = _rounds(text, FORM)
    assert regions == 1 and not record.host_ops
    found = {edge: (one.rule, one.round) for edge, one in _fused(record).items()}
    assert found["elementwise", "elementwise"] == ("region", 0)
    assert found["contraction", "elementwise"] == ("elementwise-epilogue", 1)
    _, regions = _rounds(text, f"{FORM}{{level=none}}")
    assert regions == 2
    missed = [d for d in _rounds(text, f"{FORM}{{rules=row-chain}}")[0].decisions if d.verdict == "missed"]
    assert missed and "host-op" not in {d.code for d in missed}


def test_a_region_of_ops_that_fusion_does_not_know_stays():
    text = GIVEN.replace("RETURNED", "%b : tensor<9x7xf32>")
    text = text.replace(
        "%a = linalg.elementwise <abs>", '%a = "test.opaque"(%m) : (tensor<9x7xf32>) -> tensor<9x7xf32>\n//'
    )
    ctx = new_context()
    ctx.allow_unregistered = True
    module = parse_module(text, ctx)
    for step in parse_passes(f"generalize-named-ops,{FORM}", PASS_PHASES):
        step.apply(ctx, module)
    assert {d.code for d in ctx.records.decisions} == {"region"}


@pytest.mark.parametrize("name", SMALL_MODELS)
def test_rounds_come_to_no_more_dispatches_than_one(name: str):
    def dispatches(*rounds: str) -> list[tuple[str, ...]]:
        passes = ",".join((BEFORE, *rounds))
        return fuseline.compile(SMALL_MODELS[name](), target="null", passes=passes, cache=False).record.groups

    once = dispatches(FORM)
    assert dispatches(f"{FORM}{{fusion=none}}", FORM) == once
    assert len(dispatches(f"{FORM}{{rules=elementwise-cluster}}", "bubble-expand-shapes", FORM)) <= len(once)
    assert len(dispatches(FORM, "bubble-expand-shapes", FORM)) <= len(once)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("flow.return RETURNED", "flow.return"), "flow.return of its results"),
        (("RETURNED", "%e, %b : tensor<9x7xf32>, tensor<9x7xf32>"), "flow.return of its results"),
        (("-> (tensor<9x7xf32>) {", '-> (tensor<9x7xf32>) attributes {fuseline.loops = {grids = [["9"]]}} {'), "read"),
        (
            (
                "-> (tensor<9x7xf32>) {",
                ATTRIBUTES,
            ),
            "has 1 members, the body has 2",
        ),
    ],
)
def test_malformed_regions_are_refused_by_name(change: tuple[str, str], message: str):
    text = GIVEN.replace(*change).replace("RETURNED", "%b : tensor<9x7xf32>")
    with pytest.raises(FuselineError) as caught:
        run_passes(text, f"generalize-named-ops,{FORM}")
    assert caught.value.code == "E0302" and message in str(caught.value)
    places = ["m.0"] if "m.0" in text else ["flow.dispatch.region", f"<input>:{_line_of_the_region(text)}:3"]
    assert caught.value.node in places


def _line_of_the_region(text: str) -> int:
    before = text[: text.index("flow.dispatch.region")]
    return before.count("\n") + 1


def test_a_region_inside_a_region_is_refused():
    inner = "%a = flow.dispatch.region -> (tensor<9x7xf32>) { flow.return %m : tensor<9x7xf32> } //"
    text = GIVEN.replace("%a = linalg.elementwise <abs>", inner).replace("RETURNED", "%b : tensor<9x7xf32>")
    with pytest.raises(FuselineError, match="another dispatch region inside"):
        run_passes(text, f"generalize-named-ops,{FORM}")


def test_a_plan_made_before_another_round_is_refused(tmp_path: Path):
    record, _ = _rounds(CHAIN, f"{FORM}{{level=none}}")
    apart = [name for group in record.groups for name in group]
    plan = tmp_path / "plan.toml"
    plan.write_text(f"version = 1\nforbid = [{apart[1:]}]\n")
    with pytest.raises(FuselineError) as caught:
        _rounds(CHAIN, f"{FORM}{{rules=elementwise-cluster}}", f'{FORM}{{plan="{plan}"}}')
    assert caught.value.code == "E0702" and caught.value.node in apart
    assert "earlier round" in str(caught.value)
    _, regions = _rounds(CHAIN, f"{FORM}{{level=none}}", f'{FORM}{{plan="{plan}"}}')
    assert regions == 2
