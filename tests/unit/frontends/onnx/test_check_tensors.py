"""Constants whose content is not what their type and sizes ask for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.check_tensors import check_tensor, check_tensors
from tests.draws import RNG

TYPES = "float32 float64 float16 int8 uint8 int32 uint32 int64 uint64 bool complex64 complex128".split()


def _tensor(kind: int, dims: list[int], **fields: Any) -> TensorProto:
    return TensorProto(name="w", data_type=kind, dims=dims, **fields)


def _outside(dims: list[int], kind: int = TensorProto.FLOAT, **entries: object) -> TensorProto:
    """A tensor whose data lies in `w.bin`, unless said otherwise."""
    tensor = _tensor(kind, dims, data_location=TensorProto.EXTERNAL)
    for key, value in {"location": "w.bin", **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with `w.bin` of 32 bytes, and a file outside of it."""
    inside = tmp_path / "model"
    inside.mkdir()
    (inside / "w.bin").write_bytes(bytes(32))
    (tmp_path / "secret").write_bytes(bytes(32))
    return inside


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("raw", [True, False], ids=["raw", "fields"])
def test_as_many_elements_as_the_sizes_ask_for(dtype: str, raw: bool) -> None:
    array = RNG.integers(0, 2, (3, 5)).astype(dtype)
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    made = numpy_helper.from_array(array, "w") if raw else helper.make_tensor("w", kind, [3, 5], array.reshape(-1))
    assert made.HasField("raw_data") == raw
    check_tensor(made, "w", None)
    made.dims[1] = 4
    with pytest.raises(FuselineError, match=r"E0105 .at w.: .*sizes \[3, 4\]") as caught:
        check_tensor(made, "at w", None)
    assert caught.value.node == "at w"


@pytest.mark.parametrize(("dims", "packed"), [([5], 3), ([2, 3], 3), ([0], 0), ([], 1)])
def test_halves_of_bytes_are_rounded_up(dims: list[int], packed: int) -> None:
    for kind in (TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1):
        check_tensor(_tensor(kind, dims, raw_data=bytes(packed)), "w", None)
        check_tensor(_tensor(kind, dims, int32_data=[1] * packed), "w", None)
        for bad in (
            _tensor(kind, dims, raw_data=bytes(packed + 1)),
            _tensor(kind, dims, int32_data=[1] * (packed + 1)),
        ):
            with pytest.raises(FuselineError, match="E0105"):
                check_tensor(bad, "w", None)


def test_strings_are_counted() -> None:
    check_tensor(_tensor(TensorProto.STRING, [2], string_data=[b"a", b"b"]), "w", None)
    with pytest.raises(FuselineError, match="string_data has 1 elements"):
        check_tensor(_tensor(TensorProto.STRING, [2], string_data=[b"a"]), "w", None)


@pytest.mark.parametrize(
    ("tensor", "words"),
    [
        (_tensor(0, [1]), "element type 0 is none"),
        (_tensor(99, [1]), "element type 99 is none"),
        (_tensor(TensorProto.FLOAT, [2, -1]), r"sizes \[2, -1\] are negative"),
        (_tensor(TensorProto.STRING, [1], raw_data=b"a"), "strings lie in raw_data"),
        (_outside([1], TensorProto.STRING), "strings lie in external data"),
        (_outside([8], size=4), "has the key 'size', which is none of"),
        (_outside([8], offset=-4), "has offset '-4', which is no count"),
        (_outside([8], length="\u0663"), "which is no count"),
    ],
)
def test_what_no_tensor_is(tensor: TensorProto, words: str, folder: Path) -> None:
    with pytest.raises(FuselineError, match=f"E0105 .w.: .*{words}"):
        check_tensor(tensor, "w", folder)


def test_a_key_that_is_said_twice(folder: Path) -> None:
    tensor = _outside([8])
    tensor.external_data.add(key="location", value="w.bin")
    with pytest.raises(FuselineError, match="E0105 .w.: .*'location' twice"):
        check_tensor(tensor, "w", folder)


