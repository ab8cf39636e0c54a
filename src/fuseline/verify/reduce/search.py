"""The loop: a simplification that still shows it is kept, until none does or the time is spent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.verify.reduce.candidate import Candidate, Feeds, rebuilt
from fuseline.verify.reduce.details import fewer_attributes, plainer_numbers
from fuseline.verify.reduce.nodes import bypassed, fewer_nodes, fewer_outputs, frozen_inputs
from fuseline.verify.reduce.sizes import smaller_sizes
from fuseline.verify.reduce.values import constants_of, values_of

Shows = Callable[[Candidate], tuple[str, str]]
OfNodes = Callable[[Candidate, Feeds, frozenset[str]], Iterator[Candidate]]

OF_NODES: tuple[OfNodes, ...] = (fewer_outputs, fewer_nodes, bypassed, frozen_inputs)
"""The boldest first."""

OF_VALUES: tuple[Callable[[Candidate], Iterator[Candidate]], ...] = (smaller_sizes, fewer_attributes, plainer_numbers)
"""What changes the values of a model."""


@dataclass(eq=False)
class Reduction:
    """`kept` is called with each candidate that is smaller and still shows it, and the words for that; `tell` with how
    many were tried. `seconds`: how long the search may take."""

    options: CompileOptions
    shows: Shows
    kept: Callable[[Candidate, str], object]
    tell: Callable[[str, int], object] = lambda what, tried: None
    seconds: float = 600.0
    tried: int = 0
    _kind: str = field(default="", init=False)
    _end: float = field(default=0.0, init=False)

    def run(self, whole: Candidate) -> Candidate:
        """The smallest candidate found. Raises E0614 where the whole model shows nothing."""
        self._end = time.monotonic() + self.seconds
        whole = self._declared(whole)
        self._kind, words = self.shows(whole)
        if not self._kind:
            hint = "give the feeds and options that show it (--input, --seed, --fusion, ..)"
            raise FuselineError("E0614", "the model shows no difference", hint=hint)
        self.kept(whole, words)
        smallest, before = whole, None
        while smallest is not before and not self._late():
            before = smallest
            smallest = self._of_nodes(smallest)
            for simplify in OF_VALUES:
                smallest = self._of_values(smallest, simplify)
        return self._first(iter([self._declared(smallest)]), smallest) or smallest

    def _declared(self, whole: Candidate) -> Candidate:
        """The model with the sizes of this run, and outputs of known type, as the checker asks for."""
        outputs = [output.name for output in whole.model.graph.output]
        return rebuilt(whole, whole.nodes, outputs, values_of(whole, self.options)) or whole

    def _of_nodes(self, candidate: Candidate) -> Candidate:
        """Fewer nodes; the values of the others stay what they are."""
        values, constants = values_of(candidate, self.options), constants_of(candidate.model)
        for simplify in OF_NODES:
            found: Candidate | None = candidate
            while found is not None and not self._late():
                candidate = found
                found = self._first(simplify(candidate, values, constants), candidate)
        return candidate

    def _of_values(self, candidate: Candidate, simplify: Callable[[Candidate], Iterator[Candidate]]) -> Candidate:
        found: Candidate | None = candidate
        while found is not None and not self._late():
            candidate = found
            found = self._first(simplify(candidate), candidate)
        return candidate

    def _first(self, candidates: Iterator[Candidate], than: Candidate) -> Candidate | None:
        """The first candidate that is another one and shows the same kind of thing."""
        for candidate in candidates:
            if self._late():
                return None
            self.tried += 1
            self.tell(f"{len(than.nodes)} nodes, {than.elements:,} elements", self.tried)
            kind, words = self.shows(candidate)
            if kind == self._kind:
                self.kept(candidate, words)
                return candidate
        return None

    def _late(self) -> bool:
        return time.monotonic() > self._end
