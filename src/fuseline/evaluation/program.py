"""The walk over IR: scopes that map SSA values to arrays, and the table from op names to the functions that evaluate
them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import IsTerminator, SymbolTable

from fuseline.errors import FuselineError
from fuseline.ir.element_types import numpy_dtype
from fuseline.ir.flow import HostType
from fuseline.ir.provenance import node_names

Array: TypeAlias = NDArray[Any]
"""A tensor, or a NumPy scalar for a value that is no tensor."""

HostCall: TypeAlias = Callable[[FuncOp, list[Any]], Sequence[Any]]
"""Runs a host op: gets its declaration (with `fuseline.host_op`) and the operands, answers the results: arrays, and for
`!flow.host` anything."""

Handler: TypeAlias = Callable[[Operation, "Scope"], Sequence[Array]]

_HANDLERS: dict[str, Handler] = {}
_FLOAT64 = np.dtype(np.float64)
_OBJECT = np.dtype(object)


def evaluates(*names: str) -> Callable[[Handler], Handler]:
    """Register a function as the evaluation of the ops called `names`. Raises KeyError where one has an evaluation."""

    def register(handler: Handler) -> Handler:
        for name in names:
            if name in _HANDLERS:
                raise KeyError(f"two evaluations of {name}")
            _HANDLERS[name] = handler
        return handler

    return register


def is_evaluable(op: Operation) -> bool:
    """Whether an op of this kind can be evaluated."""
    return op.name in _HANDLERS


def failure(op: Operation, message: str, hint: str | None = None) -> FuselineError:
    """E0305 that names the op and the source nodes it came from."""
    return FuselineError("E0305", f"{op.name}: {message}", node=node_names(op), hint=hint)


@dataclass
class Program:
    """What one evaluation knows besides values: weights, functions by name, the host.

    With `double`, every float is computed and stored as float64, whatever its type: an accuracy reference. Integers and
    their wrap-around are the same in both modes.
    """

    resources: Mapping[str, Array] = field(default_factory=dict[str, Array])
    double: bool = False
    host_call: HostCall | None = None

    def dtype(self, type_: Attribute) -> np.dtype[Any]:
        """The dtype that holds a value (or a tensor element) of `type_` here; raises E0305 for a type without one."""
        if isinstance(type_, HostType):
            return _OBJECT
        element = type_.get_element_type() if isinstance(type_, TensorType) else type_
        try:
            dtype = numpy_dtype(element)
        except KeyError:
            raise FuselineError("E0305", f"values of type {element} cannot be evaluated") from None
        return _FLOAT64 if self.double and not is_integer(dtype) else dtype

    def run_block(self, block: Block, scope: Scope) -> list[Array]:
        """Evaluate a block in `scope` and answer the operands of its terminator; values are dropped after their last
        use."""
        last = _last_uses(block)
        for op in block.ops:
            if op.has_trait(IsTerminator):
                return [scope[operand] for operand in op.operands]
            run_op(op, scope)
            for value in last.get(op, ()):
                scope.values.pop(value, None)
        return []


class Scope:
    """Values by SSA name, innermost first; inside the body of a structured op, also its loops.

    `indices[d]` is the coordinate along loop d, an array that broadcasts over the loops.
    """

    __slots__ = ("indices", "parent", "program", "values")

    def __init__(self, program: Program, parent: Scope | None = None, indices: Sequence[Array] = ()) -> None:
        self.program, self.parent, self.indices = program, parent, indices
        self.values: dict[SSAValue, Array] = {}

    def __getitem__(self, value: SSAValue) -> Array:
        scope: Scope | None = self
        while scope is not None:
            found = scope.values.get(value)
            if found is not None:
                return found
            scope = scope.parent
        raise KeyError(value)

    def bind(self, values: Sequence[SSAValue], arrays: Sequence[Array]) -> None:
        """Give each of `values` its array."""
        self.values.update(zip(values, arrays, strict=True))


def run_op(op: Operation, scope: Scope) -> None:
    """Evaluate one op and bind its results; raises E0305 for an op that has no evaluation."""
    handler = _HANDLERS.get(op.name)
    if handler is None:
        raise failure(op, "this op has no evaluation")
    scope.bind(op.results, handler(op, scope))


def is_integer(dtype: np.dtype[Any]) -> bool:
    """Whether `dtype` holds integers or booleans."""
    return dtype.kind in "biu"


def _last_uses(block: Block) -> dict[Operation, list[SSAValue]]:
    """For each op of the block, the values that nothing after it reads (values made outside the block excluded)."""
    last: dict[SSAValue, Operation] = {}
    for op in block.ops:
        for nested in op.walk():
            for operand in nested.operands:
                last[operand] = op
        for result in op.results:
            last.setdefault(result, op)
    out: dict[Operation, list[SSAValue]] = {}
    for value, op in last.items():
        if value.owner is block or (isinstance(value.owner, Operation) and value.owner.parent is block):
            out.setdefault(op, []).append(value)
    return out


def main_function(module: ModuleOp) -> FuncOp:
    """The program's entry: the function called main, else the only public one with a body; raises E0305 when there is
    no such."""
    functions = [op for op in module.body.block.ops if isinstance(op, FuncOp) and not op.is_declaration]
    named = [f for f in functions if f.sym_name.data == "main"]
    public = [f for f in functions if f.sym_visibility is None or f.sym_visibility.data == "public"]
    choice = named or public
    if len(choice) != 1:
        raise FuselineError("E0305", f"expected one public function, found {len(choice)}", hint="name the entry @main")
    return choice[0]


def evaluate_module(
    module: ModuleOp,
    args: Sequence[Any],
    resources: Mapping[str, Array] | None = None,
    *,
    double: bool = False,
    host_call: HostCall | None = None,
) -> list[Any]:
    """The results of the module's entry on `args`; see `evaluate_function`."""
    return evaluate_function(main_function(module), args, resources, double=double, host_call=host_call)


