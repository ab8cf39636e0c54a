"""The Python interface end to end on small models."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import fuseline
from tests.small_models import SMALL_MODELS, attention, mlp

ort = pytest.importorskip("onnxruntime")


def _feeds(model: fuseline.CompiledModel, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    sizes = {"batch": 2, "length": 7}
    out: dict[str, np.ndarray] = {}
    for item in model.inputs:
        shape = [extent if isinstance(extent, int) else sizes[str(extent)] for extent in item.shape]
        out[item.name] = (rng.integers(0, 50, shape) if item.dtype.kind == "i" else rng.standard_normal(shape)).astype(
            item.dtype
        )
    return out


def _reference(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    return ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feeds)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("name", list(SMALL_MODELS))
def test_outputs_agree_with_onnxruntime(name: str, threads: int):
    source = SMALL_MODELS[name]()
    model = fuseline.compile(source, threads=threads)
    first, second = _feeds(model, 1), _feeds(model, 2)
    ours, others = model.run(first), model.run(second)
    for value, other, expected in zip(ours.values(), others.values(), _reference(source, first), strict=True):
        assert not np.array_equal(value, other)
        assert np.abs(value - expected).max() <= 1e-4 * np.abs(expected).max()


def test_the_interpreter_agrees_and_null_counts(tmp_path: Path):
    native, interpreted, counted = (
        fuseline.compile(SMALL_MODELS["convolutions"](), threads=1, target=t) for t in ("cpu", "interpreter", "null")
    )
    feeds = _feeds(native, 9)
    for name, expected in interpreted.run(feeds).items():
        assert np.abs(native.run(feeds)[name] - expected).max() <= 1e-4 * np.abs(expected).max()
    assert counted.stats["dispatches"] == native.stats["dispatches"]
    for call, code in ((lambda: counted.run(feeds), "E0305"), (lambda: interpreted.save(tmp_path / "m.fuse"), "E0502")):
        with pytest.raises(fuseline.FuselineError) as caught:
            call()
        assert caught.value.code == code


def test_saved_and_loaded_gives_equal_bits_and_keeps_the_records(tmp_path: Path):
    model = fuseline.compile(mlp(), threads=1)
    model.save(tmp_path / "m.fuse")
    loaded = fuseline.load(tmp_path / "m.fuse", verify=True)
    feeds = _feeds(model, 3)
    for name, value in model.run(feeds).items():
        assert value.tobytes() == loaded.run(feeds)[name].tobytes()
    assert loaded.stats == model.stats
    assert loaded.decisions == model.decisions
    assert loaded.stats["dispatches"] == len(loaded.record.dispatches) > 0


def test_one_artifact_runs_at_several_sizes():
    source = attention("batch", "length")
    model = fuseline.compile(source, threads=1, shapes={"length": "1..16"})
    assert model.inputs[0].shape == ("batch", "length")
    for batch, length in ((1, 1), (2, 16), (3, 5)):
        ids = np.random.default_rng(length).integers(0, 50, (batch, length))
        expected = _reference(source, {"ids": ids})[0]
        assert np.abs(model(ids) - expected).max() <= 1e-4 * np.abs(expected).max()


def test_a_fixed_shape_replaces_the_symbols():
    model = fuseline.compile(attention("batch", "length"), threads=1, shapes={"ids": (2, 4)})
    assert model.inputs[0].shape == (2, 4)


def test_calls_take_positions_names_and_dlpack():
    model = fuseline.compile(mlp(), threads=1)
    x = _feeds(model, 4)["x"]

    class Exporter:
        def __dlpack__(self, **options: object) -> object:
            return x.__dlpack__()

        def __dlpack_device__(self) -> tuple[int, int]:
            return x.__dlpack_device__()

    assert np.array_equal(model(x), model(x=x))
    assert np.array_equal(model(x), model(Exporter()))


def test_every_source_node_is_in_a_dispatch_or_eliminated():
    record = fuseline.compile(SMALL_MODELS["convolutions"](), threads=1).record
    placed = {node for dispatch in record.dispatches for member in dispatch.members for node in member.nodes}
    assert set(record.source_nodes) <= placed | set(record.eliminated) | {host.node for host in record.host_ops}


def test_progress_is_told_phases_in_order():
    seen: list[tuple[str, int, int]] = []
    fuseline.compile(mlp(), threads=1, progress=lambda phase, done, total: seen.append((phase, done, total)))
    assert seen[0][0] == "read"
    assert [done for _, done, _ in seen] == sorted(done for _, done, _ in seen)
    assert all(done <= total for _, done, total in seen)


def test_load_imports_no_compiler(tmp_path: Path):
    fuseline.compile(mlp(), threads=1).save(tmp_path / "m.fuse")
    script = (
        "import sys, numpy as np, fuseline\n"
        f"y = fuseline.load({str(tmp_path / 'm.fuse')!r})(np.ones((4, 16), np.float32))\n"
        "assert y.shape == (4, 10)\n"
        "loaded = {'xdsl', 'llvmlite', 'onnx', 'onnx_ir', 'msgspec', 'click', 'rich', 'ml_dtypes'} & set(sys.modules)\n"
        "assert not loaded, loaded\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_what_the_documents_call_by_its_full_name_is_there():
    script = "import fuseline; print(fuseline.api.emit.__name__, fuseline.jax.__name__, fuseline.onnx_backend.__name__)"
    found = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert found.stdout.split() == ["emit", "fuseline.jax", "fuseline.onnx_backend"]


def test_names_load_on_first_use():
    script = (
        "import sys, fuseline; assert 'numpy' not in sys.modules; fuseline.FuselineError; assert 'numpy' not in "
        "sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert set(fuseline.__all__) <= set(dir(fuseline))
    with pytest.raises(AttributeError, match="nothing"):
        _ = fuseline.nothing  # pyright: ignore[reportAttributeAccessIssue]