@pytest.mark.parametrize(
    "entries", [{}, {"length": 32}, {"offset": 0, "prepacked_1": "x"}, {"checksum": "ab"}, {"length": 0}]
)
def test_data_beside_the_model(entries: dict[str, Any], folder: Path) -> None:
    check_tensor(_outside([8], **entries), "w", folder)
    check_tensor(_outside([7], **{**entries, "length": 28, "offset": 4}), "w", folder)


@pytest.mark.parametrize(
    ("tensor", "code", "words"),
    [
        (_outside([9]), "E0101", "ends at byte 36 of a file of 32"),
        (_outside([8], offset=1), "E0101", "ends at byte 33"),
        (_outside([4], length=15), "E0101", "has length 15, .* take 16 bytes"),
        (_outside([8], location="none.bin"), "E0101", "file 'none.bin' is missing"),
        (_outside([8], location="../secret"), "E0104", "leaves the model's folder"),
        (_outside([8], location=""), "E0104", "leaves the model's folder"),
        (_outside([8], location="/etc/hostname"), "E0104", "leaves the model's folder"),
        (_outside([8], location="w\0.bin"), "E0104", "leaves the model's folder"),
    ],
)
def test_data_that_is_not_there(tensor: TensorProto, code: str, words: str, folder: Path) -> None:
    with pytest.raises(FuselineError, match=words) as caught:
        check_tensor(tensor, "at w", folder)
    assert (caught.value.code, caught.value.node) == (code, "at w")


def test_a_link_out_of_the_folder_is_followed(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent / "secret")
    with pytest.raises(FuselineError, match="E0104"):
        check_tensor(_outside([8], location="link"), "w", folder)


def test_a_model_in_memory_has_no_folder() -> None:
    with pytest.raises(FuselineError, match="E0104 .w.: .*without a model file"):
        check_tensor(_outside([8]), "w", None)


BAD = _tensor(TensorProto.FLOAT, [2], raw_data=bytes(4))
GOOD = _tensor(TensorProto.FLOAT, [2], raw_data=bytes(8))
INDICES = _tensor(TensorProto.INT64, [2], raw_data=bytes(16))


def _graph(*nodes: onnx.NodeProto, **fields: Any) -> onnx.GraphProto:
    graph = helper.make_graph(list(nodes), "g", [], [])
    for name, items in fields.items():
        getattr(graph, name).extend(items)
    return graph


def _branching(graph: onnx.GraphProto) -> onnx.GraphProto:
    return _graph(helper.make_node("If", ["c"], [], then_branch=graph, else_branch=_graph()))


def _sparse(values: TensorProto, indices: TensorProto) -> onnx.SparseTensorProto:
    return onnx.SparseTensorProto(values=values, indices=indices, dims=[9])


PLACES: dict[str, Callable[[TensorProto], onnx.GraphProto]] = {
    "w": lambda t: _graph(initializer=[t]),
    "w in a branch": lambda t: _branching(_graph(initializer=[t])),
    "w of a sparse one": lambda t: _graph(sparse_initializer=[_sparse(t, INDICES)]),
    "w as indices": lambda t: _graph(sparse_initializer=[_sparse(GOOD, t)]),
    "node": lambda t: _graph(helper.make_node("Constant", [], ["y"], name="node", value=t)),
    "node with several": lambda t: _graph(helper.make_node("Any", [], ["y"], name="node", values=[GOOD, t])),
    "Constant_0": lambda t: _branching(_graph(helper.make_node("Constant", [], ["y"], value=t))),
}


@pytest.mark.parametrize("position", PLACES)
def test_every_tensor_of_a_model_is_looked_at(position: str) -> None:
    check_tensors(helper.make_model(PLACES[position](GOOD)), None)
    with pytest.raises(FuselineError, match="E0105") as caught:
        check_tensors(helper.make_model(PLACES[position](BAD)), None)
    assert str(caught.value.node).split("_")[0] == position.split()[0].split("_")[0]


def test_content_that_lies_elsewhere_is_not_looked_for() -> None:
    model = helper.make_model(_graph(initializer=[BAD, GOOD]))
    check_tensors(model, None, elsewhere={0})
    with pytest.raises(FuselineError):
        check_tensors(model, None, elsewhere={1})
