"""Constants: layouts applied, equal bytes once, one allocation."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fuseline.buffers import BufferRef, Operand
from fuseline.errors import FuselineError
from fuseline.passes.schedule.pack_constants import pack_constants
from fuseline.program.schedule import Schedule
from fuseline.program.steps import CopyStep, DispatchStep
from fuseline.targets.compiled_kernel import CompiledKernel
from fuseline.weight_layouts import LayoutKey, PackedLayout

LAYOUT = PackedLayout(pad_to=(6, 8), reshape=(2, 3, 8), permutation=(1, 0, 2))


def _schedule(arrays: list[NDArray[np.float32]], executables: list[str]) -> Schedule:
    steps = [
        DispatchStep(name, name, (Operand(BufferRef("constant", i), array.shape, "float32"),), (), (), i)
        for i, (array, name) in enumerate(zip(arrays, executables, strict=True))
    ]
    return Schedule((), (), tuple(steps), tuple(arrays), 0)


def _kernel(layout: PackedLayout | None = None, extra: tuple[bytes, ...] = ()) -> CompiledKernel:
    return CompiledKernel("k", b"", "test", 1, constant_layouts={0: layout} if layout else {}, extra_constants=extra)


def _floats(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def test_layout_pads_reshapes_and_permutes() -> None:
    array = _floats(5, 7)
    packed = pack_constants(_schedule([array], ["a"]), {"a": _kernel(LAYOUT)})
    expected = np.pad(array, [(0, 1), (0, 1)]).reshape(2, 3, 8).transpose(1, 0, 2)
    block = packed.blocks[packed.layouts[0, LayoutKey((5, 7), LAYOUT)]]
    np.testing.assert_array_equal(block.view(np.float32).reshape(3, 2, 8), expected)
    assert (packed.original_bytes, packed.packed_bytes) == (140, 192)


G = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))


def test_matrices_are_applied_along_their_dimensions_in_double_precision() -> None:
    array = _floats(3, 9000, 3)
    layout = PackedLayout((4, 9008, 4), (4, 9008, 4), (1, 2, 0), (G, None, G))
    packed = pack_constants(_schedule([array], ["a"]), {"a": _kernel(layout)})
    g = np.array(G)
    expected = np.zeros((9008, 4, 4), np.float32)
    expected[:9000] = np.einsum("ai,inj,bj->nba", g, array.astype(np.float64), g)
    block = packed.blocks[packed.layouts[0, LayoutKey((3, 9000, 3), layout)]]
    np.testing.assert_array_equal(block.view(np.float32).reshape(9008, 4, 4), expected)
    assert packed.packed_bytes == expected.nbytes


@pytest.mark.parametrize("layout", [
    PackedLayout((6, 8), (3, 2, 8), (0, 2, 1)), PackedLayout((6, 8), (6, 4, 2), (1, 0, 2)),
    PackedLayout((6, 8), (6, 2, 4), (2, 0, 1)),
    PackedLayout((6, 8), (4, 12), (0, 1)), PackedLayout((6, 8), (1, 6, 1, 8), (2, 3, 0, 1)),
    PackedLayout((6, 8), (48,), (0,)),
    PackedLayout((6, 8), (6, 2, 4), (1, 0, 2), (((1.0,) * 5,) * 6, None)),
    PackedLayout((6, 8), (2, 3, 8), (0, 2, 1), (((1.0,) * 5,) * 6, None)),
])  # fmt: skip
def test_layouts_are_applied_step_by_step_as_at_once(layout: PackedLayout) -> None:
    """The outermost steps may be those of any dimension, the inner part of one, or of none."""
    array = _floats(5, 7)
    packed = pack_constants(_schedule([array], ["a"]), {"a": _kernel(layout)})
    tall = (
        np.tile(array.astype(np.float64).sum(0), (6, 1)).astype(np.float32)
        if layout.matrices
        else np.pad(array, [(0, 1), (0, 0)])
    )
    expected = np.pad(tall, [(0, 0), (0, 1)]).reshape(layout.reshape).transpose(layout.permutation)
    block = packed.blocks[packed.layouts[0, LayoutKey((5, 7), layout)]]
    np.testing.assert_allclose(block.view(np.float32).reshape(expected.shape), expected, rtol=1e-6)


def test_a_second_layout_lies_behind_the_first() -> None:
    array = _floats(5, 7)
    layout = PackedLayout((6, 8), (48,), (0,), then=LAYOUT)
    packed = pack_constants(_schedule([array], ["a"]), {"a": _kernel(layout)})
    padded = np.pad(array, [(0, 1), (0, 1)])
    block = packed.blocks[packed.layouts[0, LayoutKey((5, 7), layout)]].view(np.float32)
    np.testing.assert_array_equal(
        block, np.concatenate([padded.ravel(), padded.reshape(2, 3, 8).transpose(1, 0, 2).ravel()])
    )
    with pytest.raises(FuselineError, match=r"E0901.*does not fit"):
        wrong = PackedLayout((6, 8), (48,), (0,), then=PackedLayout((4, 8), (4, 8), (0, 1)))
        pack_constants(_schedule([array], ["a"]), {"a": _kernel(wrong)})


def test_matrices_times_what_is_not_finite_or_overflows() -> None:
    """Without warnings: what it means is the kernel's concern."""
    array = _floats(3, 9)
    array[0, 0], array[1, 1], array[:, 2] = np.inf, np.nan, 3.4e38
    layout = PackedLayout((4, 9), (4, 9), (0, 1), (G, None))
    block = pack_constants(_schedule([array], ["a"]), {"a": _kernel(layout)}).blocks[0].view(np.float32).reshape(4, 9)
    finite = np.isfinite(block)
    assert not finite[:3, 0].any() and not finite[1:3, 1].any() and not finite[1, 2] and finite[:, 3:].all()


