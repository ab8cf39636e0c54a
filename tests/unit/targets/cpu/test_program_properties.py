"""Random programs of small kernels: order, waves, arena, command table and threads together compute what NumPy
computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from fuseline.runtime import Session
from tests.unit.targets.cpu.hand_kernels import artifact_of, kernels, schedule_of

SYMBOLS = ("x", "w")


class Call(NamedTuple):
    """A dispatch of one or two earlier values; `reshaped`: its first operand goes through a reshape and back."""

    operands: tuple[int, ...]
    reshaped: bool


@st.composite
def _programs(draw: st.DrawFn) -> tuple[list[Call], list[int]]:
    """Calls over values 0 (the argument), 1 (a constant), then the calls' results; and the values that are returned."""
    calls: list[Call] = []
    for number in range(draw(st.integers(1, 9))):
        operands = draw(st.lists(st.integers(0, number + 1), min_size=1, max_size=2))
        calls.append(Call(tuple(operands), draw(st.booleans())))
    returned = draw(st.lists(st.integers(0, len(calls) + 1), min_size=1, max_size=4))
    return calls, returned


def _text(calls: Sequence[Call], returned: Sequence[int]) -> str:
    t = "tensor<?xf32>"
    lines = [
        "%z = arith.constant 0 : index",
        f"%n = tensor.dim %v0, %z : {t}",
        "%w = arith.constant dense_resource<w> : tensor<48xf32>",
    ]
    lines.append(f"%v1 = tensor.cast %w : tensor<48xf32> to {t}")
    for number, call in enumerate(calls):
        names = [f"%v{i}" for i in call.operands]
        if call.reshaped:
            wide = "tensor<?x1xf32>"
            lines.append(f"%e{number} = tensor.expand_shape {names[0]} [[0, 1]] output_shape [%n, 1] : {t} into {wide}")
            lines.append(f"%k{number} = tensor.collapse_shape %e{number} [[0, 1]] : {wide} into {t}")
            names[0] = f"%k{number}"
        kind, types = ("one", "two")[len(names) - 1], ", ".join([t + "{%n}"] * len(names))
        lines.append(
            f"%v{number + 2} = flow.dispatch @{kind}::@{kind}({', '.join(names)}, %n) : ({types}, index) -> {t}{{%n}}"
        )
    results, types = ", ".join(f"%v{i}" for i in returned), ", ".join([t] * len(returned))
    head = f'func.func @main(%v0: {t} {{fuseline.name = "x", fuseline.dims = ["n"]}}) -> ({types}) {{\n'
    return head + "\n".join(lines) + f"\nfunc.return {results} : {types}\n}}"


def _expected(calls: Sequence[Call], x: NDArray[np.float32], w: NDArray[np.float32]) -> list[NDArray[Any]]:
    values = [x, w]
    for call in calls:
        picked = [values[i] for i in call.operands]
        values.append(picked[0] * 2 + 3 if len(picked) == 1 else picked[0] + picked[1])
    return values


@settings(max_examples=60, deadline=None)
@given(_programs(), st.integers(1, 3), st.integers(0, 1))
def test_random_programs(program: tuple[list[Call], list[int]], threads: int, tiny: int) -> None:
    calls, returned = program
    w = np.random.default_rng(1).standard_normal(48, dtype=np.float32)
    artifact = artifact_of(schedule_of(_text(calls, returned), w=w), kernels(), threads=threads)
    if not tiny:
        artifact = artifact._replace(program=artifact.program._replace(serial_below_ns=0, split_above_ns=0))
    session = Session(artifact)
    for seed in range(3):
        x = np.random.default_rng(seed).standard_normal(48, dtype=np.float32)
        values, out = _expected(calls, x, w), session.run({"x": x})
        for position, value in enumerate(returned):
            np.testing.assert_allclose(out[f"result{position}"], values[value], rtol=1e-4, atol=1e-4)
