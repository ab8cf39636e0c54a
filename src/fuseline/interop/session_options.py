"""The names around onnxruntime's session that scripts import beside it. What they set is accepted;
`intra_op_num_threads` is all that counts."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

PROVIDER = "CPUExecutionProvider"


class GraphOptimizationLevel(IntEnum):
    """Accepted and ignored."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(IntEnum):
    """Accepted and ignored."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class _Settings:
    """Any attribute may be set; entries of the configuration are kept as text."""

    def __init__(self) -> None:
        self.entries: dict[str, str] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class SessionOptions(_Settings):
    """Threads per run in `intra_op_num_threads` (0: all processors); whatever else is set has no effect."""

    intra_op_num_threads: int = 0
    inter_op_num_threads: int = 0
    graph_optimization_level: int = GraphOptimizationLevel.ORT_ENABLE_ALL
    execution_mode: int = ExecutionMode.ORT_SEQUENTIAL
    log_severity_level: int = 2
    enable_cpu_mem_arena: bool = True
    enable_mem_pattern: bool = True
    enable_profiling: bool = False

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Kept, without effect."""
        self.entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """What was kept; raises KeyError for what never was."""
        return self.entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Kept, without effect: give `shapes={name: size}` to fix a size."""
        self.entries[f"dimension.{name}"] = str(size)


class RunOptions(_Settings):
    """Accepted and ignored."""

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Kept, without effect."""
        self.entries[key] = value


def get_available_providers() -> list[str]:
    """The CPU."""
    return [PROVIDER]


def get_all_providers() -> list[str]:
    """The CPU."""
    return [PROVIDER]


def get_device() -> str:
    """The CPU."""
    return "CPU"


def set_default_logger_severity(level: int) -> None:
    """Accepted and ignored: nothing is logged."""


def set_seed(seed: int) -> None:
    """Accepted and ignored."""


def disable_telemetry_events() -> None:
    """Accepted and ignored: nothing is sent."""


def enable_telemetry_events() -> None:
    """Accepted and ignored: nothing is sent."""
