"""x86-64 with SSE4.2 (x86-64-v2): every 64-bit x86 CPU of the last fifteen years."""

from fuseline.targets.cpu.isa.description import Machine

MACHINE = Machine(
    name="baseline",
    triple="x86_64-unknown-linux-gnu",
    cpu="x86-64-v2",
    features=("+sse4.2", "+ssse3", "+popcnt"),
    needs=("sse4_2", "ssse3", "popcnt"),
    vector_bytes=16,
    vector_registers=16,
    fma=False,
    half_conversion=False,
    pair_dot="llvm.x86.sse2.pmadd.wd",
)
