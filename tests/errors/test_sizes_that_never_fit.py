"""Inputs whose sizes contradict each other are refused when the model is read, by node and with the sizes: nothing is
read beyond its end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import fuseline
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.one_node import by_onnxruntime, one_node

Array = NDArray[Any]


def normal(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


def places(*shape: int) -> Array:
    return RNG.integers(0, 2, shape)


LSTM = [
    normal(4, 2, 3),
    normal(1, 20, 3),
    normal(1, 20, 5),
    normal(1, 40),
    np.array([4, 2], np.int32),
    normal(1, 2, 5),
    normal(1, 2, 5),
    normal(1, 15),
]
CASES: dict[str, tuple[str, list[Array], dict[str, Any], str]] = {
    "updates of ScatterND": ("ScatterND", [normal(4, 4), places(2, 1), normal(2, 3)], {}, "updates have sizes"),
    "no updates of ScatterND": ("ScatterND", [normal(4, 4), places(2, 1), normal(0, 4)], {}, "updates have sizes"),
    "more axes than the data has": ("ScatterND", [normal(4, 4), places(2, 3), normal(2)], {}, "indices of 3 axes"),
    "updates of ScatterElements": (
        "ScatterElements",
        [normal(4, 4), places(2, 4), normal(3, 4)],
        {"axis": 0},
        "updates have sizes",
    ),
    "an axis that is not 1": ("Squeeze", [normal(2, 3)], {}, "size 2"),
    "a window that is too large": ("MaxPool", [normal(1, 2, 3, 8)], {"kernel_shape": [5, 4]}, "a window of"),
    "a window of nothing": ("AveragePool", [normal(1, 2, 0, 8)], {"kernel_shape": [2, 2]}, "a window of"),
    "a filter that is too large": ("Conv", [normal(1, 2, 3, 8), normal(3, 2, 5, 5)], {}, "a window of"),
    "another hidden size": ("LSTM", LSTM[:3], {"hidden_size": 4}, "hidden_size is 4"),
    **{
        f"LSTM's {name}": (
            "LSTM",
            [*LSTM[:i], LSTM[i][..., :-1], *LSTM[i + 1 :]],
            {"hidden_size": 5},
            f"{name} has sizes",
        )
        for i, name in ((1, "W"), (3, "B"), (4, "sequence_lens"), (5, "initial_h"), (6, "initial_c"), (7, "P"))
    },
    "scales of groups": (
        "GroupNormalization",
        [normal(1, 4, 3), normal(3), normal(4)],
        {"num_groups": 2},
        "2 groups of 4 channels",
    ),
    "groups that leave a rest": (
        "GroupNormalization",
        [normal(1, 4, 3), normal(4), normal(4)],
        {"num_groups": 3},
        "3 groups of 4 channels",
    ),
    "parts of a Concat": ("Concat", [normal(2, 3), normal(3, 3)], {"axis": 1}, "one part has sizes"),
    "parts of a Concat, one of them empty": ("Concat", [normal(2, 3), normal(2, 0)], {"axis": 0}, "one part has sizes"),
    "ranks of a Concat": ("Concat", [normal(2, 3), normal(3)], {"axis": 0}, "one part has sizes"),
    "directions": (
        "GRU",
        [normal(4, 2, 3), normal(1, 15, 3), normal(1, 15, 5)],
        {"hidden_size": 5, "direction": "bidirectional"},
        "W has sizes",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_it_is_refused(name: str):
    op_type, inputs, attributes, message = CASES[name]
    held = {1} if op_type == "Squeeze" else set[int]()
    given = [*inputs, np.array([0])] if op_type == "Squeeze" else inputs
    with pytest.raises(FuselineError, match=f"E0107 .node.: .*{message}"):
        fuseline.compile(one_node(op_type, given, attributes, opset=21, constants=held), target="null")


def test_the_same_layer_with_sizes_that_fit():
    assert fuseline.compile(one_node("LSTM", LSTM, {"hidden_size": 5}), target="null").stats["host_ops"] == 0


@pytest.mark.parametrize("shape", [(3, 4), (0, 4)])
def test_quantising_zeros_divides_by_nothing(shape: tuple[int, int]):
    x = np.zeros(shape, np.float32)
    proto = one_node("DynamicQuantizeLinear", [x], outputs=3)
    for found, wanted in zip(
        fuseline.compile(proto, threads=1).run({"i0": x}).values(), by_onnxruntime(proto, {"i0": x}), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("op_type", ["ScatterND", "ScatterElements"])
def test_nothing_to_scatter_leaves_the_data(op_type: str):
    data = normal(4, 3)
    indices, updates = (places(0, 1), normal(0, 3)) if op_type == "ScatterND" else (places(0, 3), normal(0, 3))
    found = fuseline.compile(one_node(op_type, [data, indices, updates]), threads=1).run(
        {"i0": data, "i1": indices, "i2": updates}
    )
    np.testing.assert_array_equal(found["o0"], data)
