"""The distribution `fuseline-runtime`: its files and NumPy run artifacts, everything else says what to install."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
import venv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.runtime.command import main
from tests.graphs.onnx_text import onnx_model

ROOT = Path(__file__).parents[3]
RUNTIME = ROOT / "packaging" / "runtime"
_BLOCKED = (
    *("xdsl", "llvmlite", "onnx", "onnx_ir", "onnxruntime", "click", "rich", "msgspec", "jinja2", "platformdirs"),
    *("ml_dtypes", "cryptography"),
)
_ALONE = """
import runpy, sys
for name in {blocked!r}:
    sys.modules[name] = None
sys.path.insert(0, {folder!r})
import fuseline
assert fuseline.__file__.startswith({folder!r})
{code}
"""


def _settings(path: Path) -> dict[str, Any]:
    return tomllib.loads((path / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`y = Relu(x) + x` of any length."""
    path = tmp_path_factory.mktemp("saved") / "m.fuse"
    fuseline.compile(onnx_model("(float[n] x) => (float[n] y) { r = Relu(x) y = Add(r, x) }"), threads=2).save(path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the wheel holds, as it holds them."""
    target = tmp_path_factory.mktemp("alone")
    for source, place in _settings(RUNTIME)["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"].items():
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (RUNTIME / source).is_dir() else shutil.copy
        copy(RUNTIME / source, target / place)
    return target


def _alone(folder: Path, code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    text = _ALONE.format(blocked=_BLOCKED, folder=str(folder), code=code)
    command = [sys.executable, "-I", "-c", text, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


_MODULE = "runpy.run_module('fuseline.runtime', run_name='__main__', alter_sys=True)"
_SCRIPT = "from fuseline.cli.entry import run; run()"


@pytest.mark.parametrize(("code", "words"), [(_MODULE, []), (_SCRIPT, ["run"])])
def test_a_command_runs_an_artifact(code: str, words: list[str], folder: Path, saved: Path, tmp_path: Path) -> None:
    x = np.random.default_rng().standard_normal(37).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    given = f"x=@{tmp_path / 'x.npy'}"
    done = _alone(folder, code, *words, saved, "--input", given, "--output", tmp_path / "out", "--json")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "out" / "y.npy"), np.maximum(x, 0) + x)
    (output,) = json.loads(done.stdout)["outputs"]
    assert (output["name"], output["shape"]) == ("y", [37])


def test_the_interfaces_run_it_too(folder: Path, saved: Path) -> None:
    code = """
import numpy as np
x = np.linspace(-1, 1, 9, dtype=np.float32)
want = np.maximum(x, 0) + x
assert (fuseline.load(sys.argv[1]).run({"x": x})["y"] == want).all()
assert (fuseline.InferenceSession(sys.argv[1]).run(None, {"x": x})[0] == want).all()
assert (fuseline.load(sys.argv[1]).run_async({"x": x}).result()["y"] == want).all()
"""
    done = _alone(folder, code, saved)
    assert done.returncode == 0, done.stderr


def test_a_number_that_is_clamped_to_an_offset(folder: Path, tmp_path: Path) -> None:
    """Computed by the host step, without the compiler."""
    text = """func.func @main(%x: tensor<9xf32>, %p: i32) -> tensor<4xf32> {
  %low = arith.constant 0 : i32
  %high = arith.constant 5 : i32
  %most = arith.minsi %p, %high : i32
  %at = arith.maxsi %most, %low : i32
  %i = arith.index_cast %at : i32 to index
  %r = tensor.extract_slice %x[%i] [4] [1] : tensor<9xf32> to tensor<4xf32>
  return %r : tensor<4xf32>
}"""
    (tmp_path / "m.mlir").write_text(text)
    fuseline.compile(tmp_path / "m.mlir", threads=1).save(tmp_path / "m.fuse")
    code = """
import numpy as np
x = np.arange(9, dtype=np.float32)
for number, at in ((3, 3), (-2, 0), (99, 5)):
    (found,) = fuseline.load(sys.argv[1]).run({"x": x, "p": np.int32(number)}).values()
    assert (found == x[at:at + 4]).all()
"""
    done = _alone(folder, code, tmp_path / "m.fuse")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [["compile", "m.onnx"], ["stats", "m.fuse"], ["run", "m.onnx"], []])
def test_everything_else_says_what_to_install(words: list[str], folder: Path) -> None:
    done = _alone(folder, _SCRIPT, *words)
    assert done.returncode == 1
    assert done.stderr.startswith("error E0503: ") and "pip install fuseline" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_compiler_is_missed_by_name(folder: Path) -> None:
    code = """
for call in (lambda: fuseline.compile("m.onnx"), lambda: fuseline.onnx_backend):
    try:
        call()
    except ImportError as error:
        assert error.code == "E0503" and "pip install" in error.hint, error
    else:
        raise AssertionError
"""
    done = _alone(folder, code)
    assert done.returncode == 0, done.stderr


def test_both_distributions_have_one_version_and_numpy_is_the_only_requirement() -> None:
    project, whole = _settings(RUNTIME)["project"], _settings(ROOT)["project"]
    assert project["version"] == whole["version"] == fuseline.__version__
    assert project["dependencies"] == [name for name in whole["dependencies"] if name.startswith("numpy")]


def test_feeds_that_are_not_given_are_made(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[str] = []
    for seed in ("1", "1", "2"):
        assert main([str(saved), "--seed", seed]) == 0
        shown.append(capsys.readouterr().out)
    assert shown[0].startswith("y: float32[4] [")
    assert shown[0] == shown[1] != shown[2]


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (["--input", "z=-"], "E0201", 2),
        (["--threads", "0"], "E0501", 2),
        (["--check", "onnxruntime"], "E0501", 2),
        (["--trusted", "0" * 64], "E0406", 1),
    ],
)
def test_refusals_have_codes(
    words: list[str], code: str, exit_code: int, saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(saved), *words]) == exit_code
    assert capsys.readouterr().err.startswith(f"error {code}: ")


@pytest.mark.slow
def test_the_wheel_needs_nothing_else(saved: Path, tmp_path: Path) -> None:
    """Built, installed into an environment of its own, and checked by pip; needs a package index."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", tmp_path / "wheel", RUNTIME], check=True)
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    inside = [python, "-m", "pip", "--disable-pip-version-check"]
    subprocess.run([*inside, "install", "-q", *(tmp_path / "wheel").glob("*.whl")], check=True)
    subprocess.run([*inside, "check"], check=True)
    listed = json.loads(subprocess.check_output([*inside, "list", "--format", "json"]))
    assert {row["name"] for row in listed} - {"pip", "setuptools"} == {"fuseline-runtime", "numpy"}
    for command in ([python, "-m", "fuseline.runtime"], [tmp_path / "venv" / "bin" / "fuseline", "run"]):
        assert subprocess.check_output([*command, saved], text=True).startswith("y: float32[4]")
