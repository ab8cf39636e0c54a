"""For the tests of those who extend fuseline: `check_target` runs small graphs through a target and says where it
breaks the contract of docs/targets.md."""

from fuseline.testing.conformance import check_target
from fuseline.testing.graphs import GRAPHS

__all__ = ["GRAPHS", "check_target"]
