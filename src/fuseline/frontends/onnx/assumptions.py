"""Which way an `If` over sizes goes, where only one way makes sense of the rest of the model.

    Shape(x)[-1] == 1 ? Squeeze(x) : x  ->  LSTM        an LSTM takes three dimensions: the size must be 1, and the
                                                        program requires it

Exporters write such an `If` for an optional squeeze, so that even the rank behind it hangs on a size that only the run
knows. Both ways are tried: the model is read once with each assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import onnx_ir as ir

from fuseline.frontends.onnx.host_values import Value
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.size_tests import SizeTest, size_test


@dataclass
class Assumptions:
    """Ways taken so far. `readable` answers whether the model can be read with more of them; None while that is being
    found out: one question never leads to another, so that a model is read at most twice for each `If`."""

    ways: Mapping[ir.Node, bool]
    readable: Callable[[Mapping[ir.Node, bool]], bool] | None = None
    _doubtful: int = field(default=0, init=False)

    @contextmanager
    def in_doubt(self) -> Generator[None]:
        """While a branch or body is translated of which nobody knows whether it will run."""
        self._doubtful += 1
        try:
            yield
        finally:
            self._doubtful -= 1

    def way(self, source: ir.Node, scope: Mapping[str, Value], program: Program, label: str) -> bool | None:
        """The only way that the `If` `source` can go; None where both may be.

        The program requires then what the way asks of the sizes.
        """
        test = None if self._doubtful else size_test(source.inputs[0], scope, label)
        if test is None:
            return None
        if source not in self.ways and not self._settle(source, test):
            return None
        way = self.ways[source]
        program.require(test.holds if way else test.fails)
        return way

    def _settle(self, source: ir.Node, test: SizeTest) -> bool:
        """Whether there is only one way."""
        if self.readable is None:
            return False
        holds, fails = (self.readable({**self.ways, source: way}) for way in (True, False))
        if holds == fails:
            return False
        self.ways = {**self.ways, source: holds}
        return True
