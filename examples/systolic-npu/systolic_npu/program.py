"""A core's program as a value: loops over the root's loops, and instructions with what they move and compute."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from .machine import Machine


@dataclass(frozen=True)
class Instruction:
    """LOAD and STORE move `bytes`; MATMUL streams `rows` past a tile of weights (`macs` multiply-adds); VECTOR and
    SCALAR do `operations`."""

    code: str
    what: str = ""
    bytes: int = 0
    rows: int = 0
    macs: int = 0
    operations: int = 0


@dataclass(frozen=True)
class Loop:
    """`total` tiles of `step` along the root's loop `loop`, dealt to the rows or columns of the grid where it lies
    `across` one: a core walks `trips` of them at most."""

    loop: int
    step: int
    total: int
    trips: int
    body: tuple[Instruction | Loop, ...]
    across: str = ""


Program = tuple[Instruction | Loop, ...]


def instructions(program: Program, trips: int = 1, total: int = 1) -> Iterator[tuple[Instruction, int, int]]:
    """Every instruction, how often the busiest core does it, and how often all cores do."""
    for item in program:
        if isinstance(item, Loop):
            yield from instructions(item.body, trips * item.trips, total * item.total)
        else:
            yield item, trips, total


def cycles(program: Program, machine: Machine) -> dict[str, int]:
    """Cycles of each unit on the busiest core, and of the dispatch.

    A MATMUL takes its rows and 2 sides more, until the last sum has left the array; the next weights are loaded
    meanwhile. The units work side by side on two sets of buffers, so that the slowest decides; the first load and the
    last store stand alone.
    """
    spent = {"array": 0, "dma": 0, "vector": 0, "scalar": 0}
    ends = {"LOAD": 0, "STORE": 0}
    for item, trips, _ in instructions(program):
        spent["array"] += trips * (item.rows + 2 * machine.side) if item.code == "MATMUL" else 0
        spent["vector"] += trips * -(-item.operations // machine.lanes) if item.code == "VECTOR" else 0
        spent["scalar"] += trips * item.operations if item.code == "SCALAR" else 0
        moved = -(-item.bytes // machine.dma)
        spent["dma"] += trips * moved
        if item.code in ends:
            ends[item.code] = max(ends[item.code], moved)
    return {**spent, "dispatch": machine.launch + max(spent.values()) + sum(ends.values())}


def lines(program: Program, indent: str = "    ") -> Iterator[str]:
    """The program as text."""
    for item in program:
        if isinstance(item, Loop):
            dealt = f" of {item.total} across {item.across}s" if item.across else ""
            yield f"{indent}for d{item.loop} in {item.trips}{dealt} step {item.step}"
            yield from lines(item.body, f"{indent}  ")
        else:
            said = {"bytes": item.bytes, "macs": item.macs, "operations": item.operations}
            numbers = [f"{count} {name}" for name, count in said.items() if count]
            yield f"{indent}{item.code:7}{', '.join([item.what, *numbers] if item.what else numbers)}".rstrip()


def totals(program: Program) -> dict[str, int]:
    """What all cores move and compute together."""
    found = {"loaded": 0, "stored": 0, "macs": 0}
    for item, _, total in instructions(program):
        moved = {"LOAD": "loaded", "STORE": "stored"}.get(item.code)
        if moved is not None:
            found[moved] += total * item.bytes
        found["macs"] += total * item.macs
    return found


def nest(loops: Sequence[Loop], body: Program) -> Program:
    """`body` inside of `loops`, the first outermost."""
    for loop in reversed(loops):
        body = (Loop(loop.loop, loop.step, loop.total, loop.trips, body, loop.across),)
    return body
