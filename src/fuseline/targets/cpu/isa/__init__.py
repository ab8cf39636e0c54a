"""The ISAs code is made for, best first, and which one this CPU has."""

from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.isa.detection import ISA_NAMES, cpu_flags, detect, machine

__all__ = ["ISA_NAMES", "Machine", "cpu_flags", "detect", "machine"]
