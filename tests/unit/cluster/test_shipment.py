"""What goes along with a model, a plan or a target, by content."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from fuseline.cluster.shipment import folder_shipment, model_shipment, shipment, target_shipment
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model


def _names(sent: object) -> list[str]:
    return [file.name for file in sent.files]  # type: ignore[attr-defined]  # pyright: ignore


def _external_model(folder: Path) -> Path:
    weights = RNG.standard_normal((64, 32)).astype(np.float32)
    path = folder / "m.onnx"
    model = onnx_model("(float[2,64] x) => (float[2,32] y) { y = MatMul (x, w) }", w=weights)
    onnx.save(model, path, save_as_external_data=True, location="m.data", size_threshold=16)
    return path


def test_a_model_with_its_weights(tmp_path: Path):
    path = _external_model(tmp_path)
    sent = model_shipment(path)
    assert (sent.folder, sent.main) == (str(tmp_path), "m.onnx") and _names(sent) == ["m.onnx", "m.data"]
    assert sent.files[1].bytes == (tmp_path / "m.data").stat().st_size


def test_the_digest_is_of_content_and_names(tmp_path: Path):
    first, second = tmp_path / "a", tmp_path / "b"
    for folder in (first, second):
        folder.mkdir()
        (folder / "plan").write_text("one")
    assert shipment(first / "plan").digest == shipment(second / "plan").digest
    (second / "plan").write_text("two")
    (first / "other").write_text("one")
    digests = {shipment(path).digest for path in (first / "plan", second / "plan", first / "other")}
    assert len(digests) == 3


def test_text_with_weights_beside_it(tmp_path: Path):
    (tmp_path / "m.safetensors").write_bytes(b"w")
    text = 'builtin.module attributes {fuseline.weights = {file = "m.safetensors", digest = "2f"}} {}'
    (tmp_path / "m.mlir").write_text(text)
    assert _names(model_shipment(tmp_path / "m.mlir")) == ["m.mlir", "m.safetensors"]


def test_a_model_that_cannot_be_read_goes_as_it_is(tmp_path: Path):
    (tmp_path / "m.onnx").write_bytes(b"no model")
    assert _names(model_shipment(tmp_path / "m.onnx")) == ["m.onnx"]
    with pytest.raises(FuselineError) as raised:
        model_shipment(tmp_path / "none.onnx")
    assert raised.value.code == "E0101"


def test_nothing_outside_of_the_folder_goes_along(tmp_path: Path):
    (tmp_path / "secret").write_text("s")
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "plan").write_text("p")
    sent = shipment(tmp_path / "m" / "plan", ["../secret", str(tmp_path / "secret"), "missing"])
    assert _names(sent) == ["plan"]


def test_targets(tmp_path: Path):
    (tmp_path / "rules").mkdir()
    (tmp_path / "rules" / "r.py").write_text("EXPORT = 1")
    (tmp_path / "npu.toml").write_text('[fusion]\nrules = ["rules/r.py"]')
    assert _names(target_shipment(tmp_path / "npu.toml")) == ["npu.toml", "rules/r.py"]
    (tmp_path / "broken.toml").write_text("[")
    assert _names(target_shipment(tmp_path / "broken.toml")) == ["broken.toml"]
    (tmp_path / "rules" / "__init__.py").write_text("")
    (tmp_path / "rules" / "data.bin").write_text("")
    sent = target_shipment(tmp_path / "rules")
    assert sent.main == "" and _names(sent) == ["__init__.py", "r.py"] and sent == folder_shipment(tmp_path / "rules")
