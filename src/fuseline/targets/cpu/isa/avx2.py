"""x86-64 with AVX2, FMA and F16C (Haswell, Zen and later)."""

from fuseline.targets.cpu.isa.description import Machine

MACHINE = Machine(
    name="avx2",
    triple="x86_64-unknown-linux-gnu",
    cpu="x86-64-v3",
    features=("+avx2", "+fma", "+f16c", "+bmi2"),
    needs=("avx2", "fma", "f16c", "bmi2"),
    vector_bytes=32,
    vector_registers=16,
    masked_bits=frozenset({32, 64}),
    attributes=(("min-legal-vector-width", "256"),),
    pair_dot="llvm.x86.avx2.pmadd.wd",
)
