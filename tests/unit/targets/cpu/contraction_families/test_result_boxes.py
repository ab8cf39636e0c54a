"""Results written into a box of a larger tensor, by every way of making them; what lies outside the box stays as it
was."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import SSAValue

from fuseline.targets.cpu.families.contraction.family import ContractionFamily
from fuseline.targets.cpu.families.family import Family
from fuseline.targets.cpu.families.nests.elementwise import Elementwise
from tests.graphs.program import Program
from tests.kernels import Runner, assert_close, random

M, N, K = 5, 13, 6
BOXES = [((M, 40), (0, 9)), ((9, N), (3, 0)), ((8, 31), (2, 17))]


def placed(p: Program, value: SSAValue, dims: tuple[int, int], offsets: tuple[int, int]) -> SSAValue:
    assert isinstance(value.type, TensorType)
    op = tensor.InsertSliceOp.from_static_parameters(
        value, p.empty(*dims), list(offsets), list(value.type.get_shape()), [1, 1]
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
