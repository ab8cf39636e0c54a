"""Arms that only share operands: several roots of one kind, and of different kinds."""

from __future__ import annotations

from fuseline.runtime.program import Command
from tests.unit.targets.cpu.arms.programs import check, program, random, record_of


def _matmul(name: str, m: int, k: int, n: int, weight: str) -> str:
    return f"""
    %e_{name} = tensor.empty() : tensor<{m}x{n}xf32>
    %f_{name} = linalg.fill ins(%z : f32) outs(%e_{name} : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>
    %{name} = linalg.matmul ins(%x, %{weight} : tensor<{m}x{k}xf32>, tensor<{k}x{n}xf32>)
      outs(%f_{name} : tensor<{m}x{n}xf32>) -> tensor<{m}x{n}xf32>"""


def test_three_matmuls_of_one_operand() -> None:
    m, k, widths = 37, 29, (45, 33, 45)
    weights = {f"w{i}": random((k, n), i) for i, n in enumerate(widths)}
    body = "%z = arith.constant 0.0 : f32" + "".join(_matmul(f"y{i}", m, k, n, f"w{i}") for i, n in enumerate(widths))
    text = program(
        {"x": (m, k), **{name: w.shape for name, w in weights.items()}}, body, {f"%y{i}": f"tensor<{m}x{n}xf32>" for i, n in enumerate(widths)}
    )
    feeds = {"x": random((m, k), 9), **weights}
    artifact = check(text, feeds, [feeds["x"] @ w for w in weights.values()])
    (step,) = artifact.program.steps
    assert isinstance(step, Command) and len(step.arms) == 3
    assert len({arm.kernel for arm in step.arms}) == 2  # equal arms share their code
    stats = record_of(artifact).statistics
    assert stats["dispatches"] == 1 and stats["executables"] == 2
