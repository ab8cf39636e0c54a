"""Index values for sizes: what a dispatch region, or an outlined function, needs to spell its unknown dimensions."""

from __future__ import annotations

from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.rewriter import InsertPoint

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.errors import FuselineError
from fuseline.ir.build import Emitter
from fuseline.ir.dim import Dim, Symbol


class SizeBuilder:
    """Makes index values for `Dim`s in one function, at its end; symbols are read off arguments at its start, once
    each."""

    def __init__(self, function: FuncOp, shapes: ShapeAnalysis) -> None:
        self.function, self.shapes = function, shapes
        self._symbols: dict[str, SSAValue] = {}
        for argument in function.body.block.args:
            if isinstance(argument.type, IndexType):
                shapes.index(argument)
            else:
                shapes.dims(argument)

    def dynamic(self, value: SSAValue) -> list[SSAValue]:
        """Index values of the unknown sizes of `value`, in order."""
        if not isinstance(value.type, TensorType):
            return []
        sizes = zip(value.type.get_shape(), self.shapes.dims(value), strict=True)
        return [self.size(dim) for static, dim in sizes if static == DYNAMIC_INDEX]

    def size(self, dim: Dim) -> SSAValue:
        """`dim` as an index value at the end of the function's block."""
        return Emitter.at_end(self.function.body.block).size(dim, self.symbol)

    def symbol(self, symbol: Symbol) -> SSAValue:
        """The index value of a symbol. Raises FuselineError: E0107 where nothing in the function has that size."""
        found = self._symbols.get(symbol.name)
        if found is None:
            found = self._symbols[symbol.name] = self._read(symbol.name)
        return found

    def _read(self, name: str) -> SSAValue:
        origin = self.shapes.origins.get(name)
        if origin is None:
            raise FuselineError(
                "E0107", f"nothing in the function has the size {name}", node=self.function.sym_name.data
            )
        value, axis = origin
        if axis is None:
            return value
        if isinstance(value, BlockArgument):
            return Emitter(InsertPoint.at_start(self.function.body.block)).dim(value, axis)
        return Emitter.after(value.owner).dim(value, axis)  # pyright: ignore[reportArgumentType]
