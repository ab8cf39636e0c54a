"""The compiler loaded before processes are forked: each would load it anew."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

import numpy as np
import onnx
from onnx import helper

from fuseline.compilation import compile_program
from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.verify.check.original import Original


@cache
def warmed() -> None:
    """Compile and evaluate a model of one node. What goes wrong with it will go wrong with others."""
    sides = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [4]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "warm", sides[:1], sides[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    options = CompileOptions(threads=1, cache=False)
    with suppress(FuselineError):
        compile_program(model, options)
        Original(model, options).run({"x": np.ones(4, np.float32)})
