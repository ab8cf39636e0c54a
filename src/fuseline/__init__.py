"""fuseline: a machine-learning graph compiler whose fusion decisions are rules you can read, query and change.

Names load on first use: `import fuseline; fuseline.load("m.fuse")` imports the runtime and NumPy, and nothing of the
compiler.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from fuseline.version import VERSION

if TYPE_CHECKING:
    from fuseline import api, jax, onnx_backend
    from fuseline.api import compile, fuse, load, optimize
    from fuseline.compiled_model import CompiledModel
    from fuseline.errors import FuselineError
    from fuseline.interop.inference_session import InferenceSession
    from fuseline.interop.session_options import GraphOptimizationLevel, RunOptions, SessionOptions

__version__ = VERSION
__all__ = [
    "CompiledModel",
    "FuselineError",
    "GraphOptimizationLevel",
    "InferenceSession",
    "RunOptions",
    "SessionOptions",
    "compile",
    "fuse",
    "load",
    "optimize",
]
__all__ += ["api", "jax", "onnx_backend"]

_BESIDE_A_SESSION = (
    "ExecutionMode",
    "GraphOptimizationLevel",
    "RunOptions",
    "SessionOptions",
    "disable_telemetry_events",
    "enable_telemetry_events",
    "get_all_providers",
    "get_available_providers",
    "get_device",
    "set_default_logger_severity",
    "set_seed",
)
"""What scripts written for onnxruntime import beside its session."""

_HOMES = {
    "CompiledModel": "fuseline.compiled_model",
    "FuselineError": "fuseline.errors",
    "InferenceSession": "fuseline.interop.inference_session",
    "ModelMetadata": "fuseline.interop.inference_session",
    "NodeArg": "fuseline.interop.inference_session",
    "compile": "fuseline.api",
    "fuse": "fuseline.api",
    "load": "fuseline.api",
    "optimize": "fuseline.api",
    **dict.fromkeys(_BESIDE_A_SESSION, "fuseline.interop.session_options"),
}


def __getattr__(name: str) -> Any:
    if name in ("api", "jax", "onnx_backend"):
        return import_module(f"fuseline.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'fuseline' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
