"""Whatever leaves the interface is a FuselineError: wrong arguments by name, bad models by node, what nobody foresaw as
E0901 with a phase."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline import phase_runner
from fuseline.border import border
from fuseline.errors import FuselineError
from tests.graphs.onnx_text import declared, onnx_model

X = np.random.default_rng(0).standard_normal(4).astype(np.float32)


def _model(nodes: str, shape: tuple[int, ...] = (4,), **weights: np.ndarray) -> onnx.ModelProto:
    return onnx_model(f"({declared({'x': shape})}) => (float[] y) {{ {nodes} }}", weights, opset=17)


RELU = _model("[r] y = Relu(x)")


def _error_of(call: Callable[[], Any]) -> FuselineError:
    with pytest.raises(FuselineError) as caught:
        call()
    return caught.value


@pytest.fixture(scope="module")
def program() -> fuseline.CompiledModel:
    return fuseline.compile(RELU, threads=1)


@pytest.mark.parametrize("feeds", [None, [X], X, "x", {"x"}, 5])
def test_feeds_that_are_no_mapping_are_refused(feeds: Any, program: fuseline.CompiledModel):
    assert _error_of(lambda: program.run(feeds)).code == "E0501"
    assert _error_of(lambda: fuseline.InferenceSession(RELU.SerializeToString()).run(None, feeds)).code == "E0501"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(("threads", value) for value in (0, -1, 257, 1.5, "2", True)),
        *(("fusion", value) for value in ("layout", 1)),
        *((name, "q") for name in ("target", "dedup", "numerics", "weights", "plan_strict")),
        *((name, "q") for name in ("shapes", "rules", "progress")),
        *(("shapes", value) for value in ({"x": None}, {"x": 1.5}, {"x": "a"}, [4])),
        *(("rules", value) for value in (5, None, [5])),
        *(("plan", value) for value in (5, {}, "a\0b")),
        ("target", None),
        ("bogus", 1),
    ],
)
def test_a_wrong_option_is_named(option: str, value: Any):
    error = _error_of(lambda: fuseline.compile(RELU, **{option: value}))
    assert error.code == "E0501"
    assert option.removesuffix("s") in str(error) or str(value) in str(error)


@pytest.mark.parametrize("model", [None, 5, [], RELU.graph, "a\0b", "m.fuse"])
def test_what_is_no_model_is_refused(model: Any):
    assert _error_of(lambda: fuseline.compile(model)).code == "E0501"


@pytest.mark.parametrize("path", [None, 5, "a\0b", RELU])
def test_what_is_no_path_is_refused(path: Any, program: fuseline.CompiledModel):
    assert _error_of(lambda: fuseline.load(path)).code == "E0501"
    assert _error_of(lambda: program.save(path)).code == "E0501"


@pytest.mark.parametrize("option", ["target", "fusion", "shapes", "rules", "plan", "numerics", "dedup", "weights"])
def test_compile_options_of_an_artifact_are_refused(option: str, program: fuseline.CompiledModel, tmp_path: Path):
    program.save(tmp_path / "m.fuse")
    given: dict[str, Any] = {option: "none"}
    openers = (
        lambda: fuseline.load(tmp_path / "m.fuse", **given),
        lambda: fuseline.InferenceSession(tmp_path / "m.fuse", **given),
        lambda: fuseline.InferenceSession((tmp_path / "m.fuse").read_bytes(), **given),
    )
    for opener in openers:
        error = _error_of(opener)
        assert (error.code, option in error.message) == ("E0501", True)


@pytest.mark.parametrize(("old", "new"), [(b"\x01r", b"\x01\xff"), (b"\x01x", b"\x01\xff"), (b"Relu", b"Re\xffu")])
def test_names_that_are_not_utf8_are_refused(old: bytes, new: bytes):
    assert _error_of(lambda: fuseline.compile(RELU.SerializeToString().replace(old, new))).code == "E0105"


@pytest.mark.parametrize("location", ["a\0", "", "../w"])
def test_a_location_that_names_no_file_is_refused(location: str, tmp_path: Path):
    model = _model("y = Add(x, w)", w=X)
    tensor = model.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", location
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    assert _error_of(lambda: fuseline.compile(tmp_path / "m.onnx")).code == "E0104"


@pytest.mark.parametrize(("step", "length"), [(4, -3), (-4, 3), (0, 3), (4, 0)])
def test_frames_without_a_size_are_refused(step: int, length: int):
    node = '[frames] y = STFT(x, step, "", length)'
    model = _model(node, (1, 16, 1), step=np.array(step), length=np.array(length))
    error = _error_of(lambda: fuseline.compile(model))
    assert (error.code, error.node) == ("E0105", "frames")


def test_a_place_that_a_constant_does_not_have_is_refused():
    nodes = "[pick] c = Gather(w, i)  y = Add(x, c)"
    error = _error_of(lambda: fuseline.compile(_model(nodes, w=X, i=np.array([5]))))
    assert (error.code, error.node) == ("E0105", "pick")


def test_f8_tensors_of_mlir_are_refused(tmp_path: Path):
    (tmp_path / "m.mlir").write_text(
        "func.func @main(%a: tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN> { return %a : tensor<4xf8E4M3FN> }"
    )
    error = _error_of(lambda: fuseline.compile(tmp_path / "m.mlir"))
    assert error.code != "E0901"
    assert "f8E4M3FN" in str(error)


class _Broken:
    def __init__(self, problem: BaseException) -> None:
        self.problem = problem

    def apply(self, ctx: Any, module: Any) -> None:
        relu = next(op for op in module.walk() if op.name == "linalg.generic")
        assert relu is not None
        raise self.problem


@pytest.fixture
def breaking(monkeypatch: pytest.MonkeyPatch):
    make = phase_runner._make_pass  # pyright: ignore[reportPrivateUsage]

    def install(name: str, problem: BaseException) -> None:
        monkeypatch.setattr(
            phase_runner, "_make_pass", lambda pass_, *rest: _Broken(problem) if pass_ == name else make(pass_, *rest)
        )

    return install


def test_an_unforeseen_failure_names_phase_node_and_place_and_says_how_to_report_it(breaking: Callable[..., None]):
    breaking("fold-unit-dims", ZeroDivisionError("by zero"))
    error = _error_of(lambda: fuseline.compile(RELU, threads=1))
    assert (error.code, error.phase, error.node) == ("E0901", "layout/fold-unit-dims", "r")
    assert "ZeroDivisionError: by zero" in error.message
    assert "--report-bug" in (error.hint or "")
    assert isinstance(error.__cause__, ZeroDivisionError)
    assert error.to_json()["phase"] == error.phase
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.phase) == (str(error), error.phase)


def test_memory_and_missing_packages_have_codes_of_their_own(breaking: Callable[..., None]):
    breaking("cse", MemoryError())
    with pytest.raises(MemoryError):
        fuseline.compile(RELU)
    assert _error_of(lambda: fuseline.compile(RELU)).code == "E0405"
    breaking("cse", ModuleNotFoundError("No module named 'xdsl'", name="xdsl"))
    assert _error_of(lambda: fuseline.compile(RELU)).code == "E0503"
    with pytest.raises(ImportError):
        fuseline.compile(RELU)
    breaking("cse", ModuleNotFoundError("No module named 'torch'", name="torch"))
    assert "fuseline[torch]" in str(_error_of(lambda: fuseline.compile(RELU)))


@pytest.mark.parametrize("problem", [KeyboardInterrupt, SystemExit])
def test_an_interrupt_stays_one(breaking: Callable[..., None], problem: type[BaseException]):
    breaking("cse", problem())
    with pytest.raises(problem):
        fuseline.compile(RELU)


def test_a_run_that_breaks_is_coded(program: fuseline.CompiledModel, monkeypatch: pytest.MonkeyPatch):
    def broken(feeds: Any) -> Any:
        raise IndexError("lost")

    monkeypatch.setattr(program, "session", type("S", (), {"run": staticmethod(broken)})())
    error = _error_of(lambda: program.run({"x": X}))
    assert (error.code, error.phase) == ("E0901", "run")


def test_a_lowering_that_breaks_names_its_node(monkeypatch: pytest.MonkeyPatch):
    from fuseline.frontends.onnx import importer

    def broken(node: Any) -> Any:
        raise IndexError("lost")

    monkeypatch.setattr(importer, "fold", broken)
    error = _error_of(lambda: fuseline.compile(RELU))
    assert (error.code, error.phase, error.node) == ("E0901", "read", "r")


def test_only_the_call_itself_makes_a_type_error_a_wrong_argument():
    @border("work")
    def work(x: int) -> int:
        raise TypeError("inside")

    assert _error_of(lambda: work(x=1)).code == "E0901"
    assert _error_of(lambda: work(y=1)).code == "E0501"  # pyright: ignore[reportCallIssue]


_RUNTIME_ONLY = """
import sys
import numpy as np
for name in (
    "xdsl", "llvmlite", "onnx", "onnx_ir", "click", "rich", "msgspec", "jinja2", "platformdirs", "ml_dtypes",
    "cryptography",
):
    sys.modules[name] = None
