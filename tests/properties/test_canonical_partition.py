"""The fusion of a model does not depend on how it is written: nodes permuted, everything renamed and the weights
changed, it is the same, ids and reasons included; so a plan made for one export fits another."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fuseline.passes.fusion.plan import plan_text
from fuseline.phase_runner import run_phases
from fuseline.pipeline import CompileOptions
from fuseline.report.records import CompileRecord
from fuseline.source_program import prepare
from fuseline.targets import create_target
from tests.disguise import disguised
from tests.models.skeletons import filled
from tests.properties.random_models import RandomModel
from tests.small_models import SMALL_MODELS


def _fused(model: onnx.ModelProto, level: str = "default", plan: Path | None = None) -> CompileRecord:
    """What fusion records of `model`."""
    options = CompileOptions(target="null", threads=2, fusion=level, plan=plan, plan_strict=True)
    module, ctx = prepare(model, options, create_target("null", 2))
    run_phases(module, ctx, options, until="fusion")
    return ctx.records


def _signature(record: CompileRecord) -> tuple[object, ...]:
    groups = sorted(tuple(sorted(members)) for members in record.groups)
    assert sorted(node for members in groups for node in members) == sorted(record.fusion_nodes), (
        "every op is in one group"
    )
    decisions = [(d.producer, d.consumer, d.rule, d.verdict, d.code, d.numbers) for d in record.decisions]
    return record.fingerprint, sorted(record.fusion_nodes), groups, decisions


numbers = st.integers(0, 40)
programs = st.lists(st.tuples(numbers, numbers, numbers), min_size=2, max_size=12)


@given(program=programs, seed=st.integers(0, 1 << 16))
@settings(max_examples=25)
@example(program=[(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1)], seed=1)  # arguments shared in two groups
@example(
    program=[(0, 13, 0), (0, 35, 0), (0, 0, 0), (0, 37, 0), (23, 19, 19), (23, 0, 17), (0, 0, 0), (23, 5, 25)], seed=0
)  # a product of two values in either order
def test_a_generated_model_fuses_alike_however_it_is_written(program: list[tuple[int, int, int]], seed: int):
    model = RandomModel(seed).build(program)
    assert _signature(_fused(model)) == _signature(_fused(disguised(model, seed + 1)))


@pytest.mark.parametrize("level", ["default", "aggressive"])
@pytest.mark.parametrize("name", SMALL_MODELS)
def test_a_small_model_fuses_alike_however_it_is_written(name: str, level: str):
    model = SMALL_MODELS[name]()
    assert _signature(_fused(model, level)) == _signature(_fused(disguised(model, 5), level))


@pytest.mark.models
@pytest.mark.parametrize("name", ["squeezenet1_1", "mobilenet_v2", "minilm"])
def test_a_shared_model_fuses_alike_however_it_is_written(name: str, tmp_path: Path):
    model = onnx.load(filled(name))
    first = _fused(model)
    other = disguised(model, 17)
    assert _signature(_fused(other)) == _signature(first)
    plan = tmp_path / "plan.toml"
    plan.write_text(plan_text(first))
    followed = _fused(other, plan=plan)
    assert not followed.warnings
    assert _signature(followed)[2] == _signature(first)[2]


@given(program=programs, seed=st.integers(0, 1 << 16))
@settings(max_examples=15)
def test_the_plan_of_a_generated_model_gives_its_partition(program: list[tuple[int, int, int]], seed: int):
    import tempfile

    model = RandomModel(seed).build(program)
    first = _fused(model)
    with tempfile.TemporaryDirectory() as folder:
        plan = Path(folder) / "plan.toml"
        plan.write_text(plan_text(first))
        followed = _fused(disguised(model, seed), plan=plan)
    assert _signature(followed)[2] == _signature(first)[2]
