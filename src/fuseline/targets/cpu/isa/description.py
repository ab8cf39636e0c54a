"""What a kernel may use of a CPU, as data. One file per ISA beside this one holds a `MACHINE`."""

from __future__ import annotations

from dataclasses import dataclass, field

from fuseline.ir.costs import ASSUMED_COSTS, MachineCosts
from fuseline.ir.work_costs import ASSUMED_WORK_COSTS, WorkCosts

_BITS = {"f64": 64, "i64": 64, "f32": 32, "i32": 32, "f16": 16, "bf16": 16, "i16": 16, "i8": 8, "i1": 8}


@dataclass(frozen=True, slots=True)
class Machine:
    """An instruction set with the sizes that tile choice needs.

    `features` and `cpu` go to LLVM as they are; `needs` are the flags of `/proc/cpuinfo` (or `Features` on Arm) a CPU
    must show to run the code. Cache sizes are bytes per core. `masked_bits` lists the element widths that masked loads
    and stores handle without a branch per lane. `pair_dot` is LLVM's name of the instruction that multiplies a register
    of i16 by another and adds neighbouring products, in i32; empty where there is none. `quad_dot` adds products of
    four neighbours each, of 8 bits without a sign and of 8 bits with one, to i32 lanes, without saturating. `costs` are
    those of whole loops and launches, `work_costs` those that dispatches are predicted with.
    """

    name: str
    triple: str
    cpu: str
    features: tuple[str, ...]
    needs: tuple[str, ...]
    vector_bytes: int
    vector_registers: int
    fma: bool = True
    half_conversion: bool = True
    masked_bits: frozenset[int] = field(default_factory=frozenset[int])
    l1_bytes: int = 32 * 1024
    l2_bytes: int = 512 * 1024
    attributes: tuple[tuple[str, str], ...] = ()
    pair_dot: str = ""
    quad_dot: str = ""
    costs: MachineCosts = ASSUMED_COSTS
    work_costs: WorkCosts = ASSUMED_WORK_COSTS

    def lanes(self, dtype: str = "f32") -> int:
        """Elements of `dtype` in one vector register."""
        return self.vector_bytes * 8 // _BITS[dtype]

    @property
    def f32_lanes(self) -> int:
        """f32 elements in one vector register."""
        return self.vector_bytes // 4
