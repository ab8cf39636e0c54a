"""The model as it was read, before any pass, on the interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from fuseline.compile_options import CompileOptions
from fuseline.source_program import prepare
from fuseline.targets import create_target
from fuseline.targets.interpreter import Interpreter
from fuseline.verify.check.agreement import noisy

_NOISY = 2


class Original:
    """The model of `source`, read once; `literal`: sizes of 1 repeat where the model does not forbid it. Raises what
    reading raises."""

    def __init__(self, source: Any, options: CompileOptions, *, literal: bool = False) -> None:
        target = create_target(options.target, options.threads, options.numerics)
        self._module, self._ctx = prepare(source, replace(options, progress=None), target, literal_broadcasts=literal)

    def run(self, feeds: Mapping[str, Any], *, double: bool = True) -> dict[str, Any]:
        """The outputs, every float in float64 unless not `double`."""
        return Interpreter(self._module, self._ctx.resources, double=double).run(feeds)

    def in_own_types(self, exact: Mapping[str, Any], feeds: Mapping[str, Any]) -> dict[str, Any]:
        """Outputs in float64 in the types that the model has."""
        typed = self.run(feeds, double=False)
        return {
            name: value.astype(typed[name].dtype) if isinstance(value, np.ndarray) and value.dtype != object else value
            for name, value in exact.items()
        }

    def noisy_runs(self, feeds: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """The outputs in the types that the model has, then in float64 of feeds that are a rounding or two off."""
        rng = np.random.default_rng(0)
        moved = [{name: noisy(np.asarray(feed), rng) for name, feed in feeds.items()} for _ in range(_NOISY)]
        typed = [{name: feed.astype(feeds[name].dtype) for name, feed in some.items()} for some in moved]
        return [self.run(feeds, double=False), *map(self.run, typed)]
