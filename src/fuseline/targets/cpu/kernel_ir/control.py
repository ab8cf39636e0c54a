"""Loops and branches of the kernel IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fuseline.targets.cpu.kernel_ir.emitter import Emitter
from fuseline.targets.cpu.kernel_ir.types import I64, Loop, Operand, Type, Value, When, While, type_of


class Control(Emitter):
    """Structured control flow; what a block yields becomes the operation's results."""

    def loop(
        self,
        lo: Operand,
        hi: Operand,
        step: int,
        body: Callable[..., Sequence[Operand] | None],
        carried: Sequence[Operand] = (),
    ) -> tuple[Any, ...]:
        """`for i in range(lo, hi, step)`; `body(i, *carried)` returns the next carried values. The last ones are the
        result.

        A loop known to run once is its body; one known not to run is nothing.
        """
        if isinstance(lo, int) and isinstance(hi, int) and hi - lo <= step and not self.keeps_loops:
            return tuple(carried) if hi <= lo else tuple(body(lo, *carried) or ())
        depth = self.depth + 1
        index = self._fresh("index", I64, depth=depth)
        parameters = tuple(self._fresh("carried", type_of(c), depth=depth) for c in carried)
        loop = Loop(self.fresh_number(), lo, hi, step, index, tuple(carried), parameters)
        index.attr = loop
        self.open(loop.body)
        loop.yields = tuple(body(index, *parameters) or ())
        self.close()
        _check_types("loop", [p.type for p in parameters], loop.yields)
        loop.results = tuple(self._fresh("result", p.type, depth=self.depth) for p in parameters)
        self.append(loop)
        return loop.results

    def while_(
        self,
        condition: Callable[..., Value],
        body: Callable[..., Sequence[Operand] | None],
        carried: Sequence[Operand] = (),
    ) -> tuple[Any, ...]:
        """`body(*carried)` as long as `condition(*carried)` (scalar i1) holds; it returns the next carried values. The
        last ones are the result."""
        depth = self.depth + 1
        parameters = tuple(self._fresh("carried", type_of(c), depth=depth) for c in carried)
        loop = While(self.fresh_number(), tuple(carried), parameters)
        self.open(loop.test)
        loop.condition = condition(*parameters)
        self.open(loop.body)
        loop.yields = tuple(body(*parameters) or ())
        self.close()
        self.close()
        _check_types("while", [p.type for p in parameters], loop.yields)
        loop.results = tuple(self._fresh("result", p.type, depth=self.depth) for p in parameters)
        self.append(loop)
        return loop.results

    def when(
        self,
        condition: Value,
        then: Callable[[], Sequence[Operand] | None],
        otherwise: Callable[[], Sequence[Operand] | None] | None = None,
    ) -> tuple[Any, ...]:
        """Run `then` if `condition` (scalar i1) holds, else `otherwise`; both return values of equal types, which are
        the result."""
        if condition.op == "const":
            taken = then if condition.attr else otherwise
            return tuple(taken() or ()) if taken is not None else ()
        when = When(self.fresh_number(), condition)
        self.open(when.then)
        when.then_yields = tuple(then() or ())
        self.close()
        if otherwise is not None:
            self.open(when.otherwise)
            when.otherwise_yields = tuple(otherwise() or ())
            self.close()
        types = [type_of(v) for v in when.then_yields]
        _check_types("when", types, when.otherwise_yields)
        when.results = tuple(self._fresh("result", t, depth=self.depth) for t in types)
        self.append(when)
        return when.results


def _check_types(what: str, expected: Sequence[Type], yields: Sequence[Operand]) -> None:
    found = [type_of(v) for v in yields]
    if list(expected) != found:
        raise TypeError(f"{what} yields {found}, expected {list(expected)}")
