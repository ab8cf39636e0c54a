"""A target that is described in a file: what it says is what passes see, what it cannot say is refused by name, and its
tiles are kept whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.phase_runner import run_phases
from fuseline.pipeline import CompileOptions
from fuseline.report.records import DispatchRecord
from fuseline.source_program import prepare
from fuseline.targets import create_target
from tests.graphs.onnx_text import onnx_model

TOY_NPU = """name = "toy-npu"
threads = 4
scratch_bytes_limit = 65536
binding_limit = 12
numerics = "default"

[tile_multiples]
OH = 4
OW = 4
OC = 8
IC = 8
M = 4
N = 8
K = 16
"""


def _file(folder: Path, text: str = TOY_NPU) -> str:
    path = folder / "toy.toml"
    path.write_text(text, encoding="utf-8")
    return f"null:{path}"


def _convolutions() -> onnx.ModelProto:
    """Convolution, bias, relu, twice, with no size a multiple of anything; the second adds what comes in besides."""
    rng = np.random.default_rng(21)
    weights = {"w": (5, 3, 3, 3), "b": (5,), "v": (7, 5, 3, 3), "c": (7,)}
    held = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in weights.items()}
    text = """(float[1, 3, 21, 21] x, float[1, 7, 11, 11] y) => (float[1, 7, 11, 11] z) {
        p = Conv<pads = [1, 1, 1, 1], strides = [2, 2]>(x, w, b)
        q = Relu(p)
        r = Conv<pads = [1, 1, 1, 1]>(q, v, c)
        s = Add(r, y)
        z = Relu(s)
    }"""
    return onnx_model(text, held, opset=17)


def test_what_the_file_says(tmp_path: Path):
    description = create_target(_file(tmp_path)).description
    assert (description.name, description.threads, description.scratch_bytes_limit, description.binding_limit) == (
        "toy-npu",
        4,
        65536,
        12,
    )
    assert dict(description.tile_multiples) == {"OH": 4, "OW": 4, "OC": 8, "IC": 8, "M": 4, "N": 8, "K": 16}
    assert create_target(_file(tmp_path), threads=2).description.threads == 2
    assert create_target(_file(tmp_path, "")).description.name == "toy"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("thraeds = 4", "thraeds"),
        ("threads = 0", "threads"),
        ("threads = true", "threads"),
        ('threads = "4"', "threads"),
        ("name = 4", "name"),
        ("tile_multiples = 4", "tile_multiples"),
        ("[tile_multiples]\nOX = 4", "OX"),
        ("[tile_multiples]\nOC = -8", "OC"),
        ("threads =", "TOML"),
    ],
)
def test_what_is_no_description_is_refused(tmp_path: Path, text: str, said: str):
    with pytest.raises(FuselineError, match=f"E0501.*{said}"):
        create_target(_file(tmp_path, text))


def test_a_missing_file_is_refused(tmp_path: Path):
    with pytest.raises(FuselineError, match="E0501.*cannot read"):
        create_target(f"null:{tmp_path / 'none.toml'}")


def test_elementwise_ops_stay_with_their_convolutions(tmp_path: Path):
    """What grew is cut where the next convolution reads it, and at the border of the program where it is stored."""
    plain = fuseline.compile(_convolutions(), target="null").record.dispatches
    tiled = fuseline.compile(_convolutions(), target=_file(tmp_path)).record.dispatches
    assert [_computing(dispatch) for dispatch in tiled] == [_computing(dispatch) for dispatch in plain]
    assert "slice" in [member.kind for member in tiled[-1].members]


def _computing(dispatch: DispatchRecord) -> list[str]:
    return sorted(member.kind for member in dispatch.members if member.kind not in ("pad", "slice"))


def test_convolutions_are_whole_tiles(tmp_path: Path):
    options = CompileOptions(target=_file(tmp_path))
    module, ctx = prepare(_convolutions(), options, create_target(options.target))
    run_phases(module, ctx, options, until="padding")
    text = str(module)
    assert "tensor<1x12x12x8xf32>" in text or "tensor<12x12x8xf32>" in text
    assert text.count("tensor.extract_slice") == 2
