"""`--emit flow`: regions as fusion formed them, weights as parameters beside the text, nothing of our own in it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.api import emit, emit_flow
from fuseline.cli.main import main
from fuseline.compilation import outlined
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.flow_constants import ConstantOp
from fuseline.ir.text import parse_module, print_module
from fuseline.targets.iree.flow import flow_program
from fuseline.targets.iree.flow.parameters import INLINE_BYTES
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.small_models import attention, convolutions, mlp
from tests.tensor_files import read_tensors

MODELS = {"mlp": mlp(), "convolutions": convolutions(), "attention": attention("batch", "length")}


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("target", ["cpu", "null"])
def test_each_dispatch_is_a_region(model: onnx.ModelProto, target: str):
    text = emit(model, "flow", target=target)
    launches = fuseline.compile(model, target=target).record.dispatches
    assert text.count("flow.dispatch.region") == len(launches)
    assert "flow.executable" not in text and "flow.dispatch @" not in text


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_names_alone_are_left_of_our_attributes(model: onnx.ModelProto):
    assert {*re.findall(r"fuseline\.\w+", emit(model, "flow"))} == {"fuseline.name"}


def test_the_program_that_is_printed_stays_as_it_is():
    module, ctx = outlined(mlp(), CompileOptions(target="null"))
    before = print_module(module, ctx)
    flow_program(module, ctx)
    assert print_module(module, ctx) == before


def test_large_weights_lie_beside_the_text_under_their_names(tmp_path: Path):
    rows = int(RNG.integers(65, 200))
    weights = {"w": RNG.standard_normal((rows, 8), np.float32), "b": RNG.standard_normal(8).astype(np.float32)}
    model = onnx_model(f"(float[2, {rows}] x) => (y) {{ t = MatMul(x, w)  y = Add(t, b) }}", weights)
    path = tmp_path / "deep" / "m.mlir"
    files = emit_flow(model, path)
    assert files == [str(path), str(path.with_suffix(".safetensors"))]
    found = read_tensors(path.with_suffix(".safetensors").read_bytes())
    named = re.findall(r'flow\.tensor\.constant #flow\.parameter\.named<"model"::"([^"]+)">', path.read_text())
    assert [*found] == named and len(named) == 1
    (stored,) = found.values()
    assert sorted(stored.reshape(-1)) == sorted(weights["w"].reshape(-1)), "perhaps transposed, but the same numbers"
    assert weights["b"].nbytes <= INLINE_BYTES and weights["b"].tobytes().hex().upper() in path.read_text().upper()


def test_tensors_begin_aligned_to_their_elements(tmp_path: Path):
    model = onnx_model(
        "(float[1, 90] x, int64[1] i) => (y, z) { y = Add(x, w)  z = Gather(v, i) }",
        w=RNG.standard_normal((97, 90), np.float32),
        v=RNG.integers(-9, 9, 301),
    )
    path = tmp_path / "m.mlir"
    emit_flow(model, path)
    data = path.with_suffix(".safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    widths = {"F32": 4, "I64": 8}
    entries = json.loads(data[8:start]).items()
    for _, said in [entry for entry in entries if entry[0] != "__metadata__"]:
        assert (start + said["data_offsets"][0]) % widths[said["dtype"]] == 0


def test_booleans_are_bytes_there():
    taken = RNG.random((50, 40)) < 0.5
    model = onnx_model("(float[50, 40] x) => (y) { y = Where(m, x, z) }", m=taken, z=np.float32(0.5))
    program = flow_program(*outlined(model, CompileOptions(target="null")))
    (stored,) = program.parameters.values()
    assert stored.dtype == np.uint8 and (stored.reshape(taken.shape).astype(bool) == taken).all()
    assert re.search(r"arith\.trunci %\d+ : tensor<[\dx]+xi8> to tensor<[\dx]+xi1>", program.text)


def test_small_programs_need_no_archive(tmp_path: Path):
    model = onnx_model("(float[n, 4] x) => (y) { y = Tanh(x) }")
    path = tmp_path / "m.mlir"
    assert emit_flow(model, path) == [str(path)]
    assert [*tmp_path.iterdir()] == [path]
    assert re.search(r"flow\.dispatch\.region -> \(tensor<\?x?[\dx?]*f32>\{%\w+\}\)", path.read_text())


def test_an_operator_of_the_host_is_refused():
    model = onnx_model("(float[8] x) => (y) { [found] t = NonZero(x)  y = Identity(t) }")
    with pytest.raises(FuselineError, match="NonZero runs on the host") as caught:
        emit(model, "flow")
    assert (caught.value.code, caught.value.node) == ("E0306", "found")


def test_a_value_of_the_host_is_refused():
    model = onnx_model("(string[2] s, float[2] x) => (y) { y = Neg(x) }")
    with pytest.raises(FuselineError, match="no type for a value of the host") as caught:
        emit(model, "flow")
    assert caught.value.code == "E0306"


def test_nothing_is_written_where_the_archive_cannot_be(tmp_path: Path):
    (tmp_path / "m.safetensors").mkdir()
    model = onnx_model("(float[2, 90] x) => (y) { y = MatMul(x, w) }", w=RNG.standard_normal((90, 9), np.float32))
    with pytest.raises(FuselineError) as caught:
        emit_flow(model, tmp_path / "m.mlir")
    assert caught.value.code == "E0502" and not (tmp_path / "m.mlir").exists()


def test_parameters_are_read_and_printed_alike():
    text = 'flow.tensor.constant #flow.parameter.named<"model"::"a.b/c \\22d\\22"> : tensor<10x256xf32>'
    module = parse_module(f"%0 = {text}\n", new_context())
    (op,) = module.ops
    assert isinstance(op, ConstantOp) and text in print_module(module)


@pytest.mark.parametrize("damaged", ['<"model""k"> : tensor<1xf32>', '<"model"::> : tensor<1xf32>', '<"m"::"k">'])
def test_what_is_no_parameter_does_not_parse(damaged: str):
    with pytest.raises(FuselineError) as caught:
        parse_module(f"%0 = flow.tensor.constant #flow.parameter.named{damaged}", new_context())
    assert caught.value.code == "E0301"


def test_the_command_names_the_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    model, out = tmp_path / "m.onnx", tmp_path / "m.mlir"
    onnx.save(mlp(), model)
    assert main(["compile", str(model), "--emit", "flow", "-o", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["files"] == [str(out), str(out.with_suffix(".safetensors"))]
    assert main(["compile", str(model), "--emit", "flow"]) == 0
    assert capsys.readouterr().out == out.read_text()
