"""Constants whose content does not fit their type and sizes: refused by the tensor's name, inside the model and beside
it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import fuseline
from fuseline.errors import FuselineError
from tests.graphs.onnx_text import onnx_model

W = np.random.default_rng(3).standard_normal((2, 3)).astype(np.float32)
FLOAT = TensorProto.FLOAT


def tensor(dims: tuple[int, ...] = (2, 3), kind: int = FLOAT, **content: Any) -> TensorProto:
    return TensorProto(name="w", data_type=kind, dims=dims, **content)


def raw(data: bytes, dims: tuple[int, ...] = (2, 3), kind: int = FLOAT) -> TensorProto:
    return tensor(dims, kind, raw_data=data)


def adding(weight: TensorProto) -> onnx.ModelProto:
    proto = onnx_model("(float[2, 3] x) => (float[] y) { [Add_0] y = Add(x, w) }", opset=17)
    proto.graph.initializer.append(weight)
    return proto


def held_by_a_node(weight: TensorProto, name: str = "") -> onnx.NodeProto:
    return helper.make_node("Constant", [], ["w"], name, value=weight)


INSIDE = {
    "raw data too short": raw(W.tobytes()[:-4]),
    "raw data too long": raw(W.tobytes() + bytes(4)),
    "a broken element": raw(W.tobytes()[:-1]),
    "no data": tensor(),
    "empty raw data": raw(b""),
    "too few numbers": tensor(float_data=[1.0, 2.0]),
    "too many numbers": tensor(float_data=[1.0] * 7),
    "numbers of another type": tensor(int32_data=[1] * 6),
    "raw data of another type": raw(W.tobytes(), kind=TensorProto.DOUBLE),
    "negative sizes": raw(W.tobytes(), (-2, -3)),
    "sizes beyond all memory": raw(W.tobytes(), (1 << 40, 1 << 40)),
    "no element type": raw(W.tobytes(), kind=0),
    "an unknown element type": raw(W.tobytes(), kind=99),
    "strings in raw data": raw(b"abcdef", kind=TensorProto.STRING),
    "too few strings": tensor(kind=TensorProto.STRING, string_data=[b"a"]),
    "half a complex number": tensor(kind=TensorProto.COMPLEX64, float_data=[1.0] * 6),
    "too many packed numbers": tensor(kind=TensorProto.INT4, int32_data=[1] * 6),
}


@pytest.mark.parametrize("name", INSIDE)
def test_inside_the_model(name: str, tmp_path: Path):
    proto = adding(INSIDE[name])
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    for source in (proto, tmp_path / "m.onnx"):
        with pytest.raises(FuselineError, match="E0105 .w.: "):
            fuseline.compile(source, target="interpreter")


@pytest.mark.parametrize("weight", [raw(W.tobytes()[:-4]), raw(W.tobytes(), (-2, 3))], ids=["short", "negative"])
def test_in_an_attribute(weight: TensorProto):
    proto = adding(tensor(float_data=[0.0] * 6))
    del proto.graph.initializer[:]
    proto.graph.node.insert(0, held_by_a_node(weight, "Constant_0"))
    with pytest.raises(FuselineError, match="E0105 .Constant_0.: "):
        fuseline.compile(proto, target="interpreter")


def beside(folder: Path, dims: tuple[int, ...] = (2, 3), kind: int = FLOAT, size: int = 24, **entries: Any) -> Path:
    """A model with its weight in `w.bin` (of `size` bytes); `entries` say where in it."""
    folder.mkdir()
    (folder.parent / "outside.bin").write_bytes(W.tobytes())
    (folder / "w.bin").write_bytes((W.tobytes() * 2)[:size])
    (folder / "link.bin").symlink_to(folder.parent / "outside.bin")
    weight = tensor(dims, kind, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "w.bin", **entries}.items():
        weight.external_data.add(key=key, value=str(value))
    (folder / "m.onnx").write_bytes(adding(weight).SerializeToString())
    return folder / "m.onnx"


BESIDE: dict[str, tuple[dict[str, Any], str]] = {
    "a length that is too short": ({"length": 20}, "E0101"),
    "a length that is too long": ({"length": 28, "size": 48}, "E0101"),
    "a file that is too short": ({"size": 20}, "E0101"),
    "an offset beyond the file": ({"length": 24, "offset": 100}, "E0101"),
    "an end beyond the file": ({"length": 24, "offset": 28, "size": 48}, "E0101"),
    "a huge offset": ({"length": 24, "offset": 1 << 70}, "E0101"),
    "a negative offset": ({"offset": -4, "size": 48}, "E0105"),
    "a negative length": ({"length": -24}, "E0105"),
    "an offset in words": ({"offset": "four"}, "E0105"),
    "a length in fractions": ({"length": "24.0"}, "E0105"),
    "numbers of another type": ({"kind": TensorProto.DOUBLE, "length": 24}, "E0101"),
    "strings": ({"kind": TensorProto.STRING}, "E0105"),
    "no element type": ({"kind": 0}, "E0105"),
    "an unknown element type": ({"kind": 99}, "E0105"),
    "negative sizes": ({"dims": (-2, 3)}, "E0105"),
    "a missing file": ({"location": "nowhere.bin"}, "E0101"),
    "a folder": ({"location": "."}, "E0101"),
    "a link out of the folder": ({"location": "link.bin"}, "E0104"),
    "an unknown key": ({"byte_order": "big"}, "E0105"),
    "no location": ({"location": ""}, "E0104"),
    "a name that no file can have": ({"location": "a\0b"}, "E0104"),
}


def test_one_location_beside_the_model(tmp_path: Path):
    path = beside(tmp_path / "models")
    proto = onnx.load(path, load_external_data=False)
    proto.graph.initializer[0].external_data.add(key="location", value="link.bin")
    path.write_bytes(proto.SerializeToString())
    with pytest.raises(FuselineError, match="E0105 .* has the key 'location' twice"):
        fuseline.compile(path, target="interpreter")


@pytest.mark.parametrize("more", [{"checksum": "0123"}, {"prepacked_0": "key|0;24;1"}])
def test_hints_beside_the_model_change_nothing(more: dict[str, Any], tmp_path: Path):
    path = beside(tmp_path / "models", **more)
    x = np.ones((2, 3), np.float32)
    (found,) = fuseline.compile(path, target="interpreter").run({"x": x}).values()
    np.testing.assert_array_equal(found, x + W)


@pytest.mark.parametrize("name", BESIDE)
def test_beside_the_model(name: str, tmp_path: Path):
    entries, code = BESIDE[name]
    path = beside(tmp_path / "models", **entries)
    with pytest.raises(FuselineError, match=f"{code} .w.: "):
        fuseline.compile(path, target="interpreter")


@pytest.mark.parametrize(
    "entries", [{}, {"length": 24}, {"length": 0}, {"offset": 24, "size": 48}, {"length": 24, "offset": 3, "size": 48}]
)
def test_what_fits_is_read(entries: dict[str, Any], tmp_path: Path):
    path = beside(tmp_path / "models", **entries)
    offset = entries.get("offset", 0)
    weight = np.frombuffer((W.tobytes() * 2)[offset : offset + 24], np.float32).reshape(2, 3)
    x = np.random.default_rng(4).standard_normal((2, 3)).astype(np.float32)
    np.testing.assert_array_equal(fuseline.compile(path, threads=1)(x), x + weight)


@pytest.mark.parametrize("place", ["Constant", "If"])
def test_it_is_found_wherever_the_model_names_it(place: str, tmp_path: Path):
    path = beside(tmp_path / "models")
    proto = onnx.load(path, load_external_data=False)
    weight = proto.graph.initializer.pop()
    if place == "Constant":
        proto.graph.node.insert(0, held_by_a_node(weight))
    else:
        proto = onnx_model(
            "(float[2, 3] x, bool k) => (float[] y) { y = If<then_branch = then () => (float[] t) { t = Add(x, w) },"
            " else_branch = else () => (float[] t) { t = Neg(x) }>(k) }",
            opset=17,
        )
        proto.graph.node[0].attribute[0].g.initializer.append(weight)
    path.write_bytes(proto.SerializeToString())
    x = np.random.default_rng(4).standard_normal((2, 3)).astype(np.float32)
    feeds = {"x": x, **({"k": np.array(True)} if place == "If" else {})}
    np.testing.assert_array_equal(fuseline.compile(path, threads=1).run(feeds)["y"], x + W)