import fuseline
program = fuseline.load(sys.argv[1])
assert program.run({"x": np.ones(4, np.float32)})["y"].shape == (4,)
assert fuseline.InferenceSession(sys.argv[1]).run(None, {"x": [1, 2, 3, 4]})[0].shape == (4,)
program.save(sys.argv[2])
def backend():
    import fuseline.onnx_backend
calls = [lambda: fuseline.compile(sys.argv[1] + "x"), lambda: program.stats, lambda: program.plan]
calls += [lambda: program.decisions, backend, lambda: fuseline.onnx_backend]
calls += [lambda: program.save(sys.argv[2], sign="k"), lambda: fuseline.load(sys.argv[1], trusted=["k"])]
for call in calls:
    try:
        call()
    except fuseline.FuselineError as error:
        assert error.code == "E0503" and "pip install" in error.hint, error
        assert isinstance(error, ImportError)
    else:
        raise AssertionError
sys.argv[1:] = ["stats", sys.argv[1], *sys.argv[3:]]
from fuseline.cli.entry import run
run()
"""


def test_where_only_the_runtime_is_installed_the_rest_says_what_to_install(
    program: fuseline.CompiledModel, tmp_path: Path
):
    program.save(tmp_path / "m.fuse")
    for more, shown in (([], "error E0503"), (["--json"], '"code": "E0503"')):
        arguments = [str(tmp_path / "m.fuse"), str(tmp_path / "n.fuse"), *more]
        done = subprocess.run(
            [sys.executable, "-c", _RUNTIME_ONLY, *arguments], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert shown in done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        assert "click" in done.stdout + done.stderr


def test_what_nobody_foresaw_is_as_long_as_a_terminal_shows():
    with pytest.raises(FuselineError) as caught, border("compile"):
        raise KeyError("x" * 100_000)
    assert caught.value.code == "E0901" and "KeyError" in caught.value.message and len(caught.value.message) < 1000
