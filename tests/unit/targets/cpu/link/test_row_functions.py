"""The functions that walk rows, alone: bindings of an iteration, and how often a loop's rows are met."""

from __future__ import annotations

import pytest

from fuseline.runtime import abi
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.link.scheduler_rows import bindings_of, run_rows
from tests.kernel_ir.evaluate_functions import AddressSpace, call_function

WORD = 8
FUNCTIONS = {function.symbol: function for function in (bindings_of(), run_rows(alone=True), run_rows(alone=False))}


def _words(space: AddressSpace, numbers: dict[int, int], size: int) -> int:
    """The address of a structure with these words, by byte offset."""
    address, words = space.words(size // WORD)
    for offset, number in numbers.items():
        words[offset // WORD] = number
    return address


def _moves(space: AddressSpace, *moves: tuple[int, int, int, int, int]) -> int:
    address, words = space.words(len(moves) * abi.MOVE_BYTES // WORD)
    words[:] = [number for move in moves for number in move]
    return address


@pytest.mark.parametrize("trip", [0, 1, 2, 5])
def test_bindings_move_alternate_or_are_special(trip: int) -> None:
    space = AddressSpace()
    moves = _moves(space, (1000, 7, -1, 24, -1), (2000, 7, -1, 16, 1), (3000, 77, 2, -8, -1))
    row = _words(space, {abi.ROW_MOVES: moves, abi.ROW_MOVE_COUNT: 3, abi.ROW_BINDINGS: 5}, abi.ROW_BYTES)
    local, found = space.words(3)
    assert call_function(FUNCTIONS, "bindings_of", [row, trip, local], space) == local
    assert list(found) == [1000 + 24 * trip, 2000 + 16 * (trip % 2), 77 if trip == 2 else 3000 - 8 * trip]


def test_bindings_of_a_row_that_stands_are_its_own() -> None:
    space = AddressSpace()
    row = _words(space, {abi.ROW_BINDINGS: 5555}, abi.ROW_BYTES)
    local, found = space.words(1)
    found[0] = 9
    assert call_function(FUNCTIONS, "bindings_of", [row, 3, local], space) == 5555 and found[0] == 9


def _walked(rows: list[dict[int, int]], first: int, last: int) -> tuple[list[tuple[int, ...]], int]:
    """What one thread launches of rows whose kernels note their bindings, sizes and range; the generation."""
    space, seen = AddressSpace(), list[tuple[int, ...]]()
    table, words = space.words(len(rows) * abi.ROW_BYTES // WORD)
    for number, row in enumerate(rows):
        kernel = space.function(lambda *arguments, number=number: seen.append((number, *arguments)))
        filled = {abi.ROW_KERNEL: kernel, abi.ROW_BINDINGS: 100 + number, **row}
        for offset, value in filled.items():
            words[(number * abi.ROW_BYTES + offset) // WORD] = value
    scratch, _ = space.words(4)
    context = _words(
        space, {abi.CONTEXT_ROWS: table, abi.CONTEXT_SCRATCH: scratch, abi.CONTEXT_STRIDE: 16}, abi.CONTEXT_BYTES
    )
    answer = call_function(FUNCTIONS, "run_rows_alone", [0, context, 0, first, last, 40, 0], space)
    assert all(launch[-1] == scratch for launch in seen)
    return [launch[:-1] for launch in seen], answer


def test_rows_are_launched_whole_and_in_order() -> None:
    rows = [{abi.ROW_SIZES: 7, abi.ROW_WORKGROUPS: n, abi.ROW_FLAGS: abi.FLAG_BARRIER} for n in (3, 0, 5, 1)]
    seen, generation = _walked(rows, 0, 4)
    # a grid without workgroups is no launch, and one thread meets no barrier
    assert seen == [(0, 100, 7, 0, 3), (2, 102, 7, 0, 5), (3, 103, 7, 0, 1)] and generation == 40
    assert [launch[0] for launch in _walked(rows, 2, 3)[0]] == [2]
    assert _walked(rows, 2, 2)[0] == []


@pytest.mark.parametrize("trips", [0, 1, 3])
def test_the_rows_of_a_loop_are_met_once_for_each_iteration(trips: int) -> None:
    launch = {abi.ROW_WORKGROUPS: 2}
    loop = {abi.ROW_SIZES: 2, abi.ROW_WORKGROUPS: trips, abi.ROW_FLAGS: abi.FLAG_LOOP}
    seen, _ = _walked([launch, loop, launch, launch, launch], 0, 5)
    assert [number for number, *_ in seen] == [0, *[2, 3] * trips, 4]


@pytest.mark.parametrize("symbol", FUNCTIONS)
def test_accesses_are_inside_their_structures(symbol: str) -> None:
    assert FUNCTIONS[symbol].symbol == symbol and not check_bounds(FUNCTIONS[symbol], [], 1)
