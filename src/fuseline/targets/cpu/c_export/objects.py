"""Object files that hold bytes under a name, without a C compiler."""

from __future__ import annotations

import os
from tempfile import NamedTemporaryFile

import llvmlite.binding as llvm

from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.link.compile import emit_object


def object_with(symbol: str, data: bytes, machine: Machine) -> bytes:
    """An ELF object whose read-only section holds `data` at `symbol`, on a page boundary."""
    llvm.initialize_native_asmparser()
    with NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        directives = (
            '.section .rodata.fuseline,"a",@progbits',
            ".p2align 12",
            f".globl {symbol}",
            f"{symbol}:",
            f'.incbin "{os.fspath(file.name)}"',
            '.section .note.GNU-stack,"",@progbits',
        )
        text = "\n".join(f'module asm "{line.translate(_ESCAPED)}"' for line in directives)
        return emit_object(f'target triple = "{machine.triple}"\n{text}\n', machine)


_ESCAPED = str.maketrans({'"': "\\22", "\\": "\\5C"})
