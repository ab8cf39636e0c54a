"""x86-64 with AVX2 and its products of bytes (AVX-VNNI: Alder Lake and later, Zen 5)."""

from dataclasses import replace

from fuseline.targets.cpu.isa.avx2 import MACHINE as AVX2

MACHINE = replace(
    AVX2,
    name="avxvnni",
    features=(*AVX2.features, "+avxvnni"),
    needs=(*AVX2.needs, "avx_vnni"),
    quad_dot="llvm.x86.avx512.vpdpbusd.256",
)
