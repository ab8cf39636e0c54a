"""x86-64 with AVX-512 (Skylake-SP, Zen 4 and later); 512-bit registers are used throughout."""

from fuseline.ir.costs import MachineCosts
from fuseline.ir.work_costs import WorkCosts
from fuseline.targets.cpu.isa.description import Machine

MACHINE = Machine(
    name="avx512",
    triple="x86_64-unknown-linux-gnu",
    cpu="x86-64-v4",
    features=(
        "+avx512f",
        "+avx512bw",
        "+avx512cd",
        "+avx512dq",
        "+avx512vl",
        "+avx2",
        "+fma",
        "+f16c",
        "+bmi2",
        "-prefer-256-bit",
    ),
    needs=("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma", "f16c", "bmi2"),
    vector_bytes=64,
    vector_registers=32,
    masked_bits=frozenset({8, 16, 32, 64}),
    l1_bytes=48 * 1024,
    l2_bytes=1024 * 1024,
    attributes=(("prefer-vector-width", "512"), ("min-legal-vector-width", "512")),
    costs=MachineCosts(block_uses=128),
    work_costs=WorkCosts(  # fitted to 17 models, one thread (docs/machine.md)
        launch=110.0,
        barrier=300.0,
        product=0.00414,
        product_int=0.00432,
        filtered=0.00117,
        transformed=0.0619,
        depthwise=0.00471,
        pooled=0.0298,
        reduced=0.0113,
        operations=0.0137,
        functions=0.155,
        points=0.0443,
        moved=0.0174,
        gathered=0.377,
        constant_bytes=0.000472,
        bytes=0.00708,
        constant_far=0.0429,
        far=0.0657,
        vector_bytes=0.00285,
        vector_far=0.00287,
    ),
    pair_dot="llvm.x86.avx512.pmaddw.d.512",
)
