"""A script written for onnxruntime runs unchanged."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import fuseline
from tests.properties.artifact_models import MODELS
from tests.small_models import attention, mlp

ort = pytest.importorskip("onnxruntime")

X = np.random.default_rng(5).standard_normal((4, 16), np.float32)


def _described(session: Any) -> list[tuple[str, str, list[Any]]]:
    return [(item.name, item.type, item.shape) for item in (*session.get_inputs(), *session.get_outputs())]


@pytest.mark.parametrize("model", [mlp(), attention("batch", "length")], ids=["fixed", "symbolic"])
def test_inputs_and_outputs_are_described_as_onnxruntime_does(model: Any):
    data = model.SerializeToString()
    assert _described(fuseline.InferenceSession(data)) == _described(ort.InferenceSession(data))


def test_run_by_path_bytes_and_artifact(tmp_path: Path):
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    by_path = fuseline.InferenceSession(tmp_path / "m.onnx", options, providers=["CPUExecutionProvider"])
    fuseline.compile(tmp_path / "m.onnx", threads=1).save(tmp_path / "m.fuse")
    sessions = [
        by_path,
        fuseline.InferenceSession(mlp().SerializeToString()),
        fuseline.InferenceSession(str(tmp_path / "m.fuse")),
    ]
    expected = ort.InferenceSession(str(tmp_path / "m.onnx")).run(None, {"x": X})[0]
    for session in sessions:
        (actual,) = session.run(None, {"x": X})
        assert np.abs(actual - expected).max() <= 1e-4 * np.abs(expected).max()
    assert by_path.get_providers() == ["CPUExecutionProvider"]


def test_outputs_can_be_chosen():
    session = fuseline.InferenceSession(mlp().SerializeToString())
    name = session.get_outputs()[0].name
    assert len(session.run([name, name], {"x": X})) == 2


def test_no_names_mean_all_outputs():
    session = fuseline.InferenceSession(mlp().SerializeToString())
    assert len(session.run([], {"x": X})) == len(session.run(None, {"x": X})) == 1


def test_feeds_may_be_lists_numbers_and_onnxruntimes_values():
    data = mlp().SerializeToString()
    ours, theirs = fuseline.InferenceSession(data), ort.InferenceSession(data)
    expected = theirs.run(None, {"x": X})[0]
    for feed in (X.tolist(), tuple(X), ort.OrtValue.ortvalue_from_numpy(X)):
        np.testing.assert_allclose(ours.run(None, {"x": feed})[0], expected, atol=1e-5)
    with pytest.raises(fuseline.FuselineError) as caught:
        ours.run(None, {"x": [["a"]]})
    assert caught.value.code == "E0204"


def test_the_model_is_described_as_onnxruntime_does(tmp_path: Path):
    model = mlp()
    model.producer_name, model.model_version, model.doc_string, model.domain, model.graph.doc_string = (
        "P",
        7,
        "doc",
        "d.o",
        "graph",
    )
    pair = model.metadata_props.add()
    pair.key, pair.value = "k", "vé\n"
    expected = ort.InferenceSession(model.SerializeToString()).get_modelmeta()
    fuseline.compile(model, threads=1).save(tmp_path / "m.fuse")
    for source in (model.SerializeToString(), tmp_path / "m.fuse", (tmp_path / "m.fuse").read_bytes()):
        found = fuseline.InferenceSession(source).get_modelmeta()
        for name in (
            "producer_name",
            "graph_name",
            "domain",
            "description",
            "graph_description",
            "version",
            "custom_metadata_map",
        ):
            assert getattr(found, name) == getattr(expected, name), name


def test_every_member_of_onnxruntimes_session_that_scripts_call_is_there():
    session = fuseline.InferenceSession(mlp().SerializeToString(), enable_fallback=False, disabled_optimizers=["x"])
    session.set_providers(["CPUExecutionProvider"], [{}])
    session.disable_fallback()
    session.enable_fallback()
    assert session.get_provider_options() == {"CPUExecutionProvider": {}}
    assert session.get_overridable_initializers() == []
    for refused in (session.io_binding, session.end_profiling):
        with pytest.raises(fuseline.FuselineError) as caught:
            refused()
        assert caught.value.code == "E0501"


def test_options_of_a_compile_and_of_a_session():
    options = fuseline.SessionOptions()
    options.intra_op_num_threads = 1
    options.graph_optimization_level = fuseline.GraphOptimizationLevel.ORT_ENABLE_ALL
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    data = attention("batch", "length").SerializeToString()
    session = fuseline.InferenceSession(data, options, ["CPUExecutionProvider"], shapes={"length": 5}, fusion="none")
    assert session.get_inputs()[0].shape == ["batch", 5]
    assert session.get_session_options() is options
    options.intra_op_num_threads = -3
    with pytest.raises(fuseline.FuselineError) as caught:
        fuseline.InferenceSession(data, options)
    assert caught.value.code == "E0501"


def test_a_run_in_the_background_calls_back():
    session, done, answers = fuseline.InferenceSession(mlp().SerializeToString()), threading.Event(), list[Any]()

    def callback(outputs: list[Any], user_data: Any, problem: str) -> None:
        answers.append((len(outputs), user_data, problem[:5]))
        done.set()

    for feeds in ({"x": X}, {}):
        done.clear()
        session.run_async(None, feeds, callback, "mine")
        assert done.wait(20)
    assert answers == [(1, "mine", ""), (0, "mine", "E0202")]


def test_the_module_itself_can_stand_for_onnxruntime():
    assert set(fuseline.get_available_providers()) == {"CPUExecutionProvider"}
    assert fuseline.get_device() == "CPU"
    fuseline.set_default_logger_severity(3)
    fuseline.disable_telemetry_events()
    fuseline.RunOptions().log_severity_level = 3


def test_the_backend_is_imported_as_the_readme_says():
    import fuseline.onnx_backend as backend

    (y,) = backend.prepare(mlp()).run([X])
    assert y.shape == (4, 10)
    with pytest.raises(fuseline.FuselineError):
        backend.prepare(mlp(), device="CUDA")
    with pytest.raises(fuseline.FuselineError):
        backend.prepare(mlp()).run([X, X])


def test_host_operators_do_not_come_back_where_fuseline_stands_for_onnxruntime(monkeypatch: pytest.MonkeyPatch):
    model, feeds = MODELS["staged"]()
    expected = ort.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
    monkeypatch.setattr(ort, "InferenceSession", fuseline.InferenceSession)
    np.testing.assert_allclose(ort.InferenceSession(model.SerializeToString()).run(None, feeds)[0], expected, rtol=1e-5)
