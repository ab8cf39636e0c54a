"""How a dispatch runs: a product on the arrays, what follows it on the vector units; all else on the vector units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from fuseline.analysis.convolution_dims import convolution_dims
from fuseline.analysis.cost import flops
from fuseline.analysis.structured import Kind, StructuredOp, kind
from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import assumed_size
from fuseline.ir.provenance import provenance

from .machine import Machine
from .program import Instruction, Loop, Program, cycles, nest, totals
from .roles import Roles, box_bytes, extents_of, roles_of, tensor_bytes
from .vetoes import BY_DMA, scalar_ops


@dataclass(frozen=True)
class Plan:
    """A core's program, and `facts` of it as JSON has them: sizes, grid, memory, cycles, what is inside."""

    program: Program
    facts: Mapping[str, Any]


def plan_of(entry: FuncOp, machine: Machine) -> Plan:
    """The plan of an executable."""
    view = DispatchView(entry)
    products = [(op, found) for op in view.members if (found := roles_of(op)) is not None]
    product = products[0] if len(products) == 1 else None
    program, facts = _vectors(view, machine) if product is None else _on_arrays(view, *product, machine)
    root = view.root if product is None else product[0]
    return Plan(program, {**facts, **_inside(view, root), **totals(program), "cycles": cycles(program, machine)})


def _inside(view: DispatchView, root: Operation | None) -> dict[str, Any]:
    """The root's source nodes, those of elementwise ops inside, and how many ops of which kind only move."""
    others = [op for op in view.members if op is not root]
    computed = [node for op in others if kind(op) not in BY_DMA for node in provenance(op)]
    own = provenance(root) if root is not None else ()
    moves = Counter(kind(op).value for op in view.members if kind(op) in BY_DMA)
    alone = len(moves) > 0 and all(kind(op) in BY_DMA for op in view.members)
    inside = [node for node in dict.fromkeys(computed) if node not in own]
    return {"node": list(own), "inside": inside, "moves": dict(sorted(moves.items())), "only_moves": alone}


# on the vector units --------------------------------------------------------------------------------------------------


