"""Random dispatches: independent parts in any order, some returned, some parts of concats; one launch computes what the
interpreter does."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from fuseline.runtime.program import Command
from tests.unit.targets.cpu.arms.programs import check, elementwise, program, random

BODIES = ("%v = math.absf %a0 : f32", "%v = arith.negf %a0 : f32", "%v = math.exp %a0 : f32")


@dataclass(frozen=True)
class Part:
    """A value made of arguments of its own."""

    name: str
    shape: tuple[int, int]
    inputs: dict[str, tuple[int, int]]
    text: str

    @property
    def type(self) -> str:
        """Its MLIR type."""
        return f"tensor<{self.shape[0]}x{self.shape[1]}xf32>"


def _map(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> Part:
    return Part(
        name,
        shape,
        {f"x_{name}": shape},
        elementwise(name, [f"x_{name}"], f"{shape[0]}x{shape[1]}", str(rng.choice(BODIES))),
    )


def _product(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> Part:
    (m, n), k = shape, int(rng.integers(1, 20))
    text = f"""
    %e_{name} = tensor.empty() : tensor<{m}x{n}xf32>
    %f_{name} = linalg.fill ins(%z : f32) outs(%e_{name} : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
    %{name} = linalg.matmul ins(%x_{name}, %w_{name} : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>)
      outs(%f_{name} : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>"""
    return Part(name, shape, {f"x_{name}": (m, k), f"w_{name}": (k, n)}, text)


def _argument(rng: np.random.Generator, name: str, shape: tuple[int, int]) -> Part:
    del rng
    return Part(name, shape, {name: shape}, "")


def _parts(rng: np.random.Generator, stem: str, axis: int) -> list[Part]:
    """Two to four parts that a concat along `axis` could take."""
    other = int(rng.integers(1, 40))
    shapes: list[tuple[int, int]] = []
    for _ in range(int(rng.integers(2, 5))):
        size = int(rng.integers(1, 40))
        shapes.append((size, other) if axis == 0 else (other, size))
    makers = (_map, _product, _argument)
    return [makers[int(rng.integers(0, 3))](rng, f"{stem}{i}", shape) for i, shape in enumerate(shapes)]


def _concat(name: str, parts: list[Part], axis: int) -> tuple[str, str]:
    """A concat and its type."""
    shape = list(parts[0].shape)
    shape[axis] = sum(part.shape[axis] for part in parts)
    type_ = f"tensor<{shape[0]}x{shape[1]}xf32>"
    values, types = ", ".join(f"%{part.name}" for part in parts), ", ".join(part.type for part in parts)
    return f"\n%{name} = tensor.concat dim({axis}) {values} : ({types}) -> {type_}", type_


@pytest.mark.parametrize("seed", range(12))
def test_any_parts_in_any_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    axes = [int(rng.integers(0, 2)) for _ in range(2)]
    concats = [_parts(rng, stem, axis) for stem, axis in zip("pq", axes, strict=True)]
    every = [part for parts in concats for part in parts]
    body = "%z = arith.constant 0.0 : f32" + "".join(every[i].text for i in rng.permutation(len(every)))
    results: dict[str, str] = {part.name: part.type for part in every if part.text and rng.random() < 0.2}
    for name, parts, axis in zip(("c", "d"), concats, axes, strict=True):
        text, results[name] = _concat(name, parts, axis)
        body += text
    order = list(results)
    inputs = {name: shape for part in every for name, shape in part.inputs.items()}
    text = program(inputs, body, {f"%{order[i]}": results[order[i]] for i in rng.permutation(len(order))})
    artifact = check(text, {name: random(shape, i) for i, (name, shape) in enumerate(inputs.items())})
    (step,) = artifact.program.steps
    assert isinstance(step, Command) and len(step.arms) == len(every)
