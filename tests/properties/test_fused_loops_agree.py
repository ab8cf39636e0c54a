"""What dispatches say of their loops is what their bodies have: derived afresh after every pass, and by code
generation's own axes."""

from __future__ import annotations

from collections.abc import Iterator

import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from fuseline.analysis.structured import is_generic
from fuseline.compile_options import CompileOptions
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE, FusedLoops, from_attribute, members_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir.flow import ExecutableOp
from fuseline.passes.dispatch.outline_executables import entry_of
from fuseline.pipeline import prepare, run_phases
from fuseline.targets import create_target
from fuseline.targets.cpu.families.blocked.structure import structure_of
from fuseline.targets.cpu.families.iteration import Axes
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


def _check_axes(view: DispatchView, loops: FusedLoops) -> None:
    """All loops of a grid loop are one axis to code generation, too."""
    axes, members = Axes(view), members_of(view.entry.body.block)
    of = {op: axes.of_op(op) if is_generic(op) else axes.of_value(op.results[0]) for op in members}
    for arm, grid in enumerate(loops.grids):
        for position, extent in enumerate(grid):
            found = {
                of[op][member.grid_loops.index(position)]
                for op, member in zip(members, loops.members, strict=True)
                if member.arm == arm and position in member.grid_loops
            }
            assert extent == 1 or len(found) == 1, (view.entry.sym_name.data, arm, position)


def _check_grid(view: DispatchView, loops: FusedLoops) -> None:
    """The grid that the family of blocks finds in a dispatch of one arm has all that fusion gave it, units aside. It
    may have more: where fusion gave up a loop because a member has none of it, code generation may evaluate that member
    in place."""
    structure, members = structure_of(view), members_of(view.entry.body.block)
    if len(loops.grids) == 1 and structure.placed:
        given = {
            structure.axes.of_op(op)[loop]
            for op, member in zip(members, loops.members, strict=True)
            for loop, position in enumerate(member.grid_loops)
            if position is not None and loops.grids[0][position] != 1 and op in structure.placed and is_generic(op)
        }
        assert given <= set(structure.grid), view.entry.sym_name.data


@pytest.mark.parametrize("fusion", ["none", "default", "aggressive"])
@pytest.mark.parametrize("name", SMALL_MODELS)
def test_small_models(name: str, fusion: str):
    found = list(_dispatches(_verified(SMALL_MODELS[name](), fusion)))
    assert found
    for view, loops in found:
        _check_axes(view, loops)
        _check_grid(view, loops)


@settings(max_examples=25, deadline=None)
@given(steps=STEPS, seed=st.integers(0, 3))
@example(steps=[(0, 0, 0), (0, 3, 0), (0, 33, 1)], seed=0)  # two results of one value that is read in place
def test_random_models(steps: list[tuple[int, int, int]], seed: int):
    for view, loops in _dispatches(_verified(RandomModel(seed).build(steps))):
        _check_axes(view, loops)
        _check_grid(view, loops)
