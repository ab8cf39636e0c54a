"""The arguments of `@main`: the inputs of a model's graph, tensors or what only host operators hold, with their names
and sizes as attributes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir
from xdsl.dialects.builtin import ArrayAttr, StringAttr
from xdsl.ir import Attribute

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import from_onnx, holds, is_unsigned, mlir_element
from fuseline.frontends.onnx.host_ops import BOXED, border_attributes
from fuseline.frontends.onnx.host_values import HostValue, Value, without_sizes
from fuseline.frontends.onnx.model_file import LoadedModel
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.sizes import InputSizes, ShapeOption, graph_inputs
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.ir.build import tensor_type
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim
from fuseline.ir.dim_json import to_name


class MainArguments:
    """Adds the arguments to the program. `attributes` are theirs, in order; `problems` what is wrong with inputs."""

    def __init__(self, loaded: LoadedModel, program: Program, ctx: CompilerContext) -> None:
        self.loaded, self.program, self.ctx = loaded, program, ctx
        self.attributes: list[dict[str, Attribute]] = []
        self.problems: list[FuselineError] = []

    def read(self, graph: ir.Graph, shapes: Mapping[str, ShapeOption]) -> dict[str, Value]:
        """The inputs of `graph` by name; `shapes` are the sizes that the caller gave. Raises FuselineError: E0105 for
        an input without a type."""
        inputs = graph_inputs(graph)
        sizes = InputSizes(inputs, shapes)
        scope: dict[str, Value] = {}
        for value in inputs:
            try:
                scope[str(value.name)] = self._input(value, sizes)
            except FuselineError as error:
                self.problems.append(error)
        self.ctx.symbols.update(sizes.symbols)
        self.program.assumed = frozenset(sizes.symbols.keys() - shapes.keys())
        return scope

    def _input(self, value: ir.Value, sizes: InputSizes) -> Value:
        name = str(value.name)
        dims = sizes.of(value) if isinstance(value.type, ir.TensorType) else None
        if value.dtype is None or not holds(value.dtype) or dims is None:
            return self._boxed_input(value, dims)
        dtype = from_onnx(value.dtype)
        argument = self.program.block.insert_arg(tensor_type(mlir_element(dtype), dims), len(self.program.block.args))
        self.program.bind_symbols(argument, dims)
        attributes: dict[str, Attribute] = {"fuseline.name": StringAttr(name)}
        if any(not isinstance(dim, int) for dim in dims):
            attributes["fuseline.dims"] = ArrayAttr([StringAttr(to_name(dim)) for dim in dims])
        self.attributes.append(with_dtype(attributes, dtype))
        return Tensor(dtype, dims, value=argument, name=name)

    def _boxed_input(self, value: ir.Value, dims: tuple[Dim, ...] | None) -> HostValue:
        """An input that only host operators handle."""
        name = str(value.name)
        type_ = self.loaded.types.get(name) or (ir.serde.serialize_type(value.type) if value.type is not None else None)
        if type_ is None:
            raise FuselineError("E0105", "the input has no type", node=name, hint="export the model again")
        if isinstance(value.type, ir.TensorType) and holds(value.dtype):
            self.ctx.records.notes.append(
                f"the rank of input {name} is not declared: what reads it runs on the host; give its sizes with --shape"
            )
        argument = self.program.block.insert_arg(BOXED, len(self.program.block.args))
        boxed = HostValue(without_sizes(type_), dims, value=argument, name=name)
        self.attributes.append(border_attributes(boxed, name))
        return boxed


def with_dtype(attributes: dict[str, Attribute], dtype: np.dtype[np.generic]) -> dict[str, Attribute]:
    """`attributes`, with the dtype where its MLIR type does not tell that it is unsigned."""
    return (
        {**attributes, "fuseline.dtype": StringAttr(dtype.name)}
        if is_unsigned(dtype) and dtype.kind != "b"
        else attributes
    )
