"""Artifacts that hold the weights as the model does: the same program, a smaller file, and nothing believed unseen."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.runtime.artifact import artifact_bytes, artifact_from_bytes, read_artifact
from fuseline.runtime.laid_out import lay_out, source_to_json
from fuseline.weight_layouts import LayoutKey, PackedLayout, WeightSource, fill, packed_bytes, weight_source
from tests.graphs.onnx_text import onnx_model

TIED = """(int64[7] i, float[1, 16, 9, 9] x) => (float[7, 61] scores, float[1, 16, 9, 9] y) <
  float[61, 33] table, float[16, 16, 3, 3] filter> {
  rows = Gather (table, i)
  turned = Transpose <perm = [1, 0]> (table)
  scores = MatMul (rows, turned)
  y = Conv <pads = [1, 1, 1, 1]> (x, filter)
}"""


def _drawn(*shape: int) -> np.ndarray:
    return np.random.default_rng().standard_normal(shape, dtype=np.float32)


def _model() -> tuple[Any, dict[str, np.ndarray], int]:
    weights = {"table": _drawn(61, 33), "filter": _drawn(16, 16, 3, 3)}
    feeds = {"i": np.random.default_rng().integers(0, 61, 7), "x": _drawn(1, 16, 9, 9)}
    return onnx_model(TIED, weights), feeds, sum(array.nbytes for array in weights.values())


def _same_bits(left: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> bool:
    return left.keys() == right.keys() and all(left[name].tobytes() == right[name].tobytes() for name in left)


def test_outputs_are_the_same_bits_and_the_file_holds_each_weight_once(tmp_path: Path):
    model, feeds, weights = _model()
    packed, original = fuseline.compile(model), fuseline.compile(model, weights="original")
    original.save(tmp_path / "original.fuse")
    loaded = fuseline.load(tmp_path / "original.fuse", verify=True)
    expected = packed.run(feeds)
    assert _same_bits(expected, original.run(feeds)) and _same_bits(expected, loaded.run(feeds))
    assert loaded.layout_seconds > 0 == packed.layout_seconds == original.layout_seconds
    stored = {id(s.data): len(s.data) for s in original.session.artifact.sources.values()}
    assert sum(stored.values()) == weights
    assert len(original.to_bytes()) < len(packed.to_bytes())


def test_what_was_loaded_is_saved_as_it_was():
    data = fuseline.compile(_model()[0], weights="original").to_bytes()
    again = artifact_from_bytes(data)
    assert artifact_bytes(again) == data
    assert artifact_bytes(again._replace(sources={})) != data


def test_sizes_of_one_share_the_weights_of_the_fallback():
    text = """(float[n, 24] x) => (float[n, 40] y) <float[24, 40] w> { y = MatMul (x, w) }"""
    model = onnx_model(text, {"w": _drawn(24, 40)})
    artifact = fuseline.compile(model, weights="original").session.artifact
    both = artifact.with_fallback(artifact)
    read = artifact_from_bytes(artifact_bytes(both))
    assert read.fallback is not None
    assert [id(block) for block in read.fallback.constants] == [id(block) for block in read.constants]
    assert read.fallback.sources.keys() == read.sources.keys() == artifact.sources.keys() != set()
    assert len(artifact_bytes(both)) - len(artifact_bytes(artifact)) < 1 << 18


def test_an_artifact_that_ends_within_the_weights_is_refused(tmp_path: Path):
    data = fuseline.compile(_model()[0], weights="original").to_bytes()
    place = tmp_path / "short.fuse"
    place.write_bytes(data[:-100])
    with pytest.raises(FuselineError, match="E0401"):
        fuseline.load(place)


def test_a_changed_weight_is_found_where_it_is_looked_for(tmp_path: Path):
    data = bytearray(fuseline.compile(_model()[0], weights="original").to_bytes())
    data[-50] ^= 1
    place = tmp_path / "changed.fuse"
    place.write_bytes(data)
    with pytest.raises(FuselineError, match=r"E0401.*checksum of constant"):
        read_artifact(place, verify=True)


@pytest.mark.parametrize("weights", ["", "Packed", 3])
def test_another_word_is_refused(weights: Any):
    with pytest.raises(FuselineError, match=r"E0501.*weights"):
        fuseline.compile(_model()[0], weights=weights)


G = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.1, -0.7, 1 / 3), (0.0, 0.0, 1.0))
KEY = LayoutKey(
    (3, 5, 7),
    PackedLayout((4, 6, 8), (4, 3, 2, 8), (1, 0, 3, 2), (G, None, None), PackedLayout((3, 5, 7), (105,), (0,))),
)


def _wanted(number: int = 0, **changes: Any) -> list[Any]:
    """The JSON of a weight of 7x3x5 that is transposed and laid out as `KEY`, with other fields by name."""
    source = WeightSource(np.zeros(420, np.uint8), np.dtype(np.float32), (7, 3, 5), (1, 2, 0), KEY)
    names = ("dtype", "shape", "axes", "dims", "layout")
    fields = dict(zip(names, json.loads(json.dumps(source_to_json(source))), strict=True)) | changes
    return [[number, list(fields.values())]]


def test_a_constant_is_made_as_the_compiler_would():
    weight = _drawn(7, 3, 5)
    constant = weight.transpose(1, 2, 0)
    expected = np.zeros(packed_bytes(constant, KEY), np.uint8)
    fill(constant, KEY, expected)
    (made,), sources = lay_out([weight.reshape(-1).view(np.uint8)], _wanted())
    assert made.tobytes() == expected.tobytes() and list(sources) == [0]


LAYOUT = [[3, 5, 7], [105], [0], [], None]


@pytest.mark.parametrize(
    "wanted",
    [
        _wanted(number=1),
        _wanted(number=-1),
        _wanted(dtype="float64"),
        _wanted(dtype="object"),
        _wanted(dtype=4),
        _wanted(shape=[7, 3, 6]),
        _wanted(shape=[-7, -3, 5]),
        _wanted(axes=[0, 1, 1]),
        _wanted(axes=[0, 1]),
        _wanted(dims=[3, 5, True]),
        _wanted(layout=[[3, 5, 7], [104], [0], [], None]),
        _wanted(layout=[[3, 5, 6], [90], [0], [], None]),
        _wanted(layout=[[3, 5, 7], [105], [1], [], None]),
        _wanted(layout=[[3, 5, 7], [105], [0], [], [[3, 5, 7], [1], [0], [], None]]),
        _wanted(layout=[[3, 5, 7], [105], [0], [None, [[1.0], [1.0, 2.0]], None], None]),
        _wanted(layout=[[3, 5, 7], [105], [0], [None, [], None], None]),
        _wanted(layout=[[3, 5, 7], [105], [0], [None, [["1"] * 5] * 5, None], None]),
        _wanted(layout=LAYOUT[:4]),
        [[0]],
    ],
)
def test_what_a_header_says_wrongly_is_refused(wanted: list[Any]):
    with pytest.raises((ValueError, TypeError, IndexError)):
        lay_out([np.zeros(420, np.uint8)], wanted)


def test_a_part_of_a_weight_has_no_source():
    weight = _drawn(6, 8)
    key = LayoutKey((3, 8), PackedLayout((3, 8), (24,), (0,)))
    assert weight_source(weight[::2], key) is None
    assert weight_source(np.broadcast_to(weight[:1, :1], (3, 8)), key) is None
    turned = weight_source(weight.T, key)
    assert turned is not None and np.shares_memory(turned.data, weight)
    np.testing.assert_array_equal(turned.array, weight.T)
