"""The peers: equal outputs on a small model, and coded refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from fuseline.errors import FuselineError
from fuseline.interop.peers import PEERS, load_peer
from tests.graphs.onnx_text import onnx_model
from tests.small_models import mlp


@pytest.fixture
def model(tmp_path: Path) -> Path:
    onnx.save(mlp(), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


def test_the_peers_agree_with_each_other(model: Path):
    for name in PEERS:
        pytest.importorskip(name)
    feeds = {"x": np.random.default_rng(2).standard_normal((4, 16), np.float32)}
    first, second = (load_peer(name, model, 1).run(feeds) for name in PEERS)
    for ours, theirs in zip(first.values(), second.values(), strict=True):
        assert np.allclose(ours, theirs, atol=1e-6)


def test_an_argument_whose_cast_a_peer_folds_is_fed(tmp_path: Path):
    """OpenVINO gives its port both names, in an order of its own."""
    for name in PEERS:
        pytest.importorskip(name)
    text = "(float[3,4] image) => (float[3,4] y) { a_half = Cast<to=10>(image) r = Relu(a_half) y = Cast<to=1>(r) }"
    onnx.save(onnx_model(text), tmp_path / "m.onnx")
    feeds = {"image": np.random.default_rng(2).integers(-9, 9, (3, 4)).astype(np.float32)}
    for name in PEERS:
        (found,) = load_peer(name, tmp_path / "m.onnx", 1).bind(feeds)()
        np.testing.assert_array_equal(found, np.maximum(feeds["image"], 0))


def test_an_unknown_peer_is_refused(model: Path):
    with pytest.raises(FuselineError, match="E0501"):
        load_peer("tensorrt", model, 1)


def test_a_model_that_a_peer_refuses_is_coded(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "m.onnx").write_bytes(b"nothing")
    with pytest.raises(FuselineError) as caught:
        load_peer("onnxruntime", tmp_path / "m.onnx", 1)
    assert (caught.value.code, caught.value.node) == ("E0603", "onnxruntime")
