"""Whole networks as exporters spell them."""

from __future__ import annotations

import pytest
from benchmarks.shufflenets import shufflenet_v1, shufflenet_v2
from benchmarks.tf_deeplab import Spelling, tf_deeplab

from tests.draws import RNG
from tests.optimized import checked


def _seed() -> int:
    return int(RNG.integers(1 << 30))


@pytest.mark.parametrize("spelling", [Spelling(), Spelling(depth=True, clip=True, merged=True)])
def test_tf_deeplab(spelling: Spelling):
    found = checked(tf_deeplab(33, 0.25, spelling, classes=5, seed=_seed()), interpreted=False)
    assert found.operators["Transpose"] == 2  # the image, and the logits, which are a result
    assert found.summary.done["dilations"] == 3
    gone = ("Pad", "Reshape", "Slice", "SpaceToDepth", "DepthToSpace", "BatchNormalization", "Min", "Max")
    assert not any(found.operators[name] for name in gone)


@pytest.mark.parametrize("spelling", ["transposed", "sliced"])
@pytest.mark.parametrize("normalized", [False, True])
def test_shufflenets(spelling: str, normalized: bool):
    first = checked(shufflenet_v1(128, 3, spelling, normalized=normalized, seed=_seed()), interpreted=False)
    assert not any(first.operators[name] for name in ("Slice", "Unsqueeze", "BatchNormalization"))
    second = checked(shufflenet_v2(128, 1.0, spelling, normalized=normalized, seed=_seed()), interpreted=False)
    assert second.summary.done["aligned-channels"] == 4
    assert not any(second.operators[name] for name in ("Unsqueeze", "Split", "BatchNormalization"))
