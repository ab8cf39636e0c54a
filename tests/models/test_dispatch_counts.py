"""The public models' dispatches do not grow, by default and with `--fusion aggressive`. Nothing only moves data, and
each edge that only the latter fuses has a reason of cost."""

from __future__ import annotations

from collections.abc import Iterable

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

DEFAULT = {
    "mnist_cnn": (4, 4),
    "edge_detection": (2, 2),
    "squeezenet1_1": (21, 21),
    "mobilenet_v2": (35, 35),
    "minilm": (26, 38),
    "vit_tiny": (27, 27),
    "llama_small": (18, 58),
    "deeplabv3_mobilenet_v3_large": (52, 52),
    "resnet50": (40, 40),
    "resnet50_int8": (36, 38),
    "deeplabv3_mnv2_fp32": (39, 39),
    "deeplabv3_mnv2_int8": (39, 39),
    "lstm_small": (5, 5),
    "bert_base": (62, 86),
    "gpt2": (74, 86),
    "mobilebert": (74, 76),
    "esrgan": (350, 350),
}
"""At most so many by default, on one thread and on two: a change that lowers one writes it down here."""

COSTS = ("unprofitable", "recompute", "scratch", "parallelism", "cycle", "indexing-map")
"""Why the default keeps apart what the aggressive level fuses: its weights, or the groups that follow from them (what
picks rows of a bias is not in step with the root that the bias belongs to)."""

MOVED = ("host_ops", "fills", "copies", "standalone_transposes")
"""What only moves data, or is not native."""

QUICK = 5
"""The first of them run by default, the others are slow."""


def _cases(names: Iterable[str]) -> list[object]:
    return [pytest.param(name, marks=() if i < QUICK else pytest.mark.slow) for i, name in enumerate(names)]


@pytest.mark.parametrize("threads", (1, 2))
@pytest.mark.parametrize("name", _cases(DEFAULT))
def test_no_more_dispatches_by_default(name: str, threads: int):
    found = fuseline.compile(filled(name), target="null", threads=threads)
    assert found.stats["dispatches"] <= DEFAULT[name][threads - 1]
    assert [found.stats[key] for key in MOVED] == [0] * len(MOVED)


@pytest.mark.parametrize("name", _cases(MOST))
def test_few_dispatches_and_nothing_that_only_moves(name: str):
    path = filled(name)
    found = fuseline.compile(path, target="null", threads=2, fusion="aggressive")
    assert found.stats["dispatches"] <= MOST[name]
    assert [found.stats[key] for key in MOVED] == [0] * len(MOVED)
    default = fuseline.compile(path, target="null", threads=2)
    said = {(decision.producer, decision.consumer): decision.code for decision in default.decisions}
    words = [said.get((one.producer, one.consumer), "none") for one in found.decisions if one.code == "fused"]
    assert set(words) <= {"fused", *COSTS}
    if default.stats["dispatches"] > found.stats["dispatches"]:
        assert not set(words).isdisjoint(COSTS)
