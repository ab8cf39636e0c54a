"""Results written into a box of a larger tensor, by every way of making them; what lies outside the box stays as it
was."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from fuseline.ir.build import dims_map
from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.family import Family
from fuseline.targets.cpu.families.nests.elementwise import Elementwise
from fuseline.targets.cpu.kernel_ir.text import kernel_text
from tests.draws import RNG
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, random

M, N, K = 5, 13, 6
BOXES = [((M, 40), (0, 9)), ((9, N), (3, 0)), ((8, 31), (2, 17))]


def placed(p: Program, value: SSAValue, dims: Sequence[int], offsets: Sequence[int]) -> SSAValue:
    assert isinstance(value.type, TensorType)
    op = tensor.InsertSliceOp.from_static_parameters(
        value, p.empty(*dims), list(offsets), list(value.type.get_shape()), [1] * len(dims)
    )
    return p.emit.add(op).result


@pytest.mark.parametrize(("dims", "offsets"), BOXES)
@pytest.mark.parametrize("product", [True, False])
def test_a_box_of_a_result_is_written_and_nothing_else(dims: tuple[int, int], offsets: tuple[int, int], product: bool):
    family: Family = ContractionFamily() if product else Elementwise()
    p = Program((M, K), (K, N)) if product else Program((M, N), (M, N))
    value = p.relu(p.matmul(p.x[0], p.x[1])) if product else p.relu(p.add(p.x[0], p.x[1]))
    run = Runner(family, p.dispatch(placed(p, value, dims, offsets)))
    a, b = (random((M, K), 1), random((K, N), 2)) if product else (random((M, N), 1), random((M, N), 2))
    (found,) = run(a, b)
    box = tuple(slice(offset, offset + size) for offset, size in zip(offsets, (M, N), strict=True))
    assert_close(found[box], np.maximum(a.astype(np.float64) @ b if product else a + b, 0))
    found[box] = np.nan
    assert np.isnan(found).all()


@pytest.mark.parametrize("whole_rows", [True, False])
@pytest.mark.parametrize("outer", [1, 3])
def test_a_turned_box_is_stored_in_squares_where_its_rows_are_whole(outer: int, whole_rows: bool):
    """Rows and columns of an image, channels last, in a box of a tensor that has the channels first: a band of it."""
    height, width, channels, inner = (int(RNG.integers(low, 2 * low)) for low in (3, 17, 16, 5))
    p = Program((height, width, inner), (inner, channels))
    maps = [dims_map(4, [0, 1, 3]), dims_map(4, [3, 2]), dims_map(4, [0, 1, 2])]
    made = p.multiply_add(p.x[0], p.x[1], p.zeros(height, width, channels), maps, "pppr")
    turned = p.moved(made, [1, 2, 0], channels, height, width)
    dims, offsets = (channels, outer * height + 1, width + (0 if whole_rows else 3)), (0, (outer - 1) * height + 1, 0)
    run = Runner(ContractionFamily(), p.dispatch(placed(p, turned, dims, offsets)))
    assert ("scatter" in kernel_text(run.kernel)) != whole_rows
    assert not run.unproved()
    x, w = random((height, width, inner), 1), random((inner, channels), 2)
    (found,) = run(x, w)
    box = (slice(None), slice(offsets[1], offsets[1] + height), slice(0, width))
    assert_close(found[box], np.moveaxis(x.astype(np.float64) @ w, -1, 0))
    found[box] = np.nan
    assert np.isnan(found).all()
