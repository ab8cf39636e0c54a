"""IR in files: `--emit -o` and `opt -o` write weights beside the text, all files or none, and what is wrong with such
files when they are read is said by name."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from safetensors import numpy as reference

import fuseline
from fuseline import api
from fuseline.cli.main import main
from fuseline.errors import FuselineError
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

Arrays: TypeAlias = dict[str, NDArray[Any]]
Capture: TypeAlias = pytest.CaptureFixture[str]


@pytest.fixture
def weights() -> Arrays:
    return {name: RNG.normal(size=shape).astype(np.float32) for name, shape in (("w", (40, 55)), ("v", (55,)))}


@pytest.fixture
def model(tmp_path: Path, weights: Arrays) -> Path:
    text = "(float[3, 40] x) => (float[3, 55] y) { t = MatMul (x, w) y = Add (t, v) }"
    onnx.save(onnx_model(text, weights), tmp_path / "m.onnx")
    return tmp_path / "m.onnx"


@pytest.fixture
def text(model: Path) -> Path:
    """The IR of the model, with weights beside it."""
    path = model.parent / "ir" / "x.mlir"
    assert main(["compile", str(model), "--emit", "cleanup", "-o", str(path)]) == 0
    return path


def _files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def _outputs(model: Path, feeds: Arrays) -> NDArray[Any]:
    return fuseline.compile(model, cache=False).run(feeds)["y"]


def _error(words: list[str], capsys: Capture) -> dict[str, str]:
    capsys.readouterr()
    assert main([*words, "--json"]) != 0
    return json.loads(capsys.readouterr().out)["error"]


def test_weights_lie_beside_the_text(text: Path, weights: Arrays):
    assert _files(text.parent) == ["x.mlir", "x.safetensors"]
    found = reference.load_file(text.with_suffix(".safetensors"))
    assert found.keys() == {"w"}  # 220 bytes are in the text
    np.testing.assert_array_equal(found["w"], weights["w"])
    assert 'v: "0x04000000' in text.read_text() and len(text.read_text()) < 6000


@pytest.mark.parametrize("command", [["stats"], ["explain"], ["run"], ["bench", "--rounds", "3"], ["report"]])
def test_every_command_reads_it(command: list[str], text: Path, capsys: Capture):
    words = [command[0], str(text), *command[1:]]
    assert main(words if command == ["report"] else [*words, "--json"]) == 0, capsys.readouterr().err


def test_two_texts_are_compared(text: Path, model: Path, capsys: Capture):
    assert main(["diff", str(text), str(model), "--json"]) == 0
    assert "error" not in json.loads(capsys.readouterr().out)


def test_json_names_both_files(model: Path, tmp_path: Path, capsys: Capture):
    words = ["compile", str(model), "--emit", "layout", "-o", str(tmp_path / "y.mlir"), "--json"]
    assert main(words) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["output"] == str(tmp_path / "y.mlir") and said["weights"] == str(tmp_path / "y.safetensors")


def test_a_bug_report_has_no_weights_and_shows_the_failure(text: Path, tmp_path: Path, capsys: Capture):
    archive, secret = tmp_path / "r.zip", text.with_suffix(".safetensors").read_bytes()[-64:]
    words = ["compile", str(text), "--emit", "nothing", "--report-bug", str(archive)]
    assert main(words) == 2 and "shows the failure by itself" in capsys.readouterr().err
    with zipfile.ZipFile(archive) as members:
        assert {"model.mlir", "x.safetensors"} <= {*members.namelist()}
        assert not any(secret in members.read(name) for name in members.namelist())
        members.extractall(tmp_path / "got")
    assert main(["stats", str(tmp_path / "got" / "model.mlir")]) == 0


def test_both_are_moved_together(text: Path, model: Path, tmp_path: Path):
    feeds = {"x": RNG.normal(size=(3, 40)).astype(np.float32)}
    other = tmp_path / "elsewhere"
    shutil.move(text.parent, other)
    np.testing.assert_array_equal(_outputs(other / "x.mlir", feeds), _outputs(model, feeds))


def test_a_link_is_followed(text: Path, tmp_path: Path):
    beside = text.with_suffix(".safetensors")
    shutil.move(beside, tmp_path / "store")
    beside.symlink_to(tmp_path / "store")
    assert main(["stats", str(text)]) == 0


def test_opt_reads_and_writes_the_same(text: Path, model: Path, tmp_path: Path, capsys: Capture):
    feeds = {"x": RNG.normal(size=(3, 40)).astype(np.float32)}
    out = tmp_path / "y.mlir"
    assert main(["opt", str(text), "-o", str(out)]) == 0
    assert out.read_text() == text.read_text().replace("x.safetensors", "y.safetensors")
    assert out.with_suffix(".safetensors").read_bytes() == text.with_suffix(".safetensors").read_bytes()
    assert main(["opt", str(out), "-p", "layout,padding,fusion", "-o", str(out)]) == 0  # in its own place
    assert 'stage = "fusion"' in out.read_text()
    np.testing.assert_array_equal(_outputs(out, feeds), _outputs(model, feeds))


def test_opt_writes_a_file_for_each_module(text: Path, tmp_path: Path, capsys: Capture):
    both, out = text.with_name("both.mlir"), tmp_path / "z.mlir"
    both.write_text(f"{text.read_text()}\n// -----\n{text.read_text()}")
    assert main(["opt", str(both), "--split-input-file", "-o", str(out)]) == 0
    assert {"z.safetensors", "z.1.safetensors"} <= {*_files(tmp_path)}
    assert main(["opt", str(out), "--split-input-file"]) == 0
    assert capsys.readouterr().out.count("// -----") == 1


def test_standard_output_says_what_it_leaves_out(model: Path, text: Path, capsys: Capture):
    for words in (
        ["compile", str(model), "--emit", "cleanup"],
        ["compile", str(model), "--emit", "cleanup", "-o", "-"],
    ):
        assert main(words) == 0
        shown = capsys.readouterr()
        assert "1 weight (8.8 kB)" in shown.err.replace("  ", " ") or "8800" in shown.err
        assert "dense_resource<w>" in shown.out and "w:" not in shown.out and "fuseline.weights" not in shown.out
    assert main(["opt", str(text)]) == 0
    shown = capsys.readouterr()
    assert not shown.err and 'w: "0x' in shown.out  # opt prints up to a MiB


def test_text_without_its_weights_says_what_is_missing(model: Path, tmp_path: Path, capsys: Capture):
    assert main(["compile", str(model), "--emit", "cleanup"]) == 0
    (alone := tmp_path / "alone.mlir").write_text(capsys.readouterr().out)
    error = _error(["stats", str(alone)], capsys)
    assert error["code"] == "E0305" and "dense_resource<w>" in error["message"] and "-o FILE" in error["hint"]


def test_nothing_is_written_where_one_file_cannot_be(model: Path, tmp_path: Path, capsys: Capture):
    (folder := tmp_path / "out").mkdir()
    (folder / "x.safetensors").mkdir()
    assert _error(["compile", str(model), "--emit", "layout", "-o", str(folder / "x.mlir")], capsys)["code"] == "E0502"
    assert _files(folder) == ["x.safetensors"]
    (folder / "y.mlir").mkdir()
    assert _error(["compile", str(model), "--emit", "layout", "-o", str(folder / "y.mlir")], capsys)["code"] == "E0502"
    assert _files(folder) == ["x.safetensors", "y.mlir"]


def test_a_compile_that_fails_leaves_both_files(text: Path, capsys: Capture):
    before = {path: path.read_bytes() for path in text.parent.iterdir()}
    text.with_name("bad.mlir").write_text("nonsense")
    assert main(["opt", str(text.with_name("bad.mlir")), "-o", str(text)]) == 1
    assert main(["compile", str(text.with_name("no.onnx")), "--emit", "layout", "-o", str(text)]) == 1
    assert all(path.read_bytes() == content for path, content in before.items())


def test_tensors_of_others_are_not_overwritten(model: Path, tmp_path: Path, capsys: Capture):
    (folder := tmp_path / "out").mkdir()
    reference.save_file({"theirs": np.arange(3)}, folder / "x.safetensors")
    error = _error(["compile", str(model), "--emit", "layout", "-o", str(folder / "x.mlir")], capsys)
    assert error["code"] == "E0502" and "not of fuseline" in error["message"]
    (folder / "x.safetensors").write_bytes(b"something else")
    assert _error(["compile", str(model), "--emit", "layout", "-o", str(folder / "x.mlir")], capsys)["code"] == "E0502"
    assert _files(folder) == ["x.safetensors"]
    name = str(folder / "y.safetensors")
    assert _error(["compile", str(model), "--emit", "layout", "-o", name], capsys)["code"] == "E0502"


def test_an_artifact_that_was_kept_is_not_taken_for_other_weights(text: Path, model: Path, weights: Arrays):
    feeds = {"x": RNG.normal(size=(3, 40)).astype(np.float32)}
    said = text.read_text()
    text.write_text(said.replace(said[said.index(", digest = ") : said.index('"}', said.index("digest"))] + '"', ""))
    first = fuseline.compile(text).run(feeds)["y"]
    reference.save_file({"w": 2 * weights["w"]}, text.with_suffix(".safetensors"))
    assert not np.array_equal(fuseline.compile(text).run(feeds)["y"], first)


def _rewritten(change: Callable[[Arrays], object]) -> Callable[[Path], None]:
    """Write other tensors, under a text that asks for no digest."""

    def break_(text: Path) -> None:
        beside = text.with_suffix(".safetensors")
        arrays = reference.load_file(beside)
        change(arrays)
        reference.save_file(arrays, beside)
        said = text.read_text()
        start = said.index(", digest = ")
        text.write_text(said[:start] + said[said.index("}", start) :])

    return break_


def _in_text(old: str, new: str) -> Callable[[Path], None]:
    def break_(text: Path) -> None:
        said = text.read_text()
        assert old in said
        text.write_text(said.replace(old, new))

    return break_


def _cut_off(text: Path) -> None:
    beside = text.with_suffix(".safetensors")
    beside.write_bytes(beside.read_bytes()[:-100])


BROKEN: dict[str, tuple[Callable[[Path], object], str, tuple[str, ...]]] = {
    "missing": (lambda text: text.with_suffix(".safetensors").unlink(), "E0308", ("x.safetensors", "No such file")),
    "cut off": (_cut_off, "E0308", ("w", "8700 of the tensor's 8800 bytes")),
    "empty": (lambda text: text.with_suffix(".safetensors").write_bytes(b""), "E0308", ("cut off",)),
    "others": (lambda text: reference.save_file({}, text.with_suffix(".safetensors")), "E0308", ("another program",)),
    "no tensor": (_rewritten(lambda held: held.pop("w")), "E0308", ("no tensor called w", "40x55xf32")),
    "sizes": (
        _rewritten(lambda held: held.update(w=held["w"][:, :50].copy())),
        "E0308",
        ("w", "40x50xF32 (8000 bytes)", "tensor<40x55xf32> (8800 bytes)"),
    ),
    "type": (_rewritten(lambda held: held.update(w=held["w"].view(np.int32))), "E0308", ("40x55xI32", "40x55xf32")),
    "outside": (_in_text('"x.safetensors"', '"../x.safetensors"'), "E0308", ("in the folder of the IR",)),
    "absolute": (_in_text('"x.safetensors"', '"/x.safetensors"'), "E0308", ("in the folder of the IR",)),
    "no name": (_in_text('file = "x.safetensors"', "file = 7 : i64"), "E0302", ("must name a file",)),
    "format": (_in_text("format = 1 : i64", "format = 99 : i64"), "E0309", ("99", "reads 1", "0.1.0 wrote it")),
    "no format": (_in_text("format = 1 : i64, ", ""), "E0309", ("missing",)),
    "facts": (_in_text("weight_bytes = ", "weight_bytes = [1], other = "), "E0302", ("fuseline.program",)),
    "records": (_in_text('source_nodes: "[', 'source_nodes: "[7, '), "E0302", ("fuseline.program",)),
}


@pytest.mark.parametrize("case", BROKEN)
@pytest.mark.parametrize("command", [["compile"], ["opt"]])
def test_what_does_not_fit_is_said_by_name(case: str, command: list[str], text: Path, capsys: Capture):
    break_, code, words = BROKEN[case]
    break_(text)
    error = _error([command[0], str(text), "-o", str(text.with_name("out"))], capsys)
    said = f"{error['node']} {error['message']}"
    assert error["code"] == code and all(word in said for word in words), error
    assert not text.with_name("out").exists()


def test_a_text_of_another_version_goes_through_all_passes(model: Path, tmp_path: Path):
    path = tmp_path / "x.mlir"
    api.emit(model, "fusion", output=path)
    assert not fuseline.compile(path).record.notes
    path.write_text(path.read_text().replace('version = "0.1.0"', 'version = "0.0.9"'))
    (note,) = fuseline.compile(path).record.notes
    assert "0.0.9" in note and "all passes" in note


def test_a_text_that_was_changed_goes_through_all_passes(text: Path, model: Path, capsys: Capture):
    said = text.read_text()
    end = said.rindex("func.return")
    value = said[end:].split()[1]
    one, two = "tensor<3x55xf32>", "tensor<3x55xf32>, tensor<3x55xf32>"
    more = f"%more = linalg.add ins({value}, {value} : {two}) outs({value} : {one}) -> {one}\n"
    text.write_text(said[:end] + more + said[end:].replace(value, "%more", 1))
    feeds = {"x": RNG.normal(size=(3, 40)).astype(np.float32)}
    assert main(["opt", str(text), "-o", str(text.with_name("y.mlir"))]) == 0
    for path in (text, text.with_name("y.mlir")):
        np.testing.assert_array_equal(_outputs(path, feeds), 2 * _outputs(model, feeds))
    assert any("not as it was written" in note for note in fuseline.compile(text, cache=False).record.notes)


def test_ops_beside_the_dispatches_of_a_text_are_fused(model: Path, tmp_path: Path):
    path = tmp_path / "x.mlir"
    api.emit(model, "fusion", output=path)
    said = path.read_text()
    end = said.rindex("func.return")
    value = said[end:].split()[1]
    one, two = "tensor<3x55xf32>", "tensor<3x55xf32>, tensor<3x55xf32>"
    more = f"%more = linalg.add ins({value}, {value} : {two}) outs({value} : {one}) -> {one}\n"
    path.write_text(said[:end] + more + said[end:].replace(value, "%more", 1))
    program = fuseline.compile(path)
    feeds = {"x": RNG.normal(size=(3, 40)).astype(np.float32)}
    np.testing.assert_array_equal(program.run(feeds)["y"], 2 * _outputs(model, feeds))
    assert any("not as it was written" in note for note in program.record.notes)


def test_a_model_in_memory_is_emitted_to_a_file(model: Path, tmp_path: Path):
    text = api.emit(onnx.load(model), "input", output=str(tmp_path / "x.mlir"))
    assert (tmp_path / "x.mlir").read_text() == text
    with pytest.raises(FuselineError, match="E0501"):
        api.emit(model, "input", output=7)  # pyright: ignore[reportArgumentType]


def test_weights_of_one_block_are_one_tensor(tmp_path: Path):
    text = """(int64[5] i, float[5, 40] x) => (float[5, 40] e, float[5, 300] y) {
        e = Gather (w, i) t = Transpose <perm = [1, 0]> (w) h = Add (e, x) y = MatMul (h, t) }"""
    model = onnx_model(text, w=RNG.normal(size=(300, 40)).astype(np.float32))
    feeds = {"i": RNG.integers(0, 300, 5), "x": RNG.normal(size=(5, 40)).astype(np.float32)}
    program = fuseline.compile(model)
    api.emit(model, "layout", output=(path := tmp_path / "x.mlir"))
    assert len(reference.load_file(path.with_suffix(".safetensors"))) == 1 and "views = {" in path.read_text()
    again = fuseline.compile(path)
    assert program.record.layouts == again.record.layouts
    for name, value in program.run(feeds).items():
        np.testing.assert_array_equal(again.run(feeds)[name], value)
    said = path.read_text()
    for old, new, code in (
        ("order = [1 : i64, 0 : i64]", "order = [0 : i64]", "E0308"),
        ('{of = "w"', '{of = "v"', "E0308"),
    ):
        path.write_text(said.replace(old, new))
        with pytest.raises(FuselineError, match=code):
            fuseline.compile(path)
    path.write_text(said.replace('{of = "w"', "{of = 7 : i64"))
    with pytest.raises(FuselineError, match="E0302"):
        fuseline.compile(path)


def test_a_text_for_another_target_keeps_its_dispatches(model: Path, tmp_path: Path):
    path = tmp_path / "x.mlir"
    api.emit(model, "fusion", output=path, target="null", fusion="none")
    program = fuseline.compile(path)
    assert len(program.record.dispatches) == 2
    assert any("made for null" in note for note in program.record.notes)
    assert len(fuseline.compile(path, fusion="aggressive").record.dispatches) == 1
    api.emit(model, "layout", output=path, numerics="strict")
    assert fuseline.compile(path, numerics="strict").run and not fuseline.compile(path).record.notes


def test_plans_and_code_go_to_one_file(model: Path, tmp_path: Path):
    for stage in ("plan", "llvm"):
        assert main(["compile", str(model), "--emit", stage, "-o", str(tmp_path / "out" / stage)]) == 0
    assert _files(tmp_path / "out") == ["llvm", "plan"]
