"""x86-64 with AVX-512 and its products of bytes (VNNI: Cascade Lake, Ice Lake, Zen 4 and later)."""

from dataclasses import replace

from fuseline.targets.cpu.isa.avx512 import MACHINE as AVX512

MACHINE = replace(
    AVX512,
    name="avx512vnni",
    features=(*AVX512.features, "+avx512vnni"),
    needs=(*AVX512.needs, "avx512_vnni"),
    quad_dot="llvm.x86.avx512.vpdpbusd.512",
)