@pytest.mark.parametrize(
    ("columns", "padded"), [(7, 4), (3, 3)], ids=["columns it does not take", "rows that are too many"]
)
def test_a_matrix_that_does_not_fit_is_refused(columns: int, padded: int) -> None:
    layout = PackedLayout((5, padded), (5, padded), (0, 1), (None, G))
    with pytest.raises(FuselineError, match=r"E0901.*does not fit"):
        pack_constants(_schedule([_floats(5, columns)], ["a"]), {"a": _kernel(layout)})


def test_blocks_are_aligned() -> None:
    packed = pack_constants(_schedule([_floats(3), _floats(5, seed=1)], ["a", "b"]), {"a": _kernel(), "b": _kernel()})
    assert all(block.ctypes.data % 64 == 0 for block in packed.blocks)


def test_equal_bytes_are_stored_once() -> None:
    arrays = [_floats(3000), _floats(3000), _floats(3000, seed=1)]
    arrays.append(arrays[0].copy())
    arrays[3][1500] += 1  # equal at both ends
    packed = pack_constants(_schedule(arrays, list("abcd")), {name: _kernel() for name in "abcd"})
    assert [packed.layouts[i, None] for i in range(4)] == [0, 0, 1, 2]
    assert packed.packed_bytes == 3 * 12000 and packed.original_bytes == 4 * 12000


def test_one_constant_under_two_layouts_is_two_blocks() -> None:
    array = _floats(6, 8)
    schedule = _schedule([array, array], ["a", "b"])
    packed = pack_constants(schedule, {"a": _kernel(LAYOUT), "b": _kernel()})
    assert len(packed.blocks) == 2


def test_extra_constants_of_kernels() -> None:
    packed = pack_constants(_schedule([], []), {"a": _kernel(extra=(b"abc", b"")), "b": _kernel(extra=(b"abc",))})
    assert packed.extras["a", 0] == packed.extras["b", 0] != packed.extras["a", 1]
    assert packed.blocks[packed.extras["a", 0]].tobytes() == b"abc"


def test_a_copied_constant_is_plain() -> None:
    array = _floats(4)
    operand = Operand(BufferRef("constant", 0), (4,), "float32")
    schedule = Schedule((), (), (CopyStep(operand, Operand(BufferRef("output"), (4,), "float32"), 0),), (array,), 0)
    assert pack_constants(schedule, {}).layouts == {(0, None): 0}


def test_empty_and_scalar_constants() -> None:
    arrays = [np.zeros((0, 3), np.float32), _floats()]
    packed = pack_constants(_schedule(arrays, ["a", "b"]), {})
    assert [len(packed.blocks[packed.layouts[i, None]]) for i in (0, 1)] == [0, 4]


@pytest.mark.parametrize(
    "layout",
    [PackedLayout((4, 8), (4, 8), (0, 1)), PackedLayout((6, 8), (6, 9), (0, 1)), PackedLayout((6, 8), (6, 8), (0, 0))],
)
def test_a_layout_that_does_not_fit_is_refused(layout: PackedLayout) -> None:
    with pytest.raises(FuselineError, match=r"E0901.*does not fit"):
        pack_constants(_schedule([_floats(5, 7)], ["a"]), {"a": _kernel(layout)})


def test_memory_is_asked_for_once() -> None:
    asked: list[int] = []

    def allocate(count: int) -> NDArray[np.uint8]:
        asked.append(count)
        return np.zeros(count, np.uint8)

    pack_constants(_schedule([_floats(10), _floats(20, seed=1)], ["a", "b"]), {}, allocate)
    assert asked == [64 + 128]


def test_the_same_bytes_in_another_shape_are_one_block() -> None:
    array = _floats(12, 20)
    packed = pack_constants(_schedule([array, array.reshape(20, 12).copy(), array.T], ["a", "b", "c"]), {})
    assert packed.layouts[0, None] == packed.layouts[1, None] != packed.layouts[2, None]
    assert packed.packed_bytes == 2 * array.nbytes


def test_a_layout_that_moves_nothing_is_the_plain_block() -> None:
    array, layout = _floats(6, 8), PackedLayout((6, 8), (6, 1, 8), (1, 0, 2))
    packed = pack_constants(_schedule([array, array], ["a", "b"]), {"a": _kernel(layout), "b": _kernel()})
    assert packed.layouts[0, LayoutKey((6, 8), layout)] == packed.layouts[1, None]


def test_zeros_of_either_sign_are_two_blocks() -> None:
    packed = pack_constants(_schedule([np.zeros(9, np.float32), -np.zeros(9, np.float32)], ["a", "b"]), {})
    assert packed.layouts[0, None] != packed.layouts[1, None]
