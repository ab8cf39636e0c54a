"""Replay compares what two compilers wrote: equal text is no difference, and a file on one side only is one."""

from __future__ import annotations

from pathlib import Path

from tools.replay import differences, write_stages


def _write(folder: Path, **texts: str) -> Path:
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name}.mlir").write_text(text)
    return folder


def test_differences(tmp_path: Path):
    before = _write(tmp_path / "before", same="a\nb\n", changed="a\nb\n", gone="a\n")
    after = _write(tmp_path / "after", same="a\nb\n", changed="a\nc\n", new="a\n")
    found = differences(before, after)
    assert set(found) == {"changed.mlir", "gone.mlir", "new.mlir"}
    assert "-b" in found["changed.mlir"]
    assert "+c" in found["changed.mlir"]


def test_the_generated_ir_is_the_same_every_time(tmp_path: Path):
    for name in ("first", "second"):
        write_stages(tmp_path / name, "dispatch", "^(mlp|convolutions)$")
    assert len(list((tmp_path / "first").iterdir())) == 2
    assert differences(tmp_path / "first", tmp_path / "second") == {}


def test_a_model_that_does_not_compile_leaves_its_error(tmp_path: Path):
    write_stages(tmp_path / "out", "no-such-stage", "^mlp$")
    assert (tmp_path / "out" / "mlp.mlir").read_text().startswith("E0501")
