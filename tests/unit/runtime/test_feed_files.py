"""`--input` texts become arrays, and every wrong one a coded error that names the feed."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from fuseline.cli.main import main
from fuseline.errors import FuselineError
from fuseline.runtime.feed_files import file_name, flat_outputs, output_files, parse_feeds
from tests.graphs.onnx_text import onnx_model


@pytest.fixture
def saved(tmp_path: Path) -> tuple[Path, np.ndarray]:
    array = np.random.default_rng(3).standard_normal((2, 3), dtype=np.float32)
    np.save(tmp_path / "x.npy", array)
    return tmp_path / "x.npy", array


def test_a_named_file(saved: tuple[Path, np.ndarray]):
    path, array = saved
    assert np.array_equal(parse_feeds([f"a=b=@{path}"], ["a=b"])["a=b"], array)


def test_the_name_may_be_left_out_with_one_input(saved: tuple[Path, np.ndarray]):
    path, array = saved
    assert np.array_equal(parse_feeds([f"@{path}"], ["x"])["x"], array)


@pytest.mark.parametrize("value", ["x=-", "x=@-", "-"])
def test_standard_input(value: str, saved: tuple[Path, np.ndarray], monkeypatch: pytest.MonkeyPatch):
    path, array = saved
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(path.read_bytes())))
    assert np.array_equal(parse_feeds([value], ["x"])["x"], array)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("y=@{}", "E0201"),
        ("x={}", "E0501"),
        ("@{}", "E0501"),
        ("x=@{}.missing", "E0206"),
        ("x=@{}.bad", "E0206"),
        ("x=@{}.npz", "E0206"),
    ],
)
def test_refusals(text: str, code: str, saved: tuple[Path, np.ndarray]):
    path, array = saved
    Path(f"{path}.bad").write_bytes(b"no array")
    np.savez(f"{path}.npz", a=array)
    with pytest.raises(FuselineError) as caught:
        parse_feeds([text.format(path)], ["x", "z"])
    assert caught.value.code == code


def test_a_pickled_array_is_refused(tmp_path: Path):
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(FuselineError, match="E0206"):
        parse_feeds([f"x=@{tmp_path / 'o.npy'}"], ["x"])


def test_output_names_are_safe_and_distinct(tmp_path: Path):
    array = np.zeros(1)
    files = output_files(tmp_path, {"../../etc/x": array, "a/b": array, "a:b": array})
    assert all(path.parent == tmp_path for path in files)
    assert len(files) == 3
    assert file_name("...") == "output.npy"


def test_values_that_are_no_tensors_become_several_arrays():
    ones = np.ones(2, np.float32)
    small = np.array([1, -2]).astype(ml_dtypes.int4), np.array([0.5, 3]).astype(ml_dtypes.float8_e5m2)
    flat = flat_outputs(
        {
            "q": [ones, [ones]],
            "m": {3: 1.5, 4: 2.5},
            "s": np.array(["a"], object),
            "none": None,
            "i": small[0],
            "f": small[1],
        }
    )
    assert list(flat) == ["q.0", "q.1.0", "m.keys", "m.values", "s", "i", "f"]
    assert flat["m.keys"].tolist() == [3, 4] and flat["s"].dtype.kind == "U"
    assert (
        flat["i"].dtype == np.int8
        and flat["i"].tolist() == [1, -2]
        and flat["f"].dtype == np.float32
        and flat["f"].tolist() == [0.5, 3]
    )


def test_strings_from_and_to_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model = onnx_model("(string[n] x) => (string[n] y) { y = StringConcat(x, x) }", opset=21)
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    np.save(tmp_path / "x.npy", np.array(["a", "bé"]))
    assert (
        main(
            ["run", str(tmp_path / "m.onnx"), "--input", f"x=@{tmp_path / 'x.npy'}", "--output", str(tmp_path / "out")]
        )
        == 0
    )
    assert np.load(tmp_path / "out" / "y.npy").tolist() == ["aa", "bébé"]
    assert main(["run", str(tmp_path / "m.onnx")]) == 0
    assert "y: " in capsys.readouterr().out
