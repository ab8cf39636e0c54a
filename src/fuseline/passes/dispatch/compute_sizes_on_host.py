"""compute-sizes-on-host: integers that a host step reads to learn a size from them are computed by that step.

    %a = linalg.generic ins(%p : tensor<i32>) { minsi %in, 9 }
    %n = call @host.index(%a)                                   =>   %n = call @host.index(%p)
    @host.index(tensor<i32>)                                         @host.index(tensor<i32>) {code = ["minsi ..", ..]}

No dispatch is launched for them, and they lie in no memory: the run waits for the size anyway. What makes them may be
any number of ops on few numbers (`scalar_chains.py`), down to arguments, constants, sizes, and results that need a
dispatch of their own. Who reads the same numbers as data keeps the ops: twice they cost a few operations, while what a
host step reads is stored by a dispatch before it, which none of those that read it as data can then be part of.

What follows a dispatch moves only where nobody else reads it or the result before it, and where it follows one alone:
it would be that dispatch's epilogue, and what is made of two results may be what makes them one dispatch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, FunctionType, IndexType, ModuleOp, StringAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from fuseline.analysis.shapes import DIMS_ATTRIBUTE, ShapeAnalysis, argument_attribute
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext
from fuseline.ir.declared_types import declare_dtypes, operand_dtypes, result_dtypes
from fuseline.ir.dim_json import from_name
from fuseline.ir.fast.direct import ops_of, set_operands, users_of_value
from fuseline.ir.functions import functions
from fuseline.ir.operand_code import CODE_ATTRIBUTE, declare_code
from fuseline.passes.cleanup.dead_code import remove_dead
from fuseline.passes.cleanup.elimination import record_eliminated
from fuseline.passes.dispatch.scalar_chains import MadeOf, ScalarChains
from fuseline.scalar_code import ELEMENTS, LEAVES, Computed, ScalarCode, ScalarOp

MOST_OPS = 32
"""Operations that a host step computes, at some 0.2 us each; where it takes more they stay a dispatch."""


@dataclass(frozen=True)
class ComputeSizesOnHostPass(ModulePass):
    """Options: `most_ops` is how many operations a host step computes at the most."""

    name = "compute-sizes-on-host"

    most_ops: int = MOST_OPS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the calls that make sizes known; nodes that vanish are recorded."""
        assert isinstance(ctx, CompilerContext)
        declared = {item.sym_name.data: item for item in op.ops if isinstance(item, FuncOp) and item.is_declaration}
        calls = Counter(inner.callee.string_value() for inner in op.walk() if isinstance(inner, CallOp))
        found = [
            _compute(call, declared[name], ctx, self.most_ops)
            for function in functions(op)
            for call in list(_learning_calls(function))
            if (name := call.callee.string_value()) in declared and calls[name] == 1
        ]
        if any(found):
            gone: set[str] = set()
            remove_dead(op, gone)
            record_eliminated(ctx, op, gone, self.name)


def _learning_calls(function: FuncOp) -> Iterator[CallOp]:
    """The calls of host operators whose results have sizes that nothing before them has."""
    known = {name for index in range(len(function.args)) for name in _argument_symbols(function, index)}
    for op in ops_of(function.body.block):
        if isinstance(op, CallOp):
            made = _symbols(op.attributes.get(DIMS_ATTRIBUTE))
            if not made <= known:
                yield op
            known |= made


def _argument_symbols(function: FuncOp, index: int) -> set[str]:
    return _symbols(argument_attribute(function, index, DIMS_ATTRIBUTE))


def _symbols(names: Any) -> set[str]:
    """The symbols of names of sizes, nested or not."""
    if isinstance(names, StringAttr):
        return {symbol.name for symbol in d.symbols(from_name(names.data))}
    return {name for entry in names.data for name in _symbols(entry)} if isinstance(names, ArrayAttr) else set()


def _compute(call: CallOp, callee: FuncOp, ctx: CompilerContext, most_ops: int) -> bool:
    """Let `callee` compute what it can of what it is given; whether that is anything."""
    operands = list(call.arguments)
    if "fuseline.host_op" not in callee.attributes or CODE_ATTRIBUTE in callee.attributes:
        return False
    if any(isinstance(operand.type, IndexType) for operand in operands):
        return False
    chains = ScalarChains(ShapeAnalysis(ctx.symbols), ctx.resources)
    dtypes = operand_dtypes(callee)
    found = [chains.computed(operand, dtype) for operand, dtype in zip(operands, dtypes, strict=True)]
    computed = _that_move(call, chains, found)
    reads = _Reads.of(chains, operands, computed)
    if not any(computed) or reads.work > most_ops:
        return False
    _redeclare(callee, reads, {operand: dtype for operand, dtype in zip(operands, dtypes, strict=True)})
    set_operands(call, [*reads.tensors, *reads.sizes])
    return True


