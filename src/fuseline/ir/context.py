"""The compiler's context: the dialects, and what travels beside the IR (weights, symbols, records, the target's
description)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects.affine import Affine
from xdsl.dialects.arith import ArithConstantMaterializationInterface
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.cf import Cf
from xdsl.dialects.func import Func
from xdsl.dialects.ml_program import MLProgram
from xdsl.dialects.scf import Scf
from xdsl.ir import Dialect, SSAValue

from fuseline.ir.constant_budget import ALWAYS_WORDS
from fuseline.ir.dim import Dim
from fuseline.ir.flow import DispatchOp, Flow
from fuseline.ir.flow_constants import ConstantOp, DynamicConstantOp
from fuseline.ir.flow_parameters import NamedParameterAttr
from fuseline.ir.flow_tensor import FLOW_TENSOR_OPS, TensorExtBitCastOp
from fuseline.ir.fuel import Fuel
from fuseline.ir.hlo import HLO_DIALECTS
from fuseline.ir.linalg_ext import LinalgExt
from fuseline.ir.linalg_named import Linalg
from fuseline.ir.scalar_ops import Arith, Math
from fuseline.ir.target_description import TargetDescription
from fuseline.ir.tensor_casts import ON_TENSORS
from fuseline.ir.tensor_ext import TensorExt
from fuseline.ir.tensor_ops import Tensor
from fuseline.ir.util_dialect import Util
from fuseline.report.records import CompileRecord
from fuseline.size_requirement import Relation, SizeRequirement

_BY_NAME = {op.name: op for op in ON_TENSORS}

DIALECTS = (
    Builtin,
    Affine,
    Dialect(
        "arith",
        [_BY_NAME.get(op.name, op) for op in Arith.operations],
        list(Arith.attributes),
        [ArithConstantMaterializationInterface()],
    ),
    Cf,
    Func,
    Linalg,
    Math,
    MLProgram,
    Scf,
    Tensor,
    LinalgExt,
    Dialect("iree_tensor_ext", [*TensorExt.operations, TensorExtBitCastOp], list(TensorExt.attributes)),
    Dialect(
        "flow",
        [*Flow.operations, *FLOW_TENSOR_OPS, ConstantOp, DynamicConstantOp],
        [*Flow.attributes, NamedParameterAttr],
    ),
    Util,
)


class ComparedCode(NamedTuple):
    """Two dispatches whose code looks alike: what differs first (`detail`), for what reason (`code`) it would keep them
    apart, and what a launch of the second would lose otherwise (`ns`)."""

    first: DispatchOp
    second: DispatchOp
    code: str
    detail: str
    ns: float


class Emitted(NamedTuple):
    """The text of a program was written by fuseline `version`, with the passes `pipeline`, for `target` and `numerics`,
    and has the phase `stage` behind it (`input`: none). `body`: a digest of what was written; empty once it is known
    that the text is another now."""

    version: str
    pipeline: str
    target: str
    numerics: str
    stage: str
    body: str = ""


def _takes_all(candidate: Any) -> None:
    """A target that takes every dispatch."""


def _takes_every_op(op: Any, kind: Any) -> Any:
    """A target that has a way to run every op."""
    del op, kind


def _costs_nothing(entry: Any, constant: Any) -> Any:
    """A target on which sharing code takes no time."""
    del entry, constant


@dataclass
class CompilerContext(Context):
    """xDSL's context with the side tables of one compile.

    `resources`: the arrays behind `dense_resource<name>` constants; they may be memory-mapped: never copy, print or
    hash one whole without need. `symbols`: the sizes that have names, with their bounds; `made_up_sizes`: those of the
    names that the model does not give. `requirements`: what the program takes for granted about sizes. `metadata`: what
    the model says of itself, for the artifact. `spelled`: names of values as the text of the program has them, where
    the IR's own differ. `target`: what the target says of itself;
    `legal`: its answer about a dispatch that fusion would form (`targets.target.Legality`); `takes_op`: about an op
    wherever it is (`targets.target.OpLegality`); `sharing_price`: what an
    operand in place of a constant costs on it (`targets.target.SharingPrices`). `compared`: dispatches that look
    alike. `to_make`: words of constants that the frontend may still make (`ir.constant_budget`). `evaluated`: the
    program is only evaluated in NumPy, where bodies may be of any length. `taken_equal`: sizes that the frontend takes
    to be equal although one of them may be 1 and repeat, and the source node that broadcasts them;
    `literal_broadcasts`: it takes none to be so. `weight_bytes`: what the model's weights take in its files, where the
    frontend says it. `fuel`: how many optional decisions may be made, where that is
    limited or to be known. `texts`: what the text of the program had behind it that is no IR. `emitted`: who wrote the
    text of the program, where it says so.
    """

    resources: dict[str, NDArray[Any]] = field(default_factory=dict[str, NDArray[Any]])
    _named: dict[str, int] = field(default_factory=dict[str, int], init=False, repr=False)
    symbols: dict[str, Dim] = field(default_factory=dict[str, Dim])
    made_up_sizes: set[str] = field(default_factory=set[str])
    requirements: dict[tuple[Dim, Dim, Relation], SizeRequirement] = field(
        default_factory=dict[tuple[Dim, Dim, Relation], SizeRequirement]
    )
    spelled: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    records: CompileRecord = field(default_factory=CompileRecord)
    metadata: dict[str, Any] = field(default_factory=dict[str, Any])
    target: TargetDescription = field(default_factory=lambda: TargetDescription("null"))
    legal: Callable[[Any], Any] = _takes_all
    takes_op: Callable[[Any, Any], Any] = _takes_every_op
    sharing_price: Callable[[Any, Any], Any] = _costs_nothing
    compared: list[ComparedCode] = field(default_factory=list[ComparedCode])
    to_make: int = ALWAYS_WORDS
    evaluated: bool = False
    taken_equal: dict[tuple[Dim, Dim], str] = field(default_factory=dict[tuple[Dim, Dim], str])
    literal_broadcasts: bool = False
    weight_bytes: int | None = None
    fuel: Fuel | None = None
    texts: dict[str, str] = field(default_factory=dict[str, str])
    emitted: Emitted | None = None

    def require(self, requirement: SizeRequirement) -> None:
        """Let the program check `requirement`; of several that ask for the same the first one's node is named."""
        left, right, _, relation = requirement
        self.requirements.setdefault((left, right, relation), requirement)

    def add_resource(self, stem: str, array: NDArray[Any]) -> str:
        """Store `array` under a fresh name that starts with `stem`, behind a `_` where that starts with a digit, as no
        name in MLIR does; answers the name."""
        stem = f"_{stem}" if stem[:1].isdigit() else stem
        name, count = stem, self._named.get(stem, 0)
        while name in self.resources:
            count += 1
            name = f"{stem}_{count}"
        self._named[stem] = count
        self.resources[name] = np.asarray(array)
        return name


def new_context(*, allow_unregistered: bool = False) -> CompilerContext:
    """A context that knows every dialect fuseline reads or writes."""
    ctx = CompilerContext(allow_unregistered=allow_unregistered)
    for dialect in DIALECTS:
        ctx.load_dialect(dialect)
    for name, make in HLO_DIALECTS.items():
        ctx.register_dialect(name, make)
    return ctx
