"""The ONNX frontend: a model becomes structured ops on tensors, with provenance and symbolic sizes.

    source ──model_file──> checked onnx-ir model ──importer──> func.func @main
                                                     │
                             one function per operator, found in ops/ by `@onnx_op`

Heavy imports (onnx, onnx-ir, xDSL) happen on the first call.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from fuseline.frontends.onnx.deferred_modules import deferred

if TYPE_CHECKING:
    import onnx
    from xdsl.dialects.builtin import ModuleOp

    from fuseline.frontends.onnx.model_file import OpenedModel
    from fuseline.frontends.onnx.sizes import ShapeOption
    from fuseline.ir.context import CompilerContext


def read_onnx(
    source: str | Path | bytes | onnx.ModelProto | OpenedModel,
    ctx: CompilerContext,
    *,
    shapes: Mapping[str, ShapeOption] | None = None,
) -> ModuleOp:
    """The program of an ONNX model as a module with one public `func.func @main`.

    Args:
        source: a path, the bytes of a model, a loaded `onnx.ModelProto`, or a model that is opened. ctx: receives the
        weights (`resources`), the symbols, and the source nodes, host ops and notes in `records`. shapes:
        sizes that replace or bound those of the model: by input name all sizes (`(1, 3, 224, 224)`), by symbol name one
        (`128`) or bounds (`(1, 512)`).

    Raises:
        FuselineError: E0101 to E0108; everything that a model has unsupported is listed in one error.
    """
    with deferred("sympy", "onnx_ir._symbolic_shapes"):
        from fuseline.frontends.onnx.importer import import_model
        from fuseline.frontends.onnx.model_file import load_model, metadata_of
        from fuseline.frontends.onnx.weight_bytes import weight_bytes

    loaded = load_model(source)
    ctx.weight_bytes = weight_bytes(loaded.model)
    ctx.metadata["onnx"] = metadata_of(loaded.model)
    if loaded.files:
        ctx.metadata["external_files"] = list(loaded.files)
    return import_model(loaded, ctx, shapes or {})
