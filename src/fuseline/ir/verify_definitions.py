"""Whether each operand is defined before it is read, by an op that stands in the program: what the rules of ops alone
do not ask. A rewrite that keeps a value while another one replaces its op would else read memory that nobody writes."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue

from fuseline.errors import FuselineError
from fuseline.ir.provenance import node_names


def verify_definitions(module: ModuleOp) -> None:
    """Raises FuselineError (E0901) that names the first op of `module` with an operand that is not defined before."""
    _visit_blocks(module, set())


def is_detached(value: SSAValue) -> bool:
    """Whether the op that defines `value` stands nowhere."""
    return isinstance(value.owner, Operation) and value.owner.parent is None


def _visit_blocks(op: Operation, defined: set[SSAValue]) -> None:
    """What a block defines is taken out of `defined` at its end: one set for the whole program."""
    for region in op.regions:
        for block in region.blocks:
            defined.difference_update(_visit(block, defined))


def _visit(block: Block, defined: set[SSAValue]) -> list[SSAValue]:
    """What `block` defines, which is in `defined` then."""
    mine: list[SSAValue] = [*block.args]
    defined.update(mine)
    for op in block.ops:
        for number, value in enumerate(op.operands):
            if value not in defined:
                why = f"operand {number} of {op.name} is defined {'nowhere' if is_detached(value) else 'elsewhere'}"
                raise FuselineError("E0901", why, node=node_names(op))
        if op.regions:
            _visit_blocks(op, defined)
        defined.update(op.results)
        mine += op.results
    return mine
