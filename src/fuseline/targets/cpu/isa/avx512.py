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
        launch=78.7,
        product=0.00401,
        product_int=0.00428,
        filtered=0.00192,
        transformed=0.00476,
        depthwise=0.00463,
        pooled=0.022,
        reduced=0.0056,
        operations=0.0149,
        functions=0.215,
        points=0.0231,
        moved=0.0179,
        gathered=0.412,
        constant_bytes=0.00235,
        bytes=0.0052,
        constant_far=0.0423,
        far=0.0329,
        vector_bytes=0.00105,
        vector_far=0.00387,
    ),
    pair_dot="llvm.x86.avx512.pmaddw.d.512",
)
