"""Few dispatches with `--fusion aggressive`, nothing that only moves data, and a reason of cost on each edge that only
it fuses."""

from __future__ import annotations

import pytest

import fuseline
from tests.models.skeletons import filled

MOST = {
    "mnist_cnn": 4,
    "edge_detection": 2,
    "squeezenet1_1": 20,
    "mobilenet_v2": 25,
    "minilm": 32,
    "vit_tiny": 64,
    "llama_small": 44,
    "deeplabv3_mobilenet_v3_large": 48,
    "resnet50": 28,
    "deeplabv3_mnv2_fp32": 30,
    "bert_base": 63,
    "gpt2": 64,
    "mobilebert": 320,
    "esrgan": 350,
}
"""At most so many: fewer than any system is known to reach end to end."""

COSTS = ("unprofitable", "recompute", "scratch", "parallelism", "cycle")
"""Why the default keeps apart what the aggressive level fuses: its weights, or the groups that follow from them."""

QUICK = 5
"""The first of them run by default, the others are slow."""


def _cases() -> list[object]:
    return [pytest.param(name, marks=() if i < QUICK else pytest.mark.slow) for i, name in enumerate(MOST)]


@pytest.mark.parametrize("name", _cases())
def test_few_dispatches_and_nothing_that_only_moves(name: str):
    path = filled(name)
    found = fuseline.compile(path, target="null", threads=2, fusion="aggressive")
    assert found.stats["dispatches"] <= MOST[name]
    assert [found.stats[key] for key in ("host_ops", "fills", "copies", "standalone_transposes")] == [0, 0, 0, 0]
    default = fuseline.compile(path, target="null", threads=2)
    said = {(decision.producer, decision.consumer): decision.code for decision in default.decisions}
    words = [said.get((one.producer, one.consumer), "none") for one in found.decisions if one.code == "fused"]
    assert set(words) <= {"fused", *COSTS}
    if default.stats["dispatches"] > found.stats["dispatches"]:
        assert not set(words).isdisjoint(COSTS)