def _vectors(view: DispatchView, machine: Machine) -> tuple[Program, dict[str, Any]]:
    """Shares of a dispatch without a product: as much at a time as half of the memory takes, twice."""
    cores = machine.rows * machine.columns
    loaded = sum(tensor_bytes(value, view.shapes) for value in view.tensors if value.uses)
    stored = sum(tensor_bytes(value, view.shapes) for value in view.results)
    work = sum(assumed_size(flops(op, view.shapes)) for op in view.members)
    slow = any(name for op in view.members for name in scalar_ops(op))
    total = max(cores, -(-(loaded + stored) * 2 // (machine.memory - 64)))
    trips = -(-total // cores)
    share = {name: -(-count // total) for name, count in (("in", loaded), ("out", stored), ("work", work))}
    code = "SCALAR" if slow else "VECTOR"
    body = (
        Instruction("LOAD", "operands", bytes=share["in"]),
        *((Instruction(code, operations=share["work"]),) if work else ()),
        Instruction("STORE", "results", bytes=share["out"]),
    )
    sizes = _depthwise_sizes(view)
    grid, memory = [machine.rows, machine.columns], 2 * (share["in"] + share["out"])
    facts = {"unit": code.lower(), **sizes, "grid": grid, "memory": memory}
    return (Loop(0, 1, total, trips, body, "core"), Instruction("SYNC")), facts


def _depthwise_sizes(view: DispatchView) -> dict[str, list[int]]:
    """Those of a depthwise convolution as a product's: image, channels, window; none for other dispatches."""
    if view.root_view is None or view.root is None or kind(view.root) is not Kind.DEPTHWISE:
        return {}
    dims, extents = convolution_dims(view.root_view), extents_of(view.root, view.shapes)
    roles = {"m": dims.image_loops, "n": dims.depth, "k": dims.window_loops} if dims is not None else {}
    return {name: [extents[loop] for loop in loops] for name, loops in roles.items()}


# on the arrays --------------------------------------------------------------------------------------------------------


def _on_arrays(view: DispatchView, root: Operation, roles: Roles, machine: Machine) -> tuple[Program, dict[str, Any]]:
    """The quicker of two plans: all that a window reads of an image is loaded at once, or for each of its elements."""
    both = [_Product(view, root, roles, machine, windows) for windows in dict.fromkeys((roles.windows, ()))]
    plans = [product.plan() for product in both if product.memory <= machine.memory]
    return min(plans, key=lambda plan: cycles(plan[0], machine)["dispatch"])


class _Product:
    """The plan of a dispatch around a product. `at_once`: the loops of the window that one load of the image serves."""

    def __init__(
        self, view: DispatchView, root: Operation, roles: Roles, machine: Machine, at_once: tuple[int, ...]
    ) -> None:
        self.view, self.root, self.roles, self.machine, self.at_once = view, root, roles, machine, at_once
        self.op = StructuredOp(root)  # pyright: ignore[reportArgumentType]
        self.extents = extents_of(root, view.shapes)
        self.sizes = dict.fromkeys(range(len(self.extents)), 1)  # of the tile of each loop
        for loops in (roles.columns[-1:], roles.channels[-1:]):
            self.sizes |= {loop: min(machine.side, self.extents[loop]) for loop in loops}
        self._widen_rows()

    def plan(self) -> tuple[Program, dict[str, Any]]:
        """The program, and its sizes."""
        roles = self.roles
        outer = [self._loop(loop) for loop in (*roles.batch, *roles.rows, *roles.columns)]
        body = (Instruction("CLEAR", "sums"), *self._sums(), *self._epilogue())
        program = (*nest([loop for loop in outer if loop.total > 1], body), Instruction("SYNC"))
        dealt = {loop.across: -(-loop.total // loop.trips) for loop in outer if loop.across}
        grid = [dealt.get("row", 1), dealt.get("column", 1)]
        named = {"m": (*roles.batch, *roles.rows), "n": roles.columns, "k": (*roles.windows, *roles.channels)}
        mnk = {name: [self.extents[loop] for loop in loops] for name, loops in named.items()}
        return program, {"unit": "array", **mnk, "grid": grid, "memory": self.memory}

    def _loop(self, loop: int) -> Loop:
        """The tiles along a loop; heights are dealt to the rows of the grid, columns of the array to its columns."""
        total = -(-self.extents[loop] // self.sizes[loop])
        if loop == self._height():
            return Loop(loop, self.sizes[loop], total, -(-total // self.machine.rows), (), "row")
        if loop in self.roles.columns[-1:]:
            return Loop(loop, self.sizes[loop], total, -(-total // self.machine.columns), (), "column")
        return Loop(loop, self.sizes[loop], total, total, ())

    def _height(self) -> int | None:
        """The loop along which rows are dealt to the grid: the last but one, or the only one."""
        return next(iter(self.roles.rows[-2:]), None)

    def _sums(self) -> Program:
        """Channels outside, the window inside."""
        roles, rows = self.roles, prod(self.sizes[loop] for loop in self.roles.rows)
        image = Instruction("LOAD", f"image, input {roles.image}", bytes=self._read(roles.image, whole=self.at_once))
        weights = Instruction("LOAD", f"weights, input {roles.weights}", bytes=self._read(roles.weights))
        tile = Instruction("MATMUL", rows=rows, macs=rows * self.machine.side**2)
        channels = [loop for loop in map(self._loop_of_sum, roles.channels) if loop.total > 1]
        windows = [loop for loop in map(self._loop_of_sum, roles.windows) if loop.total > 1]
        if self.at_once:
            return nest(channels, (image, *nest(windows, (weights, tile))))
        return nest([*channels, *windows], (image, weights, tile))

    def _loop_of_sum(self, loop: int) -> Loop:
        total = -(-self.extents[loop] // self.sizes[loop])
        return Loop(loop, self.sizes[loop], total, total, ())

    def _epilogue(self) -> Iterator[Instruction]:
        """What else is read, the work on a tile, and its results."""
        for number, value in enumerate(self._others()):
            yield Instruction("LOAD", f"operand {number}", bytes=self._share(tensor_bytes(value, self.view.shapes)))
        after = [op for op in self.view.members if op is not self.root and kind(op) not in BY_DMA]
        work = sum(assumed_size(flops(op, self.view.shapes)) for op in after)
        if work:
            yield Instruction("VECTOR", operations=-(-work // self._tiles()))
        for number, value in enumerate(self.view.results):
            yield Instruction(
                "STORE", f"result {number}", bytes=-(-tensor_bytes(value, self.view.shapes) // self._tiles())
            )

    def _tiles(self) -> int:
        """Tiles of the result, on all cores."""
        loops = (*self.roles.batch, *self.roles.rows, *self.roles.columns)
        return prod(-(-self.extents[loop] // self.sizes[loop]) for loop in loops)

    def _share(self, count: int) -> int:
        """Bytes of an operand of the epilogue that a tile reads: its part, or one row of what is repeated."""
        return min(count, max(-(-count // self._tiles()), self.machine.side * 4))

    def _others(self) -> list[Any]:
        """The tensors that only the epilogue reads."""
        read = {*self.root.operands}
        return [value for value in self.view.tensors if value.uses and not self._feeds(value, read)]

    def _feeds(self, value: Any, read: set[Any]) -> bool:
        """Whether the product reads `value`, moved by the DMA or as it is."""
        if value in read:
            return True
        users = [use.operation for use in value.uses]
        return any(kind(op) in BY_DMA and self._feeds(result, read) for op in users for result in op.results)

    def _read(self, position: int, whole: tuple[int, ...] = ()) -> int:
        sizes = {**self.sizes, **{loop: self.extents[loop] for loop in whole}}
        return box_bytes(self.op.inputs[position], self.op.input_maps[position], sizes, self.view.shapes)

    # -- memory --------------------------------------------------------------------------------------------------------

    @property
    def memory(self) -> int:
        """Bytes of a core's memory: sums of 4 bytes, and everything that moves twice."""
        rows = prod(self.sizes[loop] for loop in self.roles.rows)
        image = self._read(self.roles.image, whole=self.at_once)
        streams = len(self.view.results) + len(self._others())
        return rows * self.machine.side * 4 * (1 + 2 * streams) + 2 * (image + self._read(self.roles.weights))

    def _widen_rows(self) -> None:
        """Rows of a tile: the width first, then the height, by divisors of what a core has, as long as they fit."""
        for loop in reversed(self.roles.rows[-2:]):
            own = self.extents[loop]
            own = -(-own // self.machine.rows) if loop == self._height() else own
            for size in sorted((size for size in range(1, own + 1) if own % size == 0), reverse=True):
                self.sizes[loop] = size
                if self.memory <= self.machine.memory:
                    break
