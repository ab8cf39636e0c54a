"""Where single elements lie, in numbers and in sizes that only the run tells."""

from __future__ import annotations

import numpy as np

from fuseline.ir import dim as d
from fuseline.passes.dispatch.size_coordinates import SizeCoordinates

N = d.symbol("n")


def test_rows_are_counted_as_numpy_counts_them() -> None:
    shape = (3, 4, 5)
    for flat in range(60):
        place = [int(i) for i in np.unravel_index(flat, shape)]
        assert SizeCoordinates().delinearized(flat, shape) == place
        assert SizeCoordinates().linearized(place, shape) == flat


def test_a_part_that_is_read_in_steps() -> None:
    assert [SizeCoordinates().moved(at, 3, -2) for at in (0, 1, 2)] == [-2, 1, 4]


def test_sizes_stay_sizes_where_nothing_must_be_divided() -> None:
    coordinates = SizeCoordinates()
    assert coordinates.number(N) == N and coordinates.moved(2, 1, N) == d.add(N, 2)
    assert coordinates.linearized([1, 2], [4, N]) == d.add(N, 2)
    assert coordinates.delinearized(N, [2, 3]) is None and coordinates.delinearized(3, [2, N]) is None
    assert coordinates.delinearized(0, [2, 0]) is None