def _that_move(call: CallOp, chains: ScalarChains, found: Sequence[Computed | None]) -> list[Computed | None]:
    """What of the operands of `call` that could be computed is: all of it, or what follows no dispatch."""
    made_of = [chains.made_of(operand) if one else None for operand, one in zip(call.arguments, found, strict=True)]
    inside = {call, *(op for made in made_of if made for op in made.ops)}
    if all(_may_move(made, inside) for made in made_of if made):
        return list(found)
    return [one if made and not made.launched else None for one, made in zip(found, made_of, strict=True)]


def _may_move(made: MadeOf, inside: Set[Operation]) -> bool:
    """Whether no dispatch can be the worse for it: there is none before, or one that keeps its results for the ops
    `inside`."""
    dispatches = {result.owner for result in made.launched}
    read = [*made.launched, *(value for op in made.ops for value in op.results)]
    return not dispatches or (
        len(dispatches) == 1 and all(user in inside for value in read for user in users_of_value(value))
    )


@dataclass(frozen=True)
class _Reads:
    """Code that has only what its operands need, and what it reads."""

    code: ScalarCode
    tensors: list[SSAValue]
    sizes: list[SSAValue]

    @property
    def work(self) -> int:
        """How many operations compute something."""
        return sum(op.name not in LEAVES for op in self.code.ops)

    @staticmethod
    def of(chains: ScalarChains, operands: Sequence[SSAValue], computed: Sequence[Computed | None]) -> _Reads:
        """The code of `chains` that makes what is computed; the operator gets the other operands as they are."""
        needed = _needed(chains.ops, [number for one in computed if one is not None for number in one.elements])
        kept = [operand for operand, one in zip(operands, computed, strict=True) if one is None]
        tensors = list(dict.fromkeys([*kept, *_read(chains.ops, needed, ELEMENTS, chains.tensors)]))
        sizes = list(dict.fromkeys(_read(chains.ops, needed, ("size",), chains.sizes)))
        place = {**dict.fromkeys(ELEMENTS, (chains.tensors, tensors)), "size": (chains.sizes, sizes)}
        numbers = {old: new for new, old in enumerate(needed)}
        ops = [_renumbered(chains.ops[number], numbers, place) for number in needed]
        gets = [
            tensors.index(operand) if one is None else one._replace(elements=tuple([numbers[i] for i in one.elements]))
            for operand, one in zip(operands, computed, strict=True)
        ]
        return _Reads(ScalarCode(tuple(ops), tuple(gets)), tensors, sizes)


def _needed(ops: Sequence[ScalarOp], roots: Sequence[int]) -> list[int]:
    """The operations that `roots` are computed with, in order."""
    found: set[int] = set()
    pending = list(roots)
    while pending:
        number = pending.pop()
        if number not in found:
            found.add(number)
            pending += ops[number].operands if ops[number].name not in LEAVES else ()
    return sorted(found)


def _read(
    ops: Sequence[ScalarOp], needed: Sequence[int], leaves: Collection[str], values: Sequence[SSAValue]
) -> list[SSAValue]:
    return [values[ops[number].operands[0]] for number in needed if ops[number].name in leaves]


def _renumbered(
    op: ScalarOp, numbers: Mapping[int, int], place: Mapping[str, tuple[Sequence[SSAValue], Sequence[SSAValue]]]
) -> ScalarOp:
    """The operation with the numbers that its operands, or what it reads, have from now on."""
    if op.name in place:
        old, new = place[op.name]
        return op._replace(operands=(new.index(old[op.operands[0]]), *op.operands[1:]))
    return op if op.name in LEAVES else op._replace(operands=tuple([numbers[operand] for operand in op.operands]))


def _redeclare(callee: FuncOp, reads: _Reads, dtypes: Mapping[SSAValue, str | None]) -> None:
    """Let the declaration take what the code reads."""
    results = [name or "" for name in result_dtypes(callee)]
    taken = [*reads.tensors, *reads.sizes]
    callee.properties["function_type"] = FunctionType.from_lists(
        [value.type for value in taken], list(callee.function_type.outputs)
    )
    declare_dtypes(callee, [dtypes.get(value) or "" for value in taken], results)
    declare_code(callee, reads.code)


EXPORT = ComputeSizesOnHostPass
