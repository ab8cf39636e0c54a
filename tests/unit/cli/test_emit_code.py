"""`--emit kernel | llvm | asm`: the code of each executable as text, under a heading with its dispatches."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import onnx
import pytest

import fuseline
from fuseline.api import emit
from fuseline.cli.main import main
from fuseline.runtime.artifact import Artifact
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.small_models import attention, convolutions, mlp

MODELS = {"mlp": mlp(), "convolutions": convolutions(), "attention": attention("batch", "length")}


def _symbols(model: onnx.ModelProto, **choices: Any) -> dict[str, list[str]]:
    """The names of the dispatches by the kernel that they launch."""
    found: dict[str, list[str]] = {}
    for dispatch in fuseline.compile(model, **choices).record.dispatches:
        for symbol in dispatch.kernels:
            found.setdefault(symbol, []).append(dispatch.label)
    return found


def _headings(text: str, comment: str) -> dict[str, list[str]]:
    found = re.findall(
        rf"^{comment} (kernel_\w+): [\w+ -]+\n{comment} executable [@\w ]+\n{comment} dispatch (.+)$", text, re.M
    )
    return {symbol: names.split() for symbol, names in found}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize(("form", "comment"), [("kernel", "//"), ("llvm", ";"), ("asm", "#")])
def test_each_kernel_stands_once_under_its_dispatches(model: onnx.ModelProto, form: str, comment: str):
    text = emit(model, form)
    assert _headings(text, comment) == _symbols(model)
    assert text == emit(model, form), "the same for the same model"


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_llvm_text_is_a_module_that_llvm_takes(model: onnx.ModelProto):
    module = llvm.parse_assembly(emit(model, "llvm"))
    module.verify()
    assert {one.name for one in module.functions if not one.is_declaration} == _symbols(model).keys()


def test_assembly_is_that_of_the_machine():
    model = mlp()
    here, arm = (emit(model, "asm", target=f"cpu:{isa}") for isa in ("avx2", "neon"))
    assert "%ymm" in here and "%ymm" not in arm and re.search(r"\bfmla\b", arm)
    for text, isa in ((here, "avx2"), (arm, "neon")):
        assert {*re.findall(r"^(kernel_\w+):", text, re.M)} == _symbols(model, target=f"cpu:{isa}").keys()


def test_kernel_text_nests_loops_and_names_buffers():
    sizes = RNG.integers(30, 60, 3)
    m, k, n = (int(size) for size in sizes)
    model = onnx_model(f"(float[{m},{k}] x, float[{k},{n}] y) => (float[{m},{n}] z) {{ z = MatMul(x, y) }}")
    text = emit(model, "kernel")
    assert f"binding 0: b0 f32[{m * k}] read\n" in text and f"f32[{m * n}] read and written\n" in text
    assert len(re.findall(r"^\s*(?:[%\d, ]+ = )?for %\d+ = ", text, re.M)) >= 2 and " = fma " in text
    assert all(line.count("{") - line.count("}") in (-1, 0, 1) for line in text.splitlines())
    assert text.count("{") == text.count("}"), "every block is closed"
    depth = max(len(line) - len(line.lstrip()) for line in text.splitlines() if "= fma " in line)
    assert depth >= 2 * 3, "inside of two loops of the kernel"


def test_one_dispatch_by_number_and_by_name(capsys: pytest.CaptureFixture[str], tmp_path: Path):
    onnx.save(convolutions(), tmp_path / "m.onnx")
    dispatches = fuseline.compile(tmp_path / "m.onnx").record.dispatches
    last = dispatches[-1]
    for word in (str(len(dispatches) - 1), last.name):
        out = tmp_path / f"{word}.ll"
        assert main(["compile", str(tmp_path / "m.onnx"), "--emit", "llvm", "--dispatch", word, "-o", str(out)]) == 0
        assert _headings(out.read_text(), ";").keys() == {*last.kernels}
        llvm.parse_assembly(out.read_text()).verify()
    assert main(["compile", str(tmp_path / "m.onnx"), "--emit", "kernel", "--dispatch", "0", "-o", "-"]) == 0
    assert _headings(capsys.readouterr().out, "//").keys() == {*dispatches[0].kernels}


def test_the_code_is_that_of_the_artifact():
    model = convolutions()
    artifact = fuseline.compile(model, dedup="shapes", numerics="fast").session.artifact
    assert isinstance(artifact, Artifact)
    assert _headings(emit(model, "asm", dedup="shapes", numerics="fast"), "#") == _symbols(
        model, dedup="shapes", numerics="fast"
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--emit", "llvm", "--dispatch", "99"], "no dispatch is called '99'"),
        (["--emit", "llvm", "--target", "null"], "null generates no code"),
        (["--emit", "asm", "--target", "interpreter"], "interpreter generates no code"),
        (["--emit", "fusion", "--dispatch", "0"], "'fusion' is no code"),
        (["--dispatch", "0"], "--emit kernel, llvm or asm"),
        (["--emit", "lvm"], "no stage is called 'lvm'"),
    ],
    ids=str,
)
def test_what_cannot_be_printed_is_refused(
    words: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    onnx.save(mlp(), "m.onnx")
    assert main(["compile", "m.onnx", *words, "-o", "out"]) == 2
    told = capsys.readouterr().err
    assert "E0501" in told and why in told
    assert [path.name for path in tmp_path.iterdir()] == ["m.onnx"]
