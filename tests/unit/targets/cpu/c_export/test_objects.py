"""Objects that hold bytes under a name."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from fuseline.targets.cpu.c_export.objects import object_with
from fuseline.targets.cpu.isa import machine
from tests.draws import RNG


@pytest.mark.parametrize("size", [1, 63, 4096, 5001])
def test_the_bytes_are_a_section_of_their_own_on_a_page_boundary(size: int):
    data = RNG.bytes(size)
    made = object_with("net_weights", data, machine("avx2"))
    assert made[:4] == b"\x7fELF" and b"\0net_weights\0" in made
    sections = {section.name(): section.data() for section in llvm.ObjectFileRef.from_data(made).sections()}
    assert sections[b".rodata.fuseline"] == data and b".note.GNU-stack" in sections
    assert size < 63 or made.find(data) % 4096 == 0, "a few bytes may be found anywhere"
