"""The program cut into what IREE compiles and what the host does between: each part between operators of the host is
one function of IREE's module, and a call in `@main`.

    %a = flow.dispatch ..(%x)             func.func @main_0(%x) -> .. { flow.dispatch .. }      the module for IREE
    %b = func.call @host.NonZero.0(%a)    func.func @main_1(%b) -> .. { .. }
    %c = flow.dispatch ..(%b)
                                          %a = func.call @iree.main_0(%x)                       what is scheduled
                                          %b = func.call @host.NonZero.0(%a)
                                          %c = func.call @iree.main_1(%b)

An op's stage is how many operators of the host come before it on the longest way from the inputs. What costs nothing
(constants, index arithmetic) is made again in each stage; sizes are read off the stage's own tensors, or are arguments.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from fuseline.analysis.structured import captured
from fuseline.analysis.views import is_view
from fuseline.ir.reachable import reachable


@dataclass(eq=False)
class Stage:
    """One function: its ops in order; the tensors and the index values that it takes; what others need of it, results
    of `@main` first, as they stand there."""

    name: str
    ops: list[Operation]
    tensors: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    indices: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    outputs: list[SSAValue] = field(default_factory=list[SSAValue])

    @property
    def inputs(self) -> list[SSAValue]:
        """What it takes, in order: arguments of `@main` first, as they stand there."""
        values = [*self.tensors, *self.indices]
        fed = sorted((one for one in values if isinstance(one, BlockArgument)), key=lambda argument: argument.index)
        return [*fed, *(value for value in values if not isinstance(value, BlockArgument))]


@dataclass(frozen=True, eq=False)
class Cut:
    """The stages of `main`, and the ops of it that stay: those that the host, the border or a stage needs."""

    main: FuncOp
    stages: Sequence[Stage]
    kept: Sequence[Operation]


def cut(module: ModuleOp, main: FuncOp) -> Cut:
    """Where `main` is cut; nothing is changed."""
    declared = {op.sym_name.data for op in module.ops if isinstance(op, FuncOp) and op.is_declaration}
    hosted = {op for op in main.body.block.ops if _calls(op, declared)}
    levels = _levels(main, hosted)
    stages = _stages(main, hosted, levels)
    inside = {op: stage for stage in stages for op in stage.ops}
    for stage in stages:
        _find_inputs(stage, inside)
    kept = _kept(main, hosted, stages, inside)
    taken = {value for stage in stages for value in stage.inputs}
    last = main.body.block.last_op
    returned = {value: place for place, value in reversed([*enumerate(last.operands if last is not None else ())])}
    for stage in stages:
        outputs = [value for value in _results(stage.ops) if value in taken or _is_used(value, kept)]
        stage.outputs = sorted(outputs, key=lambda value: returned.get(value, len(returned)))
    return Cut(main, stages, [op for op in main.body.block.ops if op in kept])


def _calls(op: Operation, declared: set[str]) -> bool:
    return isinstance(op, CallOp) and op.callee.root_reference.data in declared


def _levels(main: FuncOp, hosted: set[Operation]) -> Mapping[Operation, int]:
    """How many operators of the host come before each op."""
    levels: dict[Operation, int] = {}
    for op in main.body.block.ops:
        before = (owner for value in reads(op) if isinstance(owner := value.owner, Operation))
        levels[op] = max((levels[owner] + (owner in hosted) for owner in before if owner in levels), default=0)
    return levels


def _stages(main: FuncOp, hosted: set[Operation], levels: Mapping[Operation, int]) -> list[Stage]:
    by_level: dict[int, list[Operation]] = {}
    for op in main.body.block.ops:
        if op not in hosted and _computes(op):
            by_level.setdefault(levels[op], []).append(op)
    found = [ops for _, ops in sorted(by_level.items()) if not all(is_view(op) for op in ops)]
    return [Stage("main" if len(found) == 1 else f"main_{number}", ops) for number, ops in enumerate(found)]


def _computes(op: Operation) -> bool:
    """Whether an op is more than a constant, a size or what the border is made of."""
    free = (arith.ConstantOp, tensor.EmptyOp, tensor.FromElementsOp, ReturnOp)
    return not isinstance(op, free) and any(isinstance(value.type, TensorType) for value in op.results)


def is_made_again(op: Operation) -> bool:
    """Whether an op costs nothing, so that each stage has its own."""
    if isinstance(op, arith.ConstantOp | tensor.EmptyOp):
        return True
    return not isinstance(op, CallOp | ReturnOp) and not any(isinstance(v.type, TensorType) for v in op.results)


def reads(op: Operation) -> list[SSAValue]:
    """What an op reads, its regions included."""
    return [*op.operands, *(captured(op) if op.regions else ())]


def _results(ops: Iterable[Operation]) -> Iterator[SSAValue]:
    for op in ops:
        yield from op.results


def _find_inputs(stage: Stage, inside: Mapping[Operation, Stage]) -> None:
    """Fill in what a stage takes: tensors that it does not make, then index values that it cannot compute of them."""
    made = set(_results(stage.ops))
    values = [value for op in stage.ops for value in reads(op)]
    for value in values:
        if isinstance(value.type, TensorType) and value not in made and not _is_again(value):
            stage.tensors[value] = None
    for value in reachable(values, lambda value: _asked(value, stage, made)):
        if value in made or isinstance(value.type, TensorType):
            continue
        if not _is_again(value) or _is_size_elsewhere(value, stage, made):
            stage.indices[value] = None


def _is_again(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and is_made_again(value.owner)


def _is_size_elsewhere(value: SSAValue, stage: Stage, made: set[SSAValue]) -> bool:
    """Whether a value is the size of a tensor that the stage has not."""
    owner = value.owner
    return isinstance(owner, tensor.DimOp) and owner.source not in stage.tensors and owner.source not in made


def _asked(value: SSAValue, stage: Stage, made: set[SSAValue]) -> Iterable[SSAValue]:
    """What is needed to make a value again; a tensor whose elements are read is one more input."""
    if not _is_again(value) or _is_size_elsewhere(value, stage, made):
        return ()
    owner = value.owner
    assert isinstance(owner, Operation)
    if isinstance(owner, tensor.ExtractOp) and owner.tensor not in made and not _is_again(owner.tensor):
        stage.tensors[owner.tensor] = None
    return owner.operands


def _kept(
    main: FuncOp, hosted: set[Operation], stages: Sequence[Stage], inside: Mapping[Operation, Stage]
) -> set[Operation]:
    """The ops that stay: operators of the host, the return, and what these and the stages need that no stage makes."""
    starts: set[Operation] = {op for op in main.body.block.ops if op in hosted or isinstance(op, ReturnOp)}
    starts |= {owner for stage in stages for value in stage.inputs if isinstance(owner := value.owner, Operation)}

    def before(op: Operation) -> list[Operation]:
        owners = [value.owner for value in reads(op) if not isinstance(value, BlockArgument)]
        return [owner for owner in owners if isinstance(owner, Operation) and owner not in inside]

    return set(reachable((op for op in starts if op not in inside), before))


def _is_used(value: SSAValue, kept: set[Operation]) -> bool:
    return any(use.operation in kept for use in value.uses)
