"""A program whose dispatches are outlined as text that IREE takes: regions of its `flow` dialect, weights as
parameters."""

from fuseline.targets.iree.flow.program import FlowProgram, flow_program

__all__ = ["FlowProgram", "flow_program"]
