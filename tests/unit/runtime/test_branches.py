"""A choice between two programs as bytes: what is packed is what runs, and an error is raised when it is taken."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest

from fuseline import executors
from fuseline.buffers import BufferRef, TensorSpec
from fuseline.errors import FuselineError
from fuseline.runtime import host
from fuseline.runtime.artifact import Artifact
from fuseline.runtime.branches import Branch, execute, pack_branches, programs_of

N = ("sum", ((1, "n"),))


def _artifact(kit: Any, *names: str) -> Artifact:
    """A program that applies kernels of one operand, one after the other."""
    places = [BufferRef("input", 0), *(BufferRef("arena", 0, 4096 * i) for i in range(len(names) - 1))]
    places.append(BufferRef("output", 0))
    steps = [
        kit.command(name, places[i : i + 2], N, 1000, barrier=i > 0) for i, name in enumerate(names)
    ]  # as many workgroups as any size here needs
    specs = [TensorSpec(name, "float32", (N,)) for name in ("a", "b")]
    return kit.artifact(specs[:1], specs[1:], steps, arena_bytes=4096 * len(names), symbols={"n": (1, 64)})


def _x() -> Any:
    return np.random.default_rng().standard_normal(np.random.default_rng().integers(1, 60)).astype(np.float32)


@pytest.mark.parametrize("condition", [0, 2])
@pytest.mark.parametrize("operands", [((1,), (1,)), ((1,), (3,)), ((3,), (1,))])
def test_the_condition_says_which_program_runs_on_what(kit: Any, condition: int, operands: tuple[Any, Any]) -> None:
    then, otherwise = (
        Branch(_artifact(kit, *names), reads)
        for names, reads in zip((["double"], ["increment", "double"]), operands, strict=True)
    )
    node = pack_branches(condition, then, otherwise)
    values: list[Any] = [None, _x(), None, _x()]
    for flag, reads, function in (
        (True, operands[0], lambda x: 2 * x),
        (False, operands[1], lambda x: 2 * (x + 1)),
        (True, operands[0], lambda x: 2 * x),
    ):
        values[condition] = np.array(flag) if condition else np.array([flag])
        (found,) = execute(node, values)
        np.testing.assert_allclose(found, function(values[reads[0]]), rtol=1e-6)
    assert [program.steps for program in programs_of(node)] == [
        branch.artifact.program.steps for branch in (then, otherwise)
    ]


@pytest.mark.parametrize("which", [0, 1])
def test_a_branch_that_is_an_error_raises_it_when_it_is_taken(kit: Any, which: int) -> None:
    good: Any = Branch(_artifact(kit, "double"), (1,))
    wrong = FuselineError("E0103", "no such operator", node="odd", hint="write another")
    node = pack_branches(0, *((wrong, good) if which == 0 else (good, wrong)))
    assert len(programs_of(node)) == 1
    x = _x()
    np.testing.assert_allclose(execute(node, [np.array(which == 1), x])[0], 2 * x, rtol=1e-6)
    with pytest.raises(FuselineError) as caught:
        execute(node, [np.array(which == 0), x])
    assert (caught.value.code, caught.value.message, caught.value.node, caught.value.hint) == (
        "E0103",
        "no such operator",
        "odd",
        "write another",
    )


def test_the_bytes_are_as_they_are_described(kit: Any) -> None:
    branches = [Branch(_artifact(kit, name), (i,)) for i, name in ((4, "double"), (2, "increment"))]
    node = pack_branches(7, *branches)
    (size,) = struct.unpack_from("<I", node)
    header = json.loads(node[4 : 4 + size])
    assert header["condition"] == 7
    assert [row[0] for row in header["branches"]] == [[4], [2]]
    assert 4 + size + sum(row[1] for row in header["branches"]) == len(node)


def test_what_a_session_refuses_is_refused(kit: Any) -> None:
    node = pack_branches(0, Branch(_artifact(kit, "double"), (1,)), Branch(_artifact(kit, "double"), (1,)))
    with pytest.raises(FuselineError) as caught:
        execute(node, [np.array(True), np.zeros(65, np.float32)])
    assert (caught.value.code, caught.value.node) == ("E0203", "a")


def test_the_executor_is_known_by_its_name(kit: Any) -> None:
    node = pack_branches(0, Branch(_artifact(kit, "double"), (1,)), Branch(_artifact(kit, "double"), (1,)))
    x = _x()
    (found,) = host.call(host.Call(executors.BRANCHES, node, "choose", [False]), [np.array(True), x], [x])
    np.testing.assert_allclose(found, 2 * x, rtol=1e-6)
