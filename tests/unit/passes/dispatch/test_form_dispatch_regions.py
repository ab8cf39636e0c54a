"""What forming regions writes down: fingerprint, numbers of ops, what is gone; and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.flow import DispatchRegionOp
from fuseline.ir.text import parse_module
from fuseline.passes.cleanup.generalize_named_ops import GeneralizeNamedOpsPass
from fuseline.passes.dispatch.form_dispatch_regions import FormDispatchRegionsPass

FUNCTION = """func.func @{name}(%x: tensor<4x6xf32>) -> (tensor<24xf32>, tensor<4xf32>) {{
  %e = tensor.empty() : tensor<4x6xf32>
  %a = linalg.elementwise <{first}> ins(%x : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32> loc("a")
  %b = linalg.elementwise <abs> ins(%a : tensor<4x6xf32>) outs(%e : tensor<4x6xf32>) -> tensor<4x6xf32> loc("b")
  %f = tensor.collapse_shape %b [[0, 1]] : tensor<4x6xf32> into tensor<24xf32> loc("f")
  %g = tensor.extract_slice %x[0, 2] [4, 1] [1, 1] : tensor<4x6xf32> to tensor<4xf32> loc("g")
  return %f, %g : tensor<24xf32>, tensor<4xf32>
}}
"""


def formed(*first: str, fusion: str = "default", **options: Any) -> tuple[CompilerContext, list[DispatchRegionOp]]:
    """The context and the regions of a program of one function per name of an op."""
    ctx = new_context()
    module = parse_module("".join(FUNCTION.format(name=f"f{i}", first=op) for i, op in enumerate(first)), ctx)
    for step in (GeneralizeNamedOpsPass(), FormDispatchRegionsPass(fusion, **options)):
        step.apply(ctx, module)
    return ctx, [op for op in module.walk() if isinstance(op, DispatchRegionOp)]


def test_a_fingerprint_is_that_of_every_function():
    prints = {
        ops: formed(*ops)[0].records.fingerprint for ops in (("exp",), ("exp", "exp"), ("exp", "tanh"), ("tanh", "exp"))
    }
    assert len(set(prints.values())) == 4
    assert prints["exp",] == formed("exp", fusion="none")[0].records.fingerprint


@pytest.mark.parametrize(("fusion", "groups"), [("default", 2), ("none", 6)])
def test_ops_are_counted_over_all_functions(fusion: str, groups: int):
    ctx, regions = formed("exp", "tanh", fusion=fusion)
    assert (ctx.records.fusion, len(regions)) == (fusion, groups)
    assert ctx.records.generic_ops_before == 4
    assert sorted(len(group) for group in ctx.records.groups) == sorted({"default": [3, 3], "none": [1] * 6}[fusion])
    again = formed("exp", "tanh", fusion=fusion)[0].records
    assert again.generic_ops_before == 4


def test_every_op_of_the_graph_is_recorded_with_its_loops_and_sources():
    ctx, _ = formed("exp")
    found = {node.nodes: (node.kind, node.loops) for node in ctx.records.fusion_nodes.values()}
    assert found["a",] == found["b",] == ("elementwise", ("4", "6"))
    assert found["g",][0] == "slice"


def test_a_level_of_fusion_that_there_is_not_is_refused():
    with pytest.raises(FuselineError) as caught:
        formed("exp", fusion="most")
    assert (caught.value.code, caught.value.node) == ("E0304", "form-dispatch-regions")
    assert "'most'" in str(caught.value) and "none, default, aggressive" in str(caught.value.hint)


def test_entries_of_a_plan_that_match_nothing_are_told_or_refused(tmp_path: Path):
    plan = tmp_path / "plan.toml"
    known = next(iter(formed("exp")[0].records.fusion_nodes)).rpartition(".")[2]
    plan.write_text(f'version = 1\n[[group]]\nops = ["{known}"]\n[[group]]\nops = ["copy.0badbeef"]\n')
    ctx, regions = formed("exp", plan=str(plan))
    (warning,) = ctx.records.warnings
    assert regions and "0badbeef" in warning and "skipped" in warning
    with pytest.raises(FuselineError, match="0badbeef") as caught:
        formed("exp", plan=str(plan), plan_strict=True)
    assert caught.value.code == "E0702"
