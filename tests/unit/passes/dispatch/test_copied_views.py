"""Members of a region that read one reshape of another member read one copy of it: a softmax over groups of what
several products make, whose weights a product sums up, is still a softmax in the body."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from tests.graphs.onnx_text import onnx_model
from tests.native import assert_same, native
from tests.one_node import by_onnxruntime

SIDES, INPUTS = 4, 6


def distribution_head(levels: tuple[int, ...], bins: int) -> onnx.ModelProto:
    """Convolutions of images of `levels[i]` by 3, joined along their points; of each side of each point's box the
    expected bin, as detectors predict it (X. Li et al., Generalized Focal Loss, 2020)."""
    rng = np.random.default_rng(bins)
    points = [3 * level for level in levels]
    weights = {
        f"w{i}": rng.standard_normal((SIDES * bins, INPUTS, 1, 1)).astype(np.float32) for i in range(len(levels))
    }
    declared = ", ".join(f"float[1, {INPUTS}, {level}, 3] x{i}" for i, level in enumerate(levels))
    flat = "\n".join(
        f"c{i} = Conv(x{i}, w{i})  s{i} = Constant<value_ints = [1, {SIDES * bins}, {count}]>()"
        f"  r{i} = Reshape(c{i}, s{i})"
        for i, count in enumerate(points)
    )
    return onnx_model(
        f"""({declared}) => (float[1, {SIDES}, {sum(points)}] y) {{
            {flat}
            joined = Concat<axis = 2>({", ".join(f"r{i}" for i in range(len(levels)))})
            grouped = Constant<value_ints = [1, {SIDES}, {bins}, {sum(points)}]>()
            t = Reshape(joined, grouped)
            by_bin = Transpose<perm = [0, 2, 1, 3]>(t)
            p = Softmax<axis = 1>(by_bin)
            expected = Conv(p, numbers)
            sides = Constant<value_ints = [1, {SIDES}, {sum(points)}]>()
            y = Reshape(expected, sides)
        }}""",
        weights,
        numbers=np.arange(bins, dtype=np.float32).reshape(1, bins, 1, 1),
    )


@pytest.mark.parametrize("levels", [(24, 7), (8, 4, 2), (5, 5)])
@pytest.mark.parametrize("bins", [5, 8, 16])
def test_a_softmax_of_groups_of_joined_products(levels: tuple[int, ...], bins: int):
    model, rng = distribution_head(levels, bins), np.random.default_rng()
    feeds = {f"x{i}": rng.standard_normal((1, INPUTS, level, 3)).astype(np.float32) for i, level in enumerate(levels)}
    wanted = by_onnxruntime(model, feeds)
    assert wanted[0].std() > 0.1
    assert_same(native(model, feeds), wanted, rtol=1e-4, atol=1e-4)
