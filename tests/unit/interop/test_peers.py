"""The peers: equal outputs on a small model, and coded refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from fuseline.errors import FuselineError
from fuseline.interop.peers import PEERS, load_peer
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


def test_an_unknown_peer_is_refused(model: Path):
    with pytest.raises(FuselineError, match="E0501"):
        load_peer("tensorrt", model, 1)


def test_a_model_that_a_peer_refuses_is_coded(tmp_path: Path):
    pytest.importorskip("onnxruntime")
    (tmp_path / "m.onnx").write_bytes(b"nothing")
    with pytest.raises(FuselineError) as caught:
        load_peer("onnxruntime", tmp_path / "m.onnx", 1)
    assert (caught.value.code, caught.value.node) == ("E0603", "onnxruntime")
