"""The names beside onnxruntime's session: the same ones, with the same values."""

from __future__ import annotations

import pytest

from fuseline.interop import session_options
from fuseline.interop.session_options import ExecutionMode, GraphOptimizationLevel, RunOptions, SessionOptions

ort = pytest.importorskip("onnxruntime")


@pytest.mark.parametrize(
    ("ours", "theirs"), [(GraphOptimizationLevel, "GraphOptimizationLevel"), (ExecutionMode, "ExecutionMode")]
)
def test_the_values_are_onnxruntimes(ours: type[GraphOptimizationLevel] | type[ExecutionMode], theirs: str) -> None:
    others = getattr(ort, theirs).__members__
    assert {name: int(value) for name, value in others.items() if name in ours.__members__} == dict(ours.__members__)


def test_the_defaults_are_onnxruntimes() -> None:
    ours, theirs = SessionOptions(), ort.SessionOptions()
    for name in (
        "intra_op_num_threads",
        "inter_op_num_threads",
        "enable_cpu_mem_arena",
        "enable_mem_pattern",
        "enable_profiling",
    ):
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in ("graph_optimization_level", "execution_mode"):
        assert int(getattr(ours, name)) == int(getattr(theirs, name)), name


def test_whatever_is_set_is_kept() -> None:
    options = SessionOptions()
    options.intra_op_num_threads = 3
    options.something_new = "x"  # pyright: ignore[reportAttributeAccessIssue] - scripts set what a later version has
    assert (options.intra_op_num_threads, options.something_new) == (3, "x")  # pyright: ignore
    assert SessionOptions().intra_op_num_threads == 0
    options.add_session_config_entry("a", "1")
    options.add_free_dimension_override_by_name("batch", 4)
    assert options.get_session_config_entry("a") == "1"
    assert options.entries == {"a": "1", "dimension.batch": "4"}
    with pytest.raises(KeyError):
        SessionOptions().get_session_config_entry("a")
    run = RunOptions()
    run.add_run_config_entry("b", "2")
    assert run.entries == {"b": "2"} and RunOptions().entries == {}


def test_functions_of_the_module() -> None:
    assert session_options.get_available_providers() == session_options.get_all_providers() == ["CPUExecutionProvider"]
    assert session_options.get_device() == ort.get_device().split("-")[0] == "CPU"
    for name, arguments in (
        ("set_default_logger_severity", (3,)),
        ("set_seed", (1,)),
        ("disable_telemetry_events", ()),
    ):
        assert hasattr(ort, name)
        assert getattr(session_options, name)(*arguments) is None
    assert session_options.enable_telemetry_events() is None
