"""Files of tensors: written here and read by the safetensors package, and the other way round; what is refused."""

from __future__ import annotations

import io
import json
import struct
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import numpy as reference
from safetensors import safe_open

from fuseline.errors import FuselineError
from fuseline.ir.tensor_file import CHUNK_BYTES, DIGEST, DTYPES, TensorFile, write_tensors
from tests.draws import RNG

_BOOL = np.dtype(bool)


def _drawn(dtype: np.dtype[Any], *shape: int) -> NDArray[Any]:
    bits = RNG.integers(0, 256, (*shape, dtype.itemsize), np.uint8)
    return (bits % 2 if dtype == _BOOL else bits).view(dtype).reshape(shape)


def _all_types() -> dict[str, NDArray[Any]]:
    """Tensors of each type, of drawn ranks and sizes; names in any letters."""
    shapes = {name: [int(size) for size in RNG.integers(0, 5, RNG.integers(0, 4))] for name in DTYPES}
    return {f"{name}.wäight/{i}": _drawn(DTYPES[name], *shapes[name]) for i, name in enumerate(DTYPES)}


def _written(path: Path, arrays: dict[str, NDArray[Any]], **metadata: str) -> str:
    with path.open("wb") as file:
        return write_tensors(file, arrays, metadata)


def _same(left: NDArray[Any], right: NDArray[Any]) -> bool:
    return left.dtype == right.dtype and left.shape == right.shape and left.tobytes() == right.tobytes()


def test_what_is_written_is_read_again_in_place(tmp_path: Path):
    arrays = _all_types()
    digest = _written(tmp_path / "w", arrays, fuseline="0")
    file = TensorFile(tmp_path / "w")
    assert file.metadata == {"fuseline": "0", DIGEST: digest} and file.entries.keys() == arrays.keys()
    for name, array in arrays.items():
        found = file.array(name)
        assert _same(found, array), name
        assert not found.flags.writeable and not found.flags.owndata and found.flags.aligned


def test_the_safetensors_package_reads_it(tmp_path: Path):
    arrays = _all_types()
    _written(tmp_path / "w", arrays)
    found = reference.load_file(tmp_path / "w")
    assert found.keys() == arrays.keys()
    assert all(_same(found[name], array) for name, array in arrays.items())
    with safe_open(tmp_path / "w", framework="numpy") as file:
        assert DIGEST in file.metadata()


def test_what_the_safetensors_package_writes_is_read(tmp_path: Path):
    arrays = {name: array for name, array in _all_types().items() if array.dtype != np.dtype(ml_dtypes.bfloat16)}
    reference.save_file(arrays, tmp_path / "w", {"by": "others"})
    file = TensorFile(tmp_path / "w")
    assert file.metadata == {"by": "others"}
    assert all(_same(file.array(name), array) for name, array in arrays.items())


def test_a_tensor_that_lies_otherwise_is_written_a_part_at_a_time(tmp_path: Path):
    rows = 3 * CHUNK_BYTES // 4096
    whole = RNG.integers(-9, 9, (512, rows), np.int32)
    parts = {
        "turned": whole.T,
        "every_other": whole[::2, 1::3],
        "one_row": whole[:1].T[None],
        "spread": np.broadcast_to(np.float32(RNG.normal()), (rows, 64)),
        "other_end": whole[:3, :5].astype(">i4"),
        "scalar": np.asarray(RNG.normal()),
    }
    _written(tmp_path / "w", parts)
    file = TensorFile(tmp_path / "w")
    for name, array in parts.items():
        np.testing.assert_array_equal(file.array(name), array)


def test_the_digest_is_of_the_content(tmp_path: Path):
    array = RNG.normal(size=(7, 5)).astype(np.float32)
    other = array.copy()
    other[RNG.integers(7), RNG.integers(5)] += 1
    digests = [_written(tmp_path / "w", {"a": one}) for one in (array, array.copy(), other, array.T, array[:, :4])]
    digests.append(_written(tmp_path / "w", {"b": array}))
    assert digests[0] == digests[1] and len(set(digests)) == 5


def _refused(path: Path, name: str | None = None) -> str:
    with pytest.raises(FuselineError) as caught:
        file = TensorFile(path)
        assert name is not None
        file.array(name)
    assert caught.value.code == "E0308"
    return str(caught.value)


def test_a_file_that_is_cut_off_is_refused_wherever_it_ends(tmp_path: Path):
    arrays = {"first": RNG.normal(size=(4, 8)), "last": RNG.normal(size=(3, 8)).astype(np.float32)}
    _written(tmp_path / "w", arrays)
    whole = (tmp_path / "w").read_bytes()
    for size in [0, 7, 8, 9, *RNG.integers(10, len(whole), 20)]:
        (tmp_path / "w").write_bytes(whole[:size])
        assert "cut off" in _refused(tmp_path / "w", "last")
    (tmp_path / "w").write_bytes(whole[:-1])
    assert "last" in _refused(tmp_path / "w", "last") and "95 of the tensor's 96 bytes" in _refused(
        tmp_path / "w", "last"
    )
    assert _same(TensorFile(tmp_path / "w").array("first"), arrays["first"])


def test_a_file_that_is_missing_is_named(tmp_path: Path):
    assert "nowhere.safetensors" in _refused(tmp_path / "nowhere.safetensors")
    assert "Is a directory" in _refused(tmp_path)


def _with_header(path: Path, header: Any) -> Path:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(64))
    return path


@pytest.mark.parametrize(
    "header", [b"", b"{", b"\xff", b"[]", b"7", b"[" * 100_000, {"__metadata__": 7}, {"__metadata__": [1]}]
)
def test_what_is_no_such_file_is_refused(header: Any, tmp_path: Path):
    assert "no file of tensors" in _refused(_with_header(tmp_path / "w", header))


@pytest.mark.parametrize(
    "said",
    [
        7,
        {},
        {"dtype": "F32", "shape": [2], "data_offsets": [0]},
        {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]},
        {"dtype": "F32", "shape": [2], "data_offsets": [-8, 0]},
        {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [2.0], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": "2", "data_offsets": [0, 8]},
        {"dtype": 5, "shape": [2], "data_offsets": [0, 8]},
        {"dtype": "F4", "shape": [2], "data_offsets": [0, 1]},
        {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]},
        {"dtype": "F32", "shape": [1 << 40, 1 << 40], "data_offsets": [0, 8]},
    ],
)
def test_a_tensor_that_is_said_wrongly_is_named(said: Any, tmp_path: Path):
    assert "odd.name" in _refused(_with_header(tmp_path / "w", {"odd.name": said}), "odd.name")


def test_writing_needs_no_place_of_its_own_in_the_file():
    file = io.BytesIO(b"before")
    file.seek(6)
    write_tensors(file, {"a": np.arange(3)}, {})
    assert file.getvalue().startswith(b"before") and file.tell() == len(file.getvalue())
