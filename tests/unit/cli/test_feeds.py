"""`--input` texts become arrays, and every wrong one a coded error that names the feed."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from fuseline.cli.feeds import file_name, output_files, parse_feeds
from fuseline.errors import FuselineError


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
    [("y=@{}", "E0201"), ("x={}", "E0501"), ("@{}", "E0501"), ("x=@{}.missing", "E0101"), ("x=@{}.bad", "E0101"), ("x=@{}.npz", "E0101")],
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
    with pytest.raises(FuselineError, match="E0101"):
        parse_feeds([f"x=@{tmp_path / 'o.npy'}"], ["x"])


def test_output_names_are_safe_and_distinct(tmp_path: Path):
    array = np.zeros(1)
    files = output_files(tmp_path, {"../../etc/x": array, "a/b": array, "a:b": array})
    assert all(path.parent == tmp_path for path in files)
    assert len(files) == 3
    assert file_name("...") == "output.npy"
