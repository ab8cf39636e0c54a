"""What a MODEL argument may be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import fuseline
from fuseline.cli.models import compiled, is_artifact, is_model, record_of, require_model, require_onnx
from fuseline.cli.options import compile_options, threads_option
from fuseline.errors import FuselineError
from tests.small_models import mlp

INTERPRETER = {"target": "interpreter"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("files")
    (place / "m.onnx").write_bytes(mlp().SerializeToString())
    fuseline.compile(mlp(), threads=1).save(place / "m.fuse")
    return place


@pytest.mark.parametrize(
    ("name", "model", "artifact"),
    [
        ("m.onnx", True, False),
        ("m.mlir", True, False),
        ("m.fuse", False, True),
        ("p.toml", False, False),
        ("s.json", False, False),
    ],
)
def test_what_a_name_says(name: str, model: bool, artifact: bool) -> None:
    assert (is_model(Path(name)), is_artifact(Path(name))) == (model, artifact)


def _refused(work: Callable[[], object], code: str, words: str) -> None:
    with pytest.raises(FuselineError, match=words) as caught:
        work()
    assert caught.value.code == code


def test_where_the_model_itself_is_needed() -> None:
    require_model(Path("m.onnx"), "this")
    require_model(Path("m.mlir"), "this")
    require_onnx(Path("m.onnx"), "this")
    _refused(lambda: require_model(Path("m.fuse"), "this"), "E0501", "this needs the model, not an artifact")
    for name in ("m.fuse", "m.mlir"):
        _refused(lambda name=name: require_onnx(Path(name), "this"), "E0501", "this needs an ONNX model")


@pytest.mark.parametrize("name", ["none.onnx", "none.fuse", "x" * 5000, "zero\0byte"])
def test_files_that_are_not_there(name: str, files: Path) -> None:
    _refused(lambda: compiled(files / name, {}), "E0101", "no such file")


def test_models_are_compiled_and_artifacts_loaded(files: Path) -> None:
    program, loaded = compiled(files / "m.onnx", INTERPRETER), compiled(files / "m.fuse", {"threads": 2})
    assert (program.record.target, loaded.record.target[:3], loaded.threads) == ("interpreter", "cpu", 2)
    assert [item.name for item in program.inputs] == [item.name for item in loaded.inputs] == ["x"]
    assert record_of(files / "m.fuse", {}).dispatches == loaded.record.dispatches
    _refused(lambda: compiled(files / "m.onnx", {}, trusted=["k"]), "E0501", "--trusted is for artifacts")


def test_warnings_of_a_compile_are_shown(
    files: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = compiled(files / "m.onnx", INTERPRETER)
    program.record.warnings.append("mind the gap")
    monkeypatch.setattr(fuseline, "compile", lambda *_, **__: program)
    assert compiled(files / "m.onnx", {}) is program
    assert capsys.readouterr().err == "warning: mind the gap\n"


def test_options_of_a_compile_do_not_go_with_an_artifact(files: Path) -> None:
    @click.command()
    @compile_options
    @threads_option
    def command(**options: object) -> None:
        compiled(files / "m.fuse", options)

    assert CliRunner().invoke(command, ["--threads", "2"]).exit_code == 0
    for option in (["--fusion", "none"], ["--plan-strict"], ["--shape", "x=4x16"], ["--target", "cpu"]):
        found = CliRunner().invoke(command, option).exception
        assert isinstance(found, FuselineError) and found.code == "E0501"
        assert found.message.startswith(f"{option[0]} is for compiling")
