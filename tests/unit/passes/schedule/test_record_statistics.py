"""What is told of each dispatch comes from the kernel of its own executable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import fuseline
from fuseline.passes.schedule.record_statistics import record_statistics
from fuseline.program.schedule import InPlaceDecision, PackedConstants, Schedule
from fuseline.report.records import CompileRecord, DispatchRecord, MemberRecord
from fuseline.targets.compiled_kernel import CompiledKernel, KernelArm

MATMUL = """func.func @main(%x: tensor<64x32xf32>, %w: tensor<32x48xf32>) -> tensor<64x48xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x48xf32>) -> tensor<64x48xf32>
  %r = linalg.matmul ins(%x, %w : tensor<64x32xf32>, tensor<32x48xf32>) outs(%f : tensor<64x48xf32>)
      -> tensor<64x48xf32>
  return %r : tensor<64x48xf32>
}"""


def test_a_dispatch_says_which_family_took_it(tmp_path: Path) -> None:
    path = tmp_path / "product.mlir"
    path.write_text(MATMUL)
    program = fuseline.compile(path, target="cpu")
    (dispatch,) = program.record.dispatches
    assert dispatch.family and program.stats["families"] == {dispatch.family: 1}
    assert dispatch.workgroups not in ("", "0")
    assert program.stats["launches"] == 1
    assert program.stats["bytes_moved"] == 4 * (64 * 32 + 32 * 48 + 64 * 48)
    assert program.stats["code_bytes"] > 0 and program.stats["executables"] == 1
    assert (program.stats["barriers"], program.stats["host_ops"], program.stats["copies"]) == (0, 0, 0)
    assert program.stats["transient_bytes"] == program.stats["scratch_bytes_max"] * program.record.threads
    assert program.stats["constant_bytes"] == {"original": 0, "packed": 0, "repeated": 0}


def _kernel(family: str, **notes: dict[str, str]) -> CompiledKernel:
    return CompiledKernel("k", b"", family, 1, notes=notes)


@pytest.mark.parametrize(
    ("kind", "kernels", "expected"),
    [
        (
            "contraction",
            [_kernel("loop-nest", refused={"blocked": "a"}, refused_units={"window": "b"})],
            {"blocked": "a"},
        ),
        ("contraction", [_kernel("blocked", refused={"window": "a"}, refused_units={"window": "b"})], {"window": "b"}),
        ("convolution", [_kernel("blocked")], {}),
        (
            "pooling",
            [_kernel("loop-nest", refused={"blocked": "a"}), _kernel("blocked", refused_units={"window": "b"})],
            {"blocked": "a", "window": "b"},
        ),
        ("elementwise", [_kernel("loop-nest", refused={"blocked": "a"})], {}),
    ],
    ids=["whole", "unit", "none", "arms", "no-root"],
)
def test_a_dispatch_says_which_families_refused_it_or_a_part(
    kind: str, kernels: list[CompiledKernel], expected: dict[str, str]
) -> None:
    record, schedule, constants = CompileRecord(), Schedule((), (), (), (), 0), PackedConstants([], {}, {})
    arms = [KernelArm(kernel, (), (), ()) for kernel in kernels]
    whole = replace(kernels[0], arms=arms if len(arms) > 1 else ())
    member = MemberRecord(id="m", kind=kind, role="root")
    record.dispatches = [DispatchRecord(name="d", executable="e", root=kind, members=[member])]
    record_statistics(record, {"e": whole}, schedule, constants)
    assert record.dispatches[0].fallback == expected


TWO_OF_ONE_KIND = """func.func @main(%a: tensor<64x32xf32>, %w: tensor<32x32xf32>, %v: tensor<32x32xf32>)
    -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64x32xf32>) -> tensor<64x32xf32>
  %b = linalg.matmul ins(%a, %w : tensor<64x32xf32>, tensor<32x32xf32>) outs(%f : tensor<64x32xf32>)
      -> tensor<64x32xf32>
  %c = linalg.matmul ins(%b, %v : tensor<64x32xf32>, tensor<32x32xf32>) outs(%f : tensor<64x32xf32>)
      -> tensor<64x32xf32>
  return %c : tensor<64x32xf32>
}"""


def test_code_that_is_not_shared_counts_for_each_dispatch(tmp_path: Path) -> None:
    path = tmp_path / "products.mlir"
    path.write_text(TWO_OF_ONE_KIND)
    stats = {level: fuseline.compile(path, fusion="none", dedup=level).stats for level in ("none", "exact")}
    assert {level: found["executables"] for level, found in stats.items()} == {"none": 2, "exact": 1}
    assert stats["none"]["code_bytes"] == 2 * stats["exact"]["code_bytes"] > 0


def test_results_in_place_and_what_kept_others_apart_are_counted_apart() -> None:
    decisions = [InPlaceDecision(1, 0), InPlaceDecision(3, 2), InPlaceDecision(3, 0, "place-taken")]
    decisions += [InPlaceDecision(4, 5, "read-later"), InPlaceDecision(5, 6, "read-later")]
    record, schedule = CompileRecord(), Schedule((), (), (), (), 0, in_place=tuple(decisions))
    record_statistics(record, {}, schedule, PackedConstants([], {}, {}))
    assert record.statistics["in_place"] == {"taken": 2, "place-taken": 1, "read-later": 2}
