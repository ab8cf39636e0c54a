"""A result that grew to whole tiles is cut where it is stored."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from xdsl.dialects import math

from fuseline.compilation import lower
from fuseline.ir.context import new_context
from fuseline.phase_runner import run_phases
from fuseline.pipeline import CompileOptions
from fuseline.targets.interpreter.target import InterpreterTarget

from .programs import TARGET, Program

TILED = replace(TARGET, tile_multiples=(("M", 8), ("N", 16)))


def test_a_slice_behind_a_root_and_its_epilogue():
    p = Program((64, 32), (32, 48))
    p.done(p.columns(p.unary(p.matmul(p.x[0], p.x[1])), 0, 45))
    (group,) = p.partition(TILED).groups
    assert group.grid == (64, 48) and len(group.results()) == 1
    decision = p.decisions(TILED)["elementwise", "slice"]
    assert (decision.rule, decision.verdict) == ("slice-epilogue", "fused")


def test_what_others_read_is_stored_too():
    p = Program((64, 32), (32, 48))
    m = p.matmul(p.x[0], p.x[1])
    p.done(p.columns(m, 3, 40), m)
    (group,) = p.partition(TILED).groups
    assert len(group.results()) == 2


def test_a_target_that_takes_any_size_computes_what_it_stores():
    p = Program((64, 32), (32, 48))
    p.done(p.columns(p.matmul(p.x[0], p.x[1]), 0, 45))
    decision = p.decisions(replace(TARGET, tile_multiples=(("M", 1),)))["contraction", "slice"]
    assert decision.verdict == "missed" and decision.rule != "slice-epilogue"


def test_a_reshape_that_regroups_stops_it():
    p = Program((64, 32), (32, 48))
    rows = p.expand(p.collapse(p.matmul(p.x[0], p.x[1])), 32, 96)
    decision = p.done(p.columns(rows, 0, 45)).decisions(TILED)["contraction", "slice"]
    assert (decision.verdict, decision.code) == ("missed", "reshape-between")


def test_what_is_read_in_place_is_cut_by_its_reader():
    """A slice of a concat that is read in place moves what its parts hold: no root stores anything."""
    p = Program((64, 32), (64, 16))
    p.done(p.columns(p.concat(p.unary(p.x[0]), p.x[1]), 5, 40))
    assert all(decision.rule != "slice-epilogue" for decision in p.partition(TILED).decisions)


def test_a_program_of_whole_tiles_on_the_interpreter():
    """Rows and columns that are no multiples of the tiles: one dispatch, with NumPy's numbers."""
    p = Program((61, 30), (30, 45))
    p.done(p.unary(p.matmul(p.x[0], p.x[1]), math.TanhOp))
    target, ctx, options = InterpreterTarget(), new_context(), CompileOptions(target="interpreter")
    ctx.target = replace(target.description, tile_multiples=TILED.tile_multiples)
    run_phases(p.module, ctx, options)
    (dispatch,) = ctx.records.dispatches
    assert dispatch.loops == ("64", "48", "30")
    session = lower(p.module, ctx, options, target).session()  # pyright: ignore[reportAttributeAccessIssue]
    rng = np.random.default_rng(5)
    x, w = rng.standard_normal((61, 30)).astype(np.float32), rng.standard_normal((30, 45)).astype(np.float32)
    (result,) = session.run(dict(zip((spec.name for spec in session.inputs), (x, w), strict=True))).values()
    np.testing.assert_allclose(result, np.tanh(x @ w), rtol=1e-4, atol=1e-5)