def evaluate_function(
    func: FuncOp,
    args: Sequence[Any],
    resources: Mapping[str, Array] | None = None,
    *,
    double: bool = False,
    host_call: HostCall | None = None,
) -> list[Any]:
    """The results of `func` on `args`, one array per result (anything for a result of type `!flow.host`).

    Args:
        args: one array (or number, for a scalar) per argument. Integers may be signed or unsigned of the argument's
        width; with `double`
            floats may be of any width. Anything for an argument of type `!flow.host`.
        resources: the arrays behind `dense_resource<name>`.
        double: compute every float in float64; float results are then float64.
        host_call: runs calls of declared host ops.

    Raises:
        FuselineError: E0305 for an argument that does not fit, an op that has no evaluation, or an access out of
        bounds.
    """
    program = Program(resources if resources is not None else {}, double, host_call)
    with np.errstate(all="ignore"):
        results = call_function(
            func, [box(arg) if _is_boxed(func.args, i) else np.asarray(arg) for i, arg in enumerate(args)], program
        )
    types = func.function_type.outputs
    return [
        unbox(r) if isinstance(t, HostType) else _own(r, name)
        for r, t, name in zip(results, types, _dtype_names(func), strict=True)
    ]


def box(value: Any) -> Array:
    """A value of type `!flow.host` as an array without dimensions, which is what scopes keep."""
    array = np.empty((), object)
    array[()] = value
    return array


def unbox(boxed: Array) -> Any:
    """What `box` was given."""
    return boxed.item()


def _is_boxed(arguments: Sequence[SSAValue], position: int) -> bool:
    return position < len(arguments) and isinstance(arguments[position].type, HostType)


def call_function(func: FuncOp, args: Sequence[Array], program: Program) -> list[Array]:
    """Run the body of `func` in a scope of its own."""
    if len(args) != len(func.args):
        raise failure(func, f"@{func.sym_name.data} takes {len(func.args)} arguments, got {len(args)}")
    scope = Scope(program)
    scope.bind(func.args, [fit_argument(func, i, arg, program) for i, arg in enumerate(args)])
    return program.run_block(func.body.block, scope)


def fit_argument(func: FuncOp, position: int, arg: Array, program: Program) -> Array:
    """`arg` in the dtype of the function's argument; raises E0305 when shape or dtype cannot be that argument."""
    type_ = func.args[position].type
    if isinstance(type_, HostType):
        return arg
    dtype = program.dtype(type_)
    array = np.asarray(arg)
    expected = type_.get_shape() if isinstance(type_, TensorType) else ()
    if len(expected) != array.ndim or any(e >= 0 and e != n for e, n in zip(expected, array.shape, strict=True)):
        raise failure(func, f"argument {position} of @{func.sym_name.data} is {type_}, got shape {array.shape}")
    return _as_dtype(
        array,
        dtype,
        lambda: failure(func, f"argument {position} of @{func.sym_name.data} is {type_}, got {array.dtype}"),
    )


def _as_dtype(array: Array, dtype: np.dtype[Any], error: Callable[[], FuselineError]) -> Array:
    if array.dtype == dtype:
        return array
    if is_integer(array.dtype) and is_integer(dtype) and array.dtype.itemsize == dtype.itemsize and dtype.kind != "b":
        return array.view(dtype)
    if dtype == _FLOAT64 and not is_integer(array.dtype):
        return array.astype(dtype)
    raise error()


def resource_as(array: Array, type_: Attribute, program: Program) -> Array:
    """A weight in the dtype its type has here: a view for integers, a copy only under `double`."""
    dtype = program.dtype(type_)
    if is_integer(array.dtype) and is_integer(dtype) and array.dtype != dtype:
        return np.ascontiguousarray(array).view(dtype)
    return array if array.dtype == dtype else array.astype(dtype)


def _own(array: Array, dtype_name: str | None) -> Array:
    """A result that shares no memory with a view made on the way, as unsigned where the function says so."""
    out = np.ascontiguousarray(array).reshape(np.shape(array))
    if not out.flags.writeable or out.base is not None:
        out = out.copy()
    return out.view(dtype_name) if dtype_name is not None and is_integer(out.dtype) else out


def _dtype_names(func: FuncOp) -> list[str | None]:
    attributes = (
        func.res_attrs.data
        if isinstance(func.res_attrs, ArrayAttr)
        else [DictionaryAttr({})] * len(func.function_type.outputs)
    )
    names = [attribute.data.get("fuseline.dtype") for attribute in attributes]
    return [name.data if isinstance(name, StringAttr) else None for name in names]


def lookup(op: Operation, name: str) -> Operation | None:
    """The op called `name` in the nearest symbol table around `op` that has it."""
    table = op.parent_op()
    while table is not None:
        if table.has_trait(SymbolTable):
            found = SymbolTable.lookup_symbol(table, name)
            if found is not None:
                return found
        table = table.parent_op()
    return None
