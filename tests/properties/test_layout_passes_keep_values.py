"""Random graphs keep their values, their provenance and their form (a second run changes nothing) under every layout
and padding pass."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.printer import Printer

from fuseline.evaluation import evaluate_module
from fuseline.ir.context import new_context
from fuseline.ir.provenance import provenance
from fuseline.passes.cleanup.canonicalize import CanonicalizePass
from fuseline.passes.cleanup.cse import CsePass
from fuseline.passes.cleanup.dead_code import DeadCodePass
from fuseline.passes.cleanup.fold_constants import FoldConstantsPass
from fuseline.passes.layout.bubble_expand_shapes import BubbleExpandShapesPass
from fuseline.passes.layout.collapse_dims import CollapseDimsPass
from fuseline.passes.layout.convert_convolutions_to_channels_last import ConvertConvolutionsToChannelsLastPass
from fuseline.passes.layout.fold_broadcasts_into_readers import FoldBroadcastsIntoReadersPass
from fuseline.passes.layout.fold_scale_into_weights import FoldScaleIntoWeightsPass
from fuseline.passes.layout.fold_unit_dims import FoldUnitDimsPass
from fuseline.passes.layout.propagate_transposes import PropagateTransposesPass
from fuseline.passes.layout.refine_dims import RefineDimsPass
from fuseline.passes.layout.sink_collapse_shapes import SinkCollapseShapesPass
from fuseline.passes.layout.sink_expand_shapes import SinkExpandShapesPass
from fuseline.passes.padding.fold_pad_into_consumer import FoldPadIntoConsumerPass
from fuseline.passes.padding.fold_pad_into_producer import FoldPadIntoProducerPass
from fuseline.passes.padding.pad_to_tile import PadToTilePass
from tests.properties.random_layout_graphs import GraphBuilder, Step

ALONE: tuple[ModulePass, ...] = (
    ConvertConvolutionsToChannelsLastPass(),
    PropagateTransposesPass(),
    FoldUnitDimsPass(),
    SinkCollapseShapesPass(),
    BubbleExpandShapesPass(),
    SinkExpandShapesPass(),
    CollapseDimsPass(everywhere=True),
    RefineDimsPass(),
    FoldBroadcastsIntoReadersPass(),
    FoldScaleIntoWeightsPass(),
    FoldPadIntoConsumerPass(),
    FoldPadIntoProducerPass(),
    PadToTilePass(oh=4, ow=4, oc=8, ic=8, m=4, n=8, k=16),
)
TOGETHER: tuple[ModulePass, ...] = (
    ConvertConvolutionsToChannelsLastPass(),
    FoldUnitDimsPass(),
    SinkCollapseShapesPass(),
    PropagateTransposesPass(),
    FoldConstantsPass(),
    BubbleExpandShapesPass(),
    SinkCollapseShapesPass(),
    SinkExpandShapesPass(),
    SinkCollapseShapesPass(),
    CollapseDimsPass(),
    RefineDimsPass(),
    FoldBroadcastsIntoReadersPass(),
    PropagateTransposesPass(),
    FoldUnitDimsPass(),
    FoldScaleIntoWeightsPass(),
    FoldPadIntoConsumerPass(),
    DeadCodePass(),
)
CLEAN_UP: tuple[ModulePass, ...] = (CanonicalizePass(), CsePass())
SHAPES = ((1, 4, 6, 6), (2, 3, 4, 5), (6, 4), (1, 12))
SYMBOLIC = ((DYNAMIC_INDEX, DYNAMIC_INDEX, 4), (DYNAMIC_INDEX, 6), (1, DYNAMIC_INDEX, 2, 6))
number = st.integers(0, 63)
steps = st.lists(st.tuples(number, number, number), min_size=1, max_size=10)


def nodes(module: ModuleOp) -> set[str]:
    """Every source node that an op of `module` names."""
    return {node for op in module.walk() for node in provenance(op)}


def check(
    pipeline: Sequence[ModulePass], program: list[Step], seed: int, shapes: Sequence[Sequence[int]] = SHAPES
) -> None:
    """`pipeline` on the program that `program` spells keeps what must be kept."""
    ctx = new_context()
    builder = GraphBuilder(ctx, shapes, seed)
    module = builder.run(program)
    module.verify()
    inputs, before = builder.inputs(), nodes(module)
    expected = evaluate_module(module, inputs, ctx.resources)
    for step in pipeline:
        step.apply(ctx, module)
        module.verify()
    for left, right in zip(evaluate_module(module, inputs, ctx.resources), expected, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-4)
    assert before <= nodes(module) | set(ctx.records.eliminated)
    assert set(ctx.records.eliminated.values()) <= {step.name for step in pipeline}
    main = next(op for op in module.ops if isinstance(op, FuncOp))
    lost = [
        op for op in main.body.block.ops if op.name.partition(".")[0] in ("linalg", "tensor") and not provenance(op)
    ]
    assert not [op.name for op in lost if op.name not in ("tensor.dim", "tensor.collapse_shape", "tensor.empty")]


@pytest.mark.parametrize("one", ALONE, ids=lambda one: one.name)
@given(program=steps, seed=st.integers(0, 7))
@settings(max_examples=25, deadline=None)
def test_one_pass_keeps_values(one: ModulePass, program: list[Step], seed: int) -> None:
    check([one], program, seed)


@given(program=steps, seed=st.integers(0, 7))
@settings(max_examples=80, deadline=None)
def test_all_passes_keep_values(program: list[Step], seed: int) -> None:
    check(TOGETHER, program, seed)


@given(program=steps, seed=st.integers(0, 7))
@settings(max_examples=50, deadline=None)
def test_symbolic_sizes_keep_values(program: list[Step], seed: int) -> None:
    check(TOGETHER, program, seed, SYMBOLIC)


def printed(module: ModuleOp) -> str:
    """The module as text."""
    stream = StringIO()
    Printer(stream).print_op(module)
    return stream.getvalue()


@pytest.mark.parametrize("one", ALONE, ids=lambda one: one.name)
@given(program=steps, seed=st.integers(0, 7))
@settings(max_examples=12, deadline=None)
def test_running_a_pass_again_changes_nothing(one: ModulePass, program: list[Step], seed: int) -> None:
    ctx = new_context()
    module = GraphBuilder(ctx, SHAPES, seed).run(program)
    again = (*CLEAN_UP, one, *CLEAN_UP, *CLEAN_UP, DeadCodePass())  # what cleanup makes possible is no second chance
    for step in again:
        step.apply(ctx, module)
    once = printed(module)
    for step in again:
        step.apply(ctx, module)
    assert printed(module) == once
