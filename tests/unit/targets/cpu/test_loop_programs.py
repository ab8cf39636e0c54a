"""Loops in programs of hand-written kernels: rows, states, stacks and last states lie where the program around the loop
wants them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import BufferRef, LoopOffset
from fuseline.errors import FuselineError
from fuseline.program.schedule import Schedule
from fuseline.program.steps import CopyStep, FillStep, LoopStep
from fuseline.runtime import Artifact, Session, load
from fuseline.runtime.artifact import read_artifact
from fuseline.runtime.cpu import machine_name
from fuseline.runtime.program import Arm, Command, Loop, Program
from fuseline.runtime.references import check_references
from tests.unit.targets.cpu.hand_kernels import artifact_of, kernels, schedule_of

pytestmark = pytest.mark.skipif(machine_name() != "x86_64", reason="the test kernels are compiled for x86-64")

# state = 2 * (state + row) + 3, a stack of the states from the last row to the first
LOOP = """
func.func @main(%x: tensor<?x?xf32> {fuseline.name = "x", fuseline.dims = ["t", "n"]},
    %h: tensor<?xf32> {fuseline.name = "h", fuseline.dims = ["n"]})
    -> (RESULTS) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %t = tensor.dim %x, %c0 : tensor<?x?xf32>
  %n = tensor.dim %x, %c1 : tensor<?x?xf32>
  %y, %last = func.call @loop(%x, %h, %t, %n) {fuseline.dims = [["t", "n"], ["n"]]}
      : (tensor<?x?xf32>, tensor<?xf32>, index, index) -> (tensor<?x?xf32>, tensor<?xf32>)
  func.return RETURNED
}
func.func private @step(%row: tensor<?xf32> {fuseline.dims = ["n"]}, %h: tensor<?xf32> {fuseline.dims = ["n"]},
    %n: index {fuseline.name = "n"})
    -> (tensor<?xf32>, tensor<?xf32>) {
  %sum = flow.dispatch @two::@two(%row, %h, %n) : (tensor<?xf32>{%n}, tensor<?xf32>{%n}, index) -> tensor<?xf32>{%n}
  %new = flow.dispatch @one::@one(%sum, %n) : (tensor<?xf32>{%n}, index) -> tensor<?xf32>{%n}
  func.return %new, STACKED : tensor<?xf32>, tensor<?xf32>
}
func.func private @loop(%x: tensor<?x?xf32> {fuseline.dims = ["t", "n"]}, %h: tensor<?xf32> {fuseline.dims = ["n"]},
    %t: index {fuseline.name = "t"}, %n: index {fuseline.name = "n"}) -> (tensor<?x?xf32>, tensor<?xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant STEP : index
  %end = arith.subi %t, %c1 : index
  %empty = tensor.empty(%t, %n) : tensor<?x?xf32>
  %all:2 = scf.for %i = %c0 to %t step %c1 iter_args(%ys = %empty, %s = %h) -> (tensor<?x?xf32>, tensor<?xf32>) {
    %back = arith.subi %end, %i : index
    %row = tensor.extract_slice %x[BOX] [1, %n] [1, 1] : tensor<?x?xf32> to tensor<?xf32>
    %new, %more = func.call @step(%row, %s, %n) : (tensor<?xf32>, tensor<?xf32>, index)
        -> (tensor<?xf32>, tensor<?xf32>)
    %y = tensor.insert_slice %PUT into %ys[%back, 0] [1, %n] [1, 1] : tensor<?xf32> into tensor<?x?xf32>
    scf.yield YIELDED : tensor<?x?xf32>, tensor<?xf32>
  }
  func.return %all#0, %all#1 : tensor<?x?xf32>, tensor<?xf32>
}
"""
OUTSIDE = """func.func private @outside(tensor<?xf32>, tensor<?xf32>, index) -> (tensor<?xf32>, tensor<?xf32>)
func.func private @loop("""
DEFAULTS = {
    "RESULTS": 'tensor<?x?xf32> {fuseline.name = "y"}, tensor<?xf32> {fuseline.name = "last"}',
    "RETURNED": "%y, %last : tensor<?x?xf32>, tensor<?xf32>",
    "STACKED": "%sum",
    "STEP": "1",
    "BOX": "%i, 0",
    "PUT": "new",
    "YIELDED": "%y, %new",
}


def text(**changes: str) -> str:
    out = LOOP
    for name, value in {**DEFAULTS, **changes}.items():
        out = out.replace(name, value)
    return out


def artifact(schedule: Schedule, threads: int = 1) -> Artifact:
    """Assembled so that every thread takes part in everything."""
    made = artifact_of(schedule, kernels(), threads=threads)
    return made._replace(program=made.program._replace(serial_below_ns=0, split_above_ns=0))


def feeds(steps: int, n: int) -> dict[str, Any]:
    rng = np.random.default_rng(steps + n)
    return {"x": rng.standard_normal((steps, n), np.float32), "h": rng.standard_normal(n, np.float32)}


def expected(x: Any, h: Any) -> tuple[Any, Any, Any]:
    """The states stacked from the last row to the first, the last state, and the sums stacked."""
    states, sums = list[Any](), list[Any]()
    for row in x:
        sums.append(row + h)
        h = 2 * sums[-1] + 3
        states.append(h)
    return np.array(states[::-1]), h, np.array(sums[::-1])


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("steps", [1, 2, 3, 20])
def test_a_state_that_is_stacked(threads: int, steps: int) -> None:
    session = Session(artifact(schedule_of(text()), threads), threads=threads)
    for n in (1, 50, 700):
        given = feeds(steps, n)
        for _ in range(2):
            out = session.run(given)
            states, last, _ = expected(**given)
            np.testing.assert_allclose(out["y"], states, rtol=1e-4)
            np.testing.assert_allclose(out["last"], last, rtol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("steps", [1, 2, 3, 20])
def test_a_state_in_two_places_in_turn(threads: int, steps: int) -> None:
    session = Session(artifact(schedule_of(text(PUT="more")), threads), threads=threads)
    given = feeds(steps, 90)
    for _ in range(2):
        out = session.run(given)
        _, last, sums = expected(**given)
        np.testing.assert_allclose(out["y"], sums, rtol=1e-4)
        np.testing.assert_allclose(out["last"], last, rtol=1e-4)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("stacked", "fills", "copies"), [("filled", 1, 0), ("put", 2, 1)])
def test_fills_and_inserts_in_the_body_move_too(stacked: str, fills: int, copies: int, threads: int) -> None:
    """Each iteration fills a row of the stack, and may put a part of the row that it reads into it."""
    put = """%few = tensor.extract_slice %row[4] [7] [1] : tensor<?xf32> to tensor<7xf32>
  %put = tensor.insert_slice %few into %filled[2] [7] [1] : tensor<7xf32> into tensor<?xf32>
"""
    ops = f"""  %number = arith.constant 7.5 : f32
  %room = tensor.empty(%n) : tensor<?xf32>
  %filled = linalg.fill ins(%number : f32) outs(%room : tensor<?xf32>) -> tensor<?xf32>
  {put if copies else ""}func.return %new, %{stacked}"""
    body = text(PUT="more", STACKED="%more").replace("func.return %new, %more", ops)
    schedule = schedule_of(body)
    (loop,) = schedule.loops
    assert [sum(isinstance(step, kind) for step in loop.steps) for kind in (FillStep, CopyStep)] == [fills, copies]
    given = feeds(5, 70)
    rows = np.full((5, 70), 7.5, np.float32)
    if copies:
        rows[:, 2:9] = given["x"][::-1, 4:11]
    for _ in range(2):
        out = Session(artifact(schedule, threads), threads=threads).run(given)
        np.testing.assert_array_equal(out["y"], rows)
        np.testing.assert_allclose(out["last"], expected(**given)[1], rtol=1e-4)


def test_a_last_state_that_nobody_reads_has_no_copy() -> None:
    schedule = schedule_of(text(RESULTS='tensor<?x?xf32> {fuseline.name = "y"}', RETURNED="%y : tensor<?x?xf32>"))
    assert [type(step) for step in schedule.steps] == [LoopStep] and schedule.statistics.copies == 0
    given = feeds(5, 40)
    np.testing.assert_allclose(Session(artifact(schedule)).run(given)["y"], expected(**given)[0], rtol=1e-4)


def test_a_loop_is_alone_in_its_wave_and_its_barriers_count_once() -> None:
    schedule = schedule_of(text())
    (loop,) = schedule.loops
    assert [step.wave for step in loop.steps] == [0, 1] and schedule.statistics.waves == 3
    assert all(step.wave != loop.wave for step in schedule.steps if step is not loop)


def test_a_result_that_is_an_operand_is_copied_in_every_iteration() -> None:
    schedule = schedule_of(text(STACKED="%row", PUT="more"))
    given = feeds(4, 33)
    np.testing.assert_array_equal(Session(artifact(schedule, 2), threads=2).run(given)["y"], given["x"][::-1])
    assert schedule.statistics.copies == 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"STEP": "2"}, "steps of 1"),
        ({"BOX": "0, %i", "[1, %n] [1, 1] : tensor<?x?xf32> to": "[%n, 1] [1, 1] : tensor<?x?xf32> to"}, "one piece"),
        ({"YIELDED": "%y, %row"}, "carried value"),
        ({"YIELDED": "%y, %s"}, "body reads|carried value"),
        ({"%all#0, %all#1": "%all#0, %h"}, "at most once"),
        (
            {"func.call @step": "func.call @outside", "func.func private @loop(": OUTSIDE},
            "calls no function of the module",
        ),
        ({"to %t step": "to %c0 step"}, "the loop @loop has no iteration at all"),
        ({"= %c0 to": "= %c1 to"}, "does not count from 0"),
        (
            {"%s = %h)": "%s = %h2)", "%empty = ": "%h2 = tensor.empty(%n) : tensor<?xf32>\n  %empty = "},
            "begin with an arg",
        ),
        ({"PUT": "row"}, "each result of the body at most once"),
        ({"[1, %n] [1, 1] : tensor<?x?xf32> to": "[1, %n] [1, 2] : tensor<?x?xf32> to"}, "one piece"),
    ],
)
def test_other_loops_are_refused(changes: dict[str, str], message: str) -> None:
    with pytest.raises(FuselineError, match=message) as error:
        schedule_of(text(**changes))
    assert error.value.code == "E0305"


def test_a_loop_that_does_not_run_at_all_is_refused_when_it_is_fed() -> None:
    """One row less than there are: of one row none is left."""
    program = artifact(schedule_of(text().replace("to %t step", "to %end step")), 2)
    Session(program, threads=2).run(feeds(4, 33))
    with pytest.raises(FuselineError, match="size 0 must be at least 1") as error:
        Session(program, threads=2).run(feeds(1, 33))
    assert error.value.code == "E0203"


def test_saved_and_loaded(tmp_path: Path) -> None:
    made = artifact(schedule_of(text()), 2)
    made.save(tmp_path / "m.fuse")
    assert read_artifact(tmp_path / "m.fuse").program == made.program
    given = feeds(6, 100)
    np.testing.assert_array_equal(load(tmp_path / "m.fuse").run(given)["y"], Session(made).run(given)["y"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lag": 2}, "begins nowhere"),
        ({"lag": 1}, "begins nowhere"),
        ({"lag": 1, "special": BufferRef("arena"), "at": 1}, "begins nowhere"),
        ({"stride": 1 << 40}, "lies outside"),
        ({"stride": 1 << 40, "alternates": True}, "lies outside"),
        ({"stride": -4}, "lies outside"),
        ({"special": BufferRef("arena", 0, 1 << 40)}, "lies outside"),
    ],
)
def test_loop_offsets_that_lead_out_of_memory_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_offset(LoopOffset(**change))
    check_offset(LoopOffset(64))


def test_a_binding_in_a_loop_without_a_loop_offset_is_refused() -> None:
    with pytest.raises(ValueError, match="without a loop offset"):
        check_offset()


def check_offset(*offsets: LoopOffset) -> None:
    """Check a loop of six iterations whose only binding lies at the start of an arena of 4096 bytes."""
    arm = Arm(0, (BufferRef("arena"),), (), 1, 0, offsets)
    program = Program((), (), (Loop(6, (Command((arm,)),)),), arena_bytes=4096)
    check_references(program, 8, {"run": 0, "worker": 0}, [])


def test_arms_inside_a_loop_move_too() -> None:
    """A kernel in two arms, each with an extra constant of its own: what an arm binds at a distance moves with the
    loop."""
    from fuseline.ir import dim as d
    from fuseline.targets.compiled_kernel import KernelArm, joined_kernel

    one = kernels()["one"]
    arm = KernelArm(one, (0,), ((0, 0),), (("s0", d.symbol("s0")),))
    both = {**kernels(), "one": joined_kernel("one", [arm, replace(arm, kernel=replace(one))])}
    made = artifact_of(schedule_of(text()), both)
    given = feeds(5, 64)
    np.testing.assert_allclose(Session(made).run(given)["y"], expected(**given)[0], rtol=1e-4)
