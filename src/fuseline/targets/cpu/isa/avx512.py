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
    costs=MachineCosts(block_uses=128, operation_ns=0.03),  # vectors twice as wide
    work_costs=WorkCosts(  # fitted to 17 models, one thread (docs/machine.md)
        launch=123.0,
        barrier=300.0,
        product=0.0054,
        product_int=0.00549,
        filtered=0.00161,
        transformed=0.0726,
        depthwise=0.00745,
        pooled=0.048,
        reduced=0.00865,
        operations=0.00124,
        functions=0.133,
        followed=0.0014,
        points=0.0796,
        moved=0.0154,
        gathered=0.514,
        constant_bytes=0.000101,
        bytes=0.00834,
        constant_far=0.0221,
        far=0.0677,
        vector_bytes=0.00398,
        vector_far=0.0217,
        panels=0.000283,
        again=0.0267,
    ),
    pair_dot="llvm.x86.avx512.pmaddw.d.512",
)
