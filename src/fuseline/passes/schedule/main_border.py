"""What crosses the border of `@main`, as the attributes of its arguments and results describe it."""

from __future__ import annotations

from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IndexType, StringAttr
from xdsl.ir import SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.buffers import INDEX_TYPE, BufferRef, TensorSpec
from fuseline.passes.schedule.main_buffers import dtype_name, tensor_type


class Described:
    """What the attributes of argument or result `index` say."""

    def __init__(self, attributes: Any, index: int) -> None:
        entry = attributes.data[index] if attributes is not None and index < len(attributes.data) else None
        self._entry: DictionaryAttr | None = entry if isinstance(entry, DictionaryAttr) else None

    def text(self, key: str) -> str | None:
        """The text `fuseline.<key>`."""
        found = self._found(key)
        return found.data if isinstance(found, StringAttr) else None

    def texts(self, key: str) -> list[str]:
        """The list of texts `fuseline.<key>`."""
        found = self._found(key)
        items: Any = found.data if isinstance(found, ArrayAttr) else ()
        return [item.data for item in items if isinstance(item, StringAttr)]

    def _found(self, key: str) -> Any:
        return None if self._entry is None else self._entry.data.get(f"fuseline.{key}")


def arguments_of(function: func.FuncOp) -> list[Described]:
    """What is said of each argument."""
    return [Described(function.arg_attrs, index) for index in range(len(function.function_type.inputs))]


def results_of(function: func.FuncOp) -> list[Described]:
    """What is said of each result."""
    return [Described(function.res_attrs, index) for index in range(len(function.function_type.outputs))]


def spec_of(
    value: SSAValue, said: Described, default: str, shapes: ShapeAnalysis, slot: BufferRef | None
) -> TensorSpec:
    """An input or output of the program called `default` where nothing is said; `slot`: of a value that is boxed.

    Raises FuselineError (E0305) for a value that is neither a tensor nor boxed, nor a number.
    """
    name = said.text("name") or default
    if slot is not None:
        dims = tuple(shapes.symbol(text) for text in said.texts("dims"))
        return TensorSpec(name, said.text("dtype") or "object", dims, slot.number, said.text("type") or "any")
    if isinstance(value.type, IndexType):
        return TensorSpec(name, "int64", (shapes.index(value),), type=INDEX_TYPE)
    return TensorSpec(name, dtype_name(tensor_type(value), said.text("dtype")), shapes.dims(value))
