"""Rows of an image in scratch that no op makes: those that the band before has left, and those outside of the whole."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fuseline.targets.cpu.families.blocked.band_image import BandImage
from fuseline.targets.cpu.families.blocked.tiles import Part
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand


@dataclass(frozen=True, slots=True)
class BandRows:
    """The rows of the image of band `number`, in `memory`."""

    kernel: KernelBuilder
    image: BandImage
    memory: MemRef
    number: Operand

    def move(self) -> None:
        """Put the last rows of a band where the first ones of the next are. They may overlap: what is read lies behind
        what is written."""
        kernel, memory, image = self.kernel, self.memory, self.image
        distance = (image.rows - image.kept) * image.row_elements

        def move(at: Operand, lanes: int) -> None:
            kernel.store(memory, at, kernel.load(memory, kernel.add(at, distance), lanes))

        self._for_each_run(0, image.kept, move)

    def put_edge(self, part: Part) -> None:
        """Put the number of the edge into the rows of `part` that are outside of the whole image."""
        edge, kernel = self.image.edge, self.kernel
        if edge is None:
            return
        dtype, begin, end = self.memory.dtype, part.offset, part.offset + part.extent
        before = kernel.mul(self.number, edge.step)
        first, last = (kernel.max(kernel.min(kernel.sub(n, before), end), begin) for n in (edge.first, edge.end))

        def put(at: Operand, lanes: int) -> None:
            kernel.store(self.memory, at, kernel.const(edge.number, dtype, lanes))

        self._for_each_run(begin, first, put)
        self._for_each_run(last, end, put)

    def _for_each_run(self, begin: Operand, end: Operand, visit: Callable[[Operand, int], None]) -> None:
        """`visit` the elements of rows `begin` to `end`, vectors of so many lanes in order."""
        kernel, image, row = self.kernel, self.image, self.image.row_elements
        lanes = kernel.lanes_of(self.memory.dtype)
        whole = row // lanes * lanes

        def line(outer: Operand, number: Operand) -> None:
            first = kernel.mul(kernel.add(kernel.mul(outer, image.rows), number), row)
            kernel.loop(0, whole, lanes, lambda at: visit(kernel.add(first, at), lanes))
            kernel.loop(whole, row, 1, lambda at: visit(kernel.add(first, at), 1))

        kernel.loop(0, image.outer, 1, lambda outer: kernel.loop(begin, end, 1, lambda at: line(outer, at)) and None)
