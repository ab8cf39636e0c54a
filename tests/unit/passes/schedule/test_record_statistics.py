"""What is told of each dispatch comes from the kernel of its own executable."""

from __future__ import annotations

from pathlib import Path

import fuseline

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
    assert program.stats["constant_bytes"] == {"original": 0, "packed": 0}
