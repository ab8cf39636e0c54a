"""Products of bytes by fours: integers without a sign in rows, integers with one in columns packed at compile time.

    i32 lane of a column += u[k] * w[k] + u[k + 1] * w[k + 1] + u[k + 2] * w[k + 2] + u[k + 3] * w[k + 3]

Four neighbours of a row are broadcast as one element of 32 bits. Nothing is widened: rows are read where they lie, or
from scratch of 8 bits. On machines with an instruction for it (`Machine.quad_dot`); elsewhere both are widened and
multiplied in pairs (`pairs.py`).
"""

from __future__ import annotations

from dataclasses import replace

from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.loops import ContractionLoops
from fuseline.targets.cpu.families.contraction.operand_modes import column_choice, lhs_mode_of
from fuseline.targets.cpu.families.contraction.padding_row import padding_row_elements
from fuseline.targets.cpu.families.contraction.pairs import PAIR, takes_quads
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.tiles import MAX_ROWS, Tile


def as_read(loops: ContractionLoops, machine: Machine) -> ContractionLoops:
    """The loops with their operands as the kernel reads them on a machine: in 8 bits where it multiplies them so."""
    if not machine.quad_dot or not _are_bytes(loops):
        return loops
    narrow = replace(loops, elements=("i8", "i8"))
    lhs = lhs_mode_of(narrow, Tile(MAX_ROWS, 1), padding_row_elements(narrow))
    _, rhs = column_choice(narrow, Tile(MAX_ROWS, 1), machine.lanes(loops.dtype))
    return narrow if takes_quads(narrow, lhs, rhs) else loops


def _are_bytes(loops: ContractionLoops) -> bool:
    """Whether there are more steps than a pair, and both operands are bytes, the left ones without a sign."""
    last = loops.reduction[-1].extent if loops.reduction else 1
    sides = (dtype_of(loops.lhs.value.type), dtype_of(loops.rhs.value.type))
    signs = loops.unsigned == (True, False)
    return loops.narrow and sides == ("i8", "i8") and signs and isinstance(last, int) and last > PAIR
