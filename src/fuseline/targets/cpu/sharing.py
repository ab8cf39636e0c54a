"""What an operand costs a kernel where a body has a constant: the kernel loads it once, before its loops, and keeps it
in a register; what it loses is what the code generator makes of a number that it knows.

Sums, products, quotients and bounds of floats take a register as they take a constant. A multiplication by 1 goes, a
division by a power of two is a multiplication, shifts and integer products of known numbers are one instruction, and
powers, integer quotients, comparisons and choices depend on their constant altogether.
"""

from __future__ import annotations

from math import frexp

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import FloatAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from fuseline.analysis.structured import StructuredOp
from fuseline.dispatch.body_constants import BodyConstant
from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import MachineCosts, assumed_size
from fuseline.ir.dim import product
from fuseline.targets.target import SharingPrice

_FLOAT_SUMS = (arith.AddfOp, arith.SubfOp)
_FLOAT_BOUNDS = (arith.MaximumfOp, arith.MinimumfOp, arith.MaxnumfOp, arith.MinnumfOp)
_INTEGER_SUMS = (arith.AddiOp, arith.SubiOp)
_INTEGER_BOUNDS = (arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp)
_BITS = (arith.AndIOp, arith.OrIOp, arith.XOrIOp)
_SHIFTS = (arith.ShLIOp, arith.ShRSIOp, arith.ShRUIOp)

IDENTITY, WIDER, SHIFT, QUOTIENT, ANY = 1, 2, 3, 8, 32
"""Instructions per element that a known number saves: an op that changes nothing; arithmetic in the narrow type that
its result is cut to; a shift that is known to be in range, or in place of a product; a product in place of a quotient;
an op whose code is made for its number (a power, a comparison that idioms are known by)."""


def sharing_price(entry: FuncOp, constant: BodyConstant, costs: MachineCosts) -> SharingPrice | None:
    """What a launch loses if `constant` is an operand; None for nothing."""
    found = _lost(constant)
    if found is None:
        return None
    instructions, reason = found
    loops = StructuredOp(constant.member).loops(DispatchView(entry).shapes)
    return SharingPrice(instructions * assumed_size(product(loops)) * costs.operation_ns, reason)


def _lost(constant: BodyConstant) -> tuple[int, str] | None:
    """Instructions per element, and why."""
    op, number = constant.reader, constant.value.value.data
    if isinstance(op, _FLOAT_SUMS):
        return _identity(op, constant.position == 1 and str(number) == _NEUTRAL[type(op)])
    if isinstance(op, arith.MulfOp):
        return _identity(op, number == 1)
    if isinstance(op, arith.DivfOp):
        return _of_quotient(constant)
    if isinstance(op, _FLOAT_BOUNDS):
        return None
    if isinstance(op, (*_INTEGER_SUMS, *_INTEGER_BOUNDS, *_BITS)):
        return _identity(op, number == 0) or _of_narrow(constant)
    if isinstance(op, (*_SHIFTS, arith.MuliOp)):
        return SHIFT, f"{op.name} by a known number is cheaper"
    return ANY, f"the code of {op.name} is made for its constant"


_NEUTRAL: dict[type[Operation], str] = {arith.AddfOp: "-0.0", arith.SubfOp: "0.0"}
"""What changes no number, the sign of zero included."""


def _identity(op: Operation, changes_nothing: bool) -> tuple[int, str] | None:
    return (IDENTITY, f"{op.name} of this number changes nothing") if changes_nothing else None


def _of_quotient(constant: BodyConstant) -> tuple[int, str] | None:
    assert isinstance(constant.value, FloatAttr)
    exact = constant.position == 1 and abs(frexp(constant.value.value.data)[0]) == 0.5
    return (QUOTIENT, "dividing by a power of two is multiplying") if exact else None


def _of_narrow(constant: BodyConstant) -> tuple[int, str] | None:
    """Of an integer op that extends what lies in memory, and all of whose readers cut its result: with a constant it is
    done in the narrow type. What was computed in the kernel is in wide lanes already."""
    op = constant.reader
    cut = all(isinstance(use.operation, arith.TruncIOp) for result in op.results for use in result.uses)
    other = op.operands[1 - constant.position].owner
    loaded = isinstance(other, arith.ExtSIOp | arith.ExtUIOp) and _is_loaded(constant.member, other.input)
    return (WIDER, f"{op.name} with a known number is done in the narrow type") if cut and loaded else None


def _is_loaded(member: linalg.ops.GenericOp, value: SSAValue) -> bool:
    """Whether a scalar of the body is an element of an argument of the dispatch."""
    if not isinstance(value, BlockArgument) or value.owner is not member.body.block:
        return False
    return isinstance(member.operands[value.index], BlockArgument)
