"""64-bit Arm with NEON: every ARMv8-A CPU."""

from fuseline.targets.cpu.isa.description import Machine

MACHINE = Machine(
    name="neon",
    triple="aarch64-unknown-linux-gnu",
    cpu="generic",
    features=("+neon", "+fp-armv8"),
    needs=("asimd", "fp"),
    vector_bytes=16,
    vector_registers=32,
    l1_bytes=64 * 1024,
)
