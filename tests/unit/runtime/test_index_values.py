"""Numbers that sizes depend on, read from the tensors that hold them."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.errors import FuselineError
from fuseline.runtime.index_values import execute


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint8])
@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_the_one_element_is_a_python_number(dtype: type[np.integer], shape: tuple[int, ...]) -> None:
    (value,) = execute(b"n", [np.full(shape, 7, dtype)])
    assert value == 7 and type(value) is int


def test_nothing_is_a_size() -> None:
    assert execute(b"n", [np.zeros((), np.int64)]) == [0]


@pytest.mark.parametrize(("node", "named"), [("größe".encode(), "größe"), (b"", None)])
def test_a_negative_number_is_no_size(node: bytes, named: str | None) -> None:
    with pytest.raises(FuselineError, match="computed as -1, must be at least 0") as caught:
        execute(node, [np.array([-1])])
    assert (caught.value.code, caught.value.node) == ("E0203", named)
