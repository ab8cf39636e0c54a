"""What dispatches say of their loops is what their bodies have, derived afresh after every pass; code generation names
as many classes."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from fuseline.compile_options import CompileOptions
from fuseline.dispatch.arm_entries import split_arms
from fuseline.dispatch.derived_loops import derived_loops
from fuseline.dispatch.executable_entry import entry_of
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops
from fuseline.dispatch.loops_attribute import from_attribute
from fuseline.dispatch.view import DispatchView
from fuseline.ir.flow import ExecutableOp
from fuseline.phase_runner import run_phases
from fuseline.source_program import prepare
from fuseline.targets import create_target
from tests.properties.random_models import RandomModel
from tests.small_models import SMALL_MODELS

STEPS = st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=14)


def _verified(model: onnx.ModelProto, fusion: str = "default") -> ModuleOp:
    """The executables of a model, each pass verified."""
    options = CompileOptions(fusion=fusion, threads=1, verify_each=True)
    module, ctx = prepare(model, options, create_target(options.target, 1, options.numerics))
    run_phases(module, ctx, options)
    return module


def _dispatches(module: ModuleOp) -> Iterator[tuple[DispatchView, FusedLoops]]:
    for op in module.ops:
        if isinstance(op, ExecutableOp):
            view = DispatchView(entry_of(op))
            yield view, from_attribute(view.entry.attributes[LOOPS_ATTRIBUTE], view.shapes.symbols)


def _check_classes(view: DispatchView, loops: FusedLoops) -> None:
    """Different grid loops are different classes to code generation, too."""
    if len(loops.grids) == 1:
        assert len(set(view.classes.grid)) == _moving(loops), view.entry.sym_name.data


def _check_grid(view: DispatchView, loops: FusedLoops) -> None:
    """No loop that the body has in common is left out of the grid."""
    if len(loops.grids) == 1:
        assert _moving(derived_loops(view.entry.body.block, view.shapes)) <= _moving(loops), view.entry.sym_name.data


def _moving(loops: FusedLoops) -> int:
    return sum(extent != 1 for extent in loops.grids[0])


@pytest.mark.parametrize("fusion", ["none", "default", "aggressive"])
@pytest.mark.parametrize("name", SMALL_MODELS)
def test_small_models(name: str, fusion: str):
    found = list(_dispatches(_verified(SMALL_MODELS[name](), fusion)))
    assert found
    for view, loops in found:
        _check_classes(view, loops)
        _check_grid(view, loops)


@settings(max_examples=25, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 3))
@example(steps=[(0, 0, 0), (0, 3, 0), (0, 33, 1)], seed=0)  # two results of one value that is read in place
@example(steps=[(87, 66, 67), (71, 61, 99), (13, 71, 7), (31, 24, 35), (5, 98, 12), (64, 57, 71)], seed=0)  # concats
def test_random_models(steps: list[tuple[int, int, int]], seed: int):
    for view, loops in _dispatches(_verified(RandomModel(seed).build(steps))):
        _check_classes(view, loops)
        _check_grid(view, loops)
        for arm in (DispatchView(arm.entry) for arm in split_arms(view.entry)):
            if arm.said_loops is not None:
                _check_classes(arm, arm.said_loops)
                _check_grid(arm, arm.said_loops)
