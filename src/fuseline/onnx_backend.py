"""fuseline as an ONNX backend: `import fuseline.onnx_backend as backend; backend.prepare(model).run(inputs)` (see
`onnx.backend.base`)."""

from __future__ import annotations

from importlib import import_module

from fuseline.border import border

with border("import"):  # names what to install where only the runtime is
    import_module("fuseline.interop.onnx_backend")

from fuseline.interop.onnx_backend import FuselineBackend as FuselineBackend
from fuseline.interop.onnx_backend import FuselineBackendRep as FuselineBackendRep
from fuseline.interop.onnx_backend import prepare as prepare
from fuseline.interop.onnx_backend import run_model as run_model
from fuseline.interop.onnx_backend import run_node as run_node
from fuseline.interop.onnx_backend import supports_device as supports_device
