"""Programs called from C: the example is compiled and run, its outputs are Python's to the last bit."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.cli.main import main
from fuseline.targets.cpu.c_export.export import export_c
from fuseline.targets.cpu.c_export.sizes import SizeTable
from tests.graphs.onnx_text import onnx_model

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
needs_c = pytest.mark.skipif(COMPILER is None, reason="needs a C compiler")


def _floats(*shape: int) -> Any:
    return np.random.default_rng().standard_normal(shape).astype(np.float32)


def _network() -> onnx.ModelProto:
    """Products, a norm over rows and a second output, for any number of rows."""
    text = """(float[n, 19] x, float[7] b) => (float[n, 7] y, float[n] z) {
        t = MatMul(x, w) u = Add(t, b) y = Softmax(u) z = ReduceMax<keepdims = 0>(u, axis) }"""
    return onnx_model(text, w=_floats(19, 7), axis=np.array([1]))


def _recurrent() -> onnx.ModelProto:
    """A loop of the program, as many iterations as the run tells."""
    text = "(float[s, 1, 5] x) => (float[s, 1, 1, 6] y) { y = LSTM<hidden_size = 6>(x, w, r) }"
    return onnx_model(text, w=_floats(1, 24, 5), r=_floats(1, 24, 6))


def _filled() -> onnx.ModelProto:
    """Bytes that are copied beside elements that are filled: no dispatch at all."""
    text = """(float[n, 3] x) => (float[m, 3] y, float[n, 3] z) {
        s = Shape(x) z = ConstantOfShape<value = float {-2.5}>(s) y = Concat<axis = 0>(x, z) }"""
    return onnx_model(text)


def _image() -> onnx.ModelProto:
    """Fixed sizes."""
    text = "(float[1, 3, 17, 13] x) => (float[1, 8, 17, 13] y) { t = Conv<pads = [1, 1, 1, 1]>(x, w) y = Relu(t) }"
    return onnx_model(text, w=_floats(8, 3, 3, 3))


def _built(folder: Path, *objects: str) -> Path:
    assert COMPILER is not None
    words = [COMPILER, "-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "example.c", "m.c", *objects]
    subprocess.run([*words, "-o", "example"], cwd=folder, check=True)
    return folder / "example"


def _run(folder: Path, weights: str, sizes: Sequence[int], arrays: Sequence[Any]) -> subprocess.CompletedProcess[str]:
    for number, array in enumerate(arrays):
        array.tofile(folder / f"in_{number}.bin")
    words = [folder / "example", weights, *map(str, sizes), *(f"in_{number}.bin" for number in range(len(arrays)))]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


@needs_c
@pytest.mark.parametrize(
    ("model", "sizes"),
    [(_network, [1, 5, 130]), (_recurrent, [1, 2, 23]), (_filled, [1, 7, 30000]), (_image, [])],
    ids=["rows", "loop", "filled", "fixed"],
)
def test_outputs_are_those_of_python(model: Any, sizes: list[int], tmp_path: Path) -> None:
    program = fuseline.compile(model(), threads=1)
    export_c(program.session.artifact, tmp_path, "m")
    _built(tmp_path, "m.o")
    for size in sizes or [0]:
        shapes = [
            [size if isinstance(extent, str) else extent or 0 for extent in item.shape] for item in program.inputs
        ]
        feeds = [_floats(*shape) for shape in shapes]
        done = _run(tmp_path, "m.fuse", [size] if sizes else [], feeds)
        assert done.returncode == 0, done.stderr
        wanted = program.run({item.name: feed for item, feed in zip(program.inputs, feeds, strict=True)})
        for number, array in enumerate(wanted.values()):
            found = np.fromfile(tmp_path / f"output_{number}.bin", array.dtype).reshape(array.shape)
            np.testing.assert_array_equal(found, array)


@needs_c
def test_weights_are_linked_in_or_belong_to_the_code(tmp_path: Path) -> None:
    program = fuseline.compile(_image(), threads=1)
    x = _floats(1, 3, 17, 13)
    export_c(program.session.artifact, tmp_path, "m")
    _built(tmp_path, "m.o")
    assert "linked in" in _run(tmp_path, "-", [], [x]).stderr
    assert "cannot be read" in _run(tmp_path, "nowhere.fuse", [], [x]).stderr
    data = (tmp_path / "m.fuse").read_bytes()
    (tmp_path / "other.fuse").write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])
    assert "other code" in _run(tmp_path, "other.fuse", [], [x]).stderr
    _built(tmp_path, "m.o", "m_weights.o")
    assert _run(tmp_path, "-", [], [x]).returncode == 0
    found = np.fromfile(tmp_path / "output_0.bin", np.float32)
    np.testing.assert_array_equal(found, program.run({"x": x})["y"].ravel())


@needs_c
def test_sizes_out_of_bounds_have_a_code(tmp_path: Path) -> None:
    program = fuseline.compile(_network(), threads=1, shapes={"n": (2, 9)})
    export_c(program.session.artifact, tmp_path, "m")
    _built(tmp_path, "m.o")
    arrays = [_floats(12, 19), _floats(7)]
    assert [_run(tmp_path, "m.fuse", [n], arrays).returncode for n in (1, 2, 9, 10, -3)] == [15, 0, 0, 15, 15]


def test_what_runs_on_the_host_is_refused(tmp_path: Path) -> None:
    model = onnx_model("(string[3] x) => (string[3] y) { y = Identity(x) }")
    with pytest.raises(fuseline.FuselineError) as caught:
        export_c(fuseline.compile(model).session.artifact, tmp_path / "out", "m")
    assert caught.value.code == "E0502" and "C" in caught.value.message
    assert not (tmp_path / "out").exists()


def test_the_command_writes_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(_image(), tmp_path / "my-net.onnx")
    command = ["compile", str(tmp_path / "my-net.onnx"), "--emit", "object"]
    assert main(command) == 2 and "-o DIR" in capsys.readouterr().err
    assert main([*command, "-o", str(tmp_path / "out")]) == 0
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"my_net.fuse", "my_net.o", "my_net_weights.o", "my_net.c", "my_net.h", "example.c"}


def test_sizes_as_c() -> None:
    table = SizeTable({"n": 0, "m": 1})
    half = ("div", ("sum", ((1, "n"), (-1,))), 2)
    assert table(-5) == "(-INT64_C(5))"
    assert [table(("sum", ((3, "n", "m"),))), table(("let", (half,), ((2, 0), (1, 0, "m"))))] == ["v[0]", "v[1]"]
    assert table(("sum", ((3, "n", "m"),))) == "v[0]" and table.length == 2
    first, second = table.statements()
    assert "put(v + 0, ((wide)INT64_C(3) * (wide)s[0] * (wide)s[1]))" in first
    assert "const wide a0 = wide_div((" in second and "(wide)INT64_C(1) * a0 * (wide)s[1]" in second
