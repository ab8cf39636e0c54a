"""Generated inputs are deterministic, differ by seed, and are valid for what the model does with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx.helper as oh
import pytest

from fuseline.errors import FuselineError
from fuseline.verify.inputs import Hints, generate, hints_of
from tests.graphs.onnx_text import onnx_model


@dataclass(frozen=True)
class _Input:
    name: str
    dtype: np.dtype[Any]
    shape: tuple[int | str | None, ...]
    type: str = ""


def _one(name: str, dtype: str, *shape: int | str | None, seed: int = 0, hints: Hints | None = None) -> np.ndarray:
    return generate([_Input(name, np.dtype(dtype), shape)], seed=seed, hints=hints)[name]


def test_the_same_seed_gives_the_same_values_and_another_others():
    first = _one("x", "float32", 2, 8)
    assert np.array_equal(first, _one("x", "float32", 2, 8))
    assert not np.array_equal(first, _one("x", "float32", 2, 8, seed=1))
    assert not np.array_equal(first, _one("z", "float32", 2, 8))
    assert first.dtype == np.float32


def test_strings_are_words_and_what_is_no_tensor_must_be_given():
    words = generate([_Input("x", np.dtype(object), (2, 3), "tensor(string)")])["x"]
    assert words.shape == (2, 3) and len(set(words.reshape(-1).tolist())) == 6
    with pytest.raises(FuselineError, match=r"E0202 \[s\].*seq"):
        generate([_Input("s", np.dtype(object), (), "seq(tensor(float32))")])


def test_masks_and_booleans_are_ones():
    assert _one("attention_mask", "int64", 1, 5).all()
    assert _one("flag", "bool", 3).all()


def test_type_ids_are_zero_or_one_and_small_integers_fit():
    assert set(_one("token_type_ids", "int64", 1, 99).ravel()) == {0, 1}
    assert _one("q", "int8", 1000).max() < 128


def test_free_extents_take_their_size_or_a_default():
    assert _one("x", "float32", "batch", "seq", hints=Hints(sizes={"seq": 7})).shape == (1, 7)
    assert _one("x", "float32", None, None).shape == (1, 16)


@pytest.mark.parametrize("other", [(3, "n"), ("n", "n"), ("n", 5, "n")])
def test_a_symbol_has_one_size_in_all_inputs(other: tuple[int | str, ...]):
    inputs = [_Input("x", np.dtype("float32"), ("n", 4)), _Input("y", np.dtype("float32"), other)]
    for given in (inputs, inputs[::-1]):
        made = generate(iter(given))
        assert {made["x"].shape[0], *(made["y"].shape[axis] for axis, size in enumerate(other) if size == "n")} == {16}
    assert generate(inputs, hints=Hints(sizes={"n": 7}))["x"].shape == (7, 4)


@pytest.mark.parametrize("between", [[], ["Cast"], ["Unsqueeze", "Identity"]])
def test_indices_stay_below_the_table_they_are_looked_up_in(between: list[str]):
    names = ["ids", *(f"t{i}" for i in range(len(between)))]
    nodes = "  ".join(f"{names[i + 1]} = {op}({names[i]})" for i, op in enumerate(between))
    nodes += f"  y = Gather<axis = 1>(table, {names[-1]})"
    model = onnx_model(f"(int64[9] ids) => (y) {{ {nodes} }}", table=np.zeros((2, 5), np.float32))
    assert hints_of(model).ranges["ids"] == (0, 5)
    assert _one("ids", "int64", 400, hints=hints_of(model)).max() == 4


def test_a_table_may_be_stored_as_integers():
    nodes = "t = DequantizeLinear(table, scale)  u = Identity(t)  y = Gather(u, ids)"
    text = f"(int64[9] ids) => (y) {{ {nodes} }}"
    model = onnx_model(text, table=np.zeros((7, 5), np.int8), scale=np.array(0.5, np.float32))
    assert hints_of(model).ranges["ids"] == (0, 7)


def test_metadata_overrides():
    model = onnx_model("() => () {}")
    oh.set_model_props(
        model,
        {
            "corpus.inputs": '{"ids": {"lo": 3, "hi": 6}, "x": {}}',
            "corpus.dims": '{"seq": 8}',
            "other.inputs": "not json",
        },
    )
    hints = hints_of(model)
    assert hints.ranges == {"ids": (3, 6)}
    assert hints.sizes == {"seq": 8}
    assert set(_one("ids", "int32", 200, hints=hints)) == {3, 4, 5}
