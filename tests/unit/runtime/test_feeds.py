"""Feeds: every refusal names the feed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from fuseline.buffers import INDEX_TYPE, BufferRef
from fuseline.errors import FuselineError
from fuseline.runtime import Session, TensorSpec
from fuseline.runtime.feeds import admit

N = ("sum", ((1, "n"),))
DOUBLE = ("sum", ((2, "n"),))


@pytest.fixture(scope="module")
def session(kit: Any) -> Session:
    inputs = [
        TensorSpec("x", "float32", (N, 4)),
        TensorSpec("mask", "bool", (N,)),
        TensorSpec("twice", "float32", (DOUBLE,)),
    ]
    steps = [kit.command("double", [BufferRef("input", 0), BufferRef("output", 0)], ("sum", ((4, "n"),)), 1000)]
    return Session(kit.artifact(inputs, [TensorSpec("y", "float32", (N, 4))], steps, symbols={"n": (2, 8)}))


def _feeds(n: int = 3, **changes: Any) -> dict[str, Any]:
    good = {"x": np.ones((n, 4), np.float32), "mask": np.ones(n, bool), "twice": np.ones(2 * n, np.float32)}
    return {name: value for name, value in {**good, **changes}.items() if value is not None}


def _error(session: Session, feeds: dict[str, Any]) -> FuselineError:
    with pytest.raises(FuselineError) as caught:
        session.run(feeds)
    return caught.value


def test_good_feeds_run(session: Session) -> None:
    np.testing.assert_array_equal(session.run(_feeds())["y"], np.full((3, 4), 2, np.float32))


@pytest.mark.parametrize(
    ("changes", "code", "feed"),
    [
        ({"z": np.ones(1)}, "E0201", "z"),
        ({"mask": None}, "E0202", "mask"),
        ({"mask": None, "mask2": np.ones(3, bool)}, "E0201", "mask2"),
        ({"x": np.ones((3, 5), np.float32)}, "E0203", "x"),
        ({"x": np.ones((3, 4, 1), np.float32)}, "E0203", "x"),
        ({"x": np.float32(1)}, "E0203", "x"),
        ({"mask": np.ones(4, bool)}, "E0203", "mask"),
        ({"twice": np.ones(7, np.float32)}, "E0203", "twice"),
        ({"x": np.ones((3, 4))}, "E0204", "x"),
        ({"x": np.ones((3, 4), ">f4")}, "E0204", "x"),
        ({"x": [[1.0] * 4] * 3}, "E0204", "x"),
        ({"x": [[1.0], [1.0, 2.0]]}, "E0204", "x"),
        ({"x": object()}, "E0204", "x"),
        ({"mask": np.ones(3, np.uint8)}, "E0204", "mask"),
    ],
)
def test_refusals_name_the_feed(session: Session, changes: dict[str, Any], code: str, feed: str) -> None:
    error = _error(session, _feeds(**changes))
    assert (error.code, error.node) == (code, feed)


@pytest.mark.parametrize("n", [0, 1, 9])
def test_sizes_outside_their_bounds_are_refused(session: Session, n: int) -> None:
    error = _error(session, _feeds(n))
    assert (error.code, error.node) == ("E0203", "x") and "in 2..8" in error.message


def test_disagreement_names_both_feeds(session: Session) -> None:
    assert "'x'" in _error(session, _feeds(mask=np.ones(4, bool))).message


def test_a_refused_run_leaves_the_session_usable(session: Session) -> None:
    for _ in range(20):
        _error(session, _feeds(x=np.ones((3, 5), np.float32)))
    assert session.run(_feeds())["y"].shape == (3, 4)


class _Exporter:
    """Speaks DLPack and nothing else."""

    def __init__(self, array: Any) -> None:
        self._array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def test_dlpack_and_integer_lists(session: Session, kit: Any) -> None:
    np.testing.assert_array_equal(
        session.run(_feeds(x=_Exporter(np.ones((3, 4), np.float32))))["y"], np.full((3, 4), 2, np.float32)
    )
    spec = [TensorSpec(name, "int64", (3,)) for name in "xy"]
    copy = Session(
        kit.artifact(spec[:1], spec[1:], [kit.command("copy", [BufferRef("input"), BufferRef("output")], 24, 1)])
    )
    assert copy.run({"x": [1, 2, 3]})["y"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("scale", [1 << 44, 1 << 30])
def test_a_size_too_large_for_memory_is_coded(kit: Any, scale: int) -> None:
    huge = ("sum", ((scale, "n", "n"),))
    spec = TensorSpec("x", "uint8", (N,))
    session = Session(kit.artifact([spec], [TensorSpec("y", "uint8", (huge,))], [], arena_bytes=huge))
    assert _error(session, {"x": np.ones(1000, np.uint8)}).code == "E0405"
    session = Session(kit.artifact([spec], [TensorSpec("y", "uint8", (huge,))], []))
    assert _error(session, {"x": np.ones(1000, np.uint8)}).code == "E0405"


HELD = {  # the largest number that each type holds, and one that it does not
    "float16": (65504.0, 70000.0),
    "bfloat16": (2.0**127, 3.4e38 * 1.1),
    "float32": (3.4e38, 1e39),
    "float64": (10**308, 10**309),
    "int8": (127, 128),
    "uint8": (255, -1),
    "int64": (2**63 - 1, 2**63),
    "uint64": (2**64 - 1, 2**64),
}


@pytest.mark.parametrize("dtype", HELD)
def test_a_python_number_is_held_or_refused(dtype: str) -> None:
    spec, (fits, large) = TensorSpec("x", dtype, ()), HELD[dtype]
    assert float(admit([spec], {"x": fits})[0]) == pytest.approx(float(fits))
    for number in (large, -2 * abs(large)):
        with pytest.raises(FuselineError) as caught:
            admit([spec], {"x": number})
        assert (caught.value.code, caught.value.node) == ("E0204", "x")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_python_numbers_that_are_not_finite_stay_so(dtype: str) -> None:
    spec = TensorSpec("x", dtype, ())
    assert [float(admit([spec], {"x": float(text)})[0]) for text in ("inf", "-inf")] == [math.inf, -math.inf]
    assert math.isnan(float(admit([spec], {"x": math.nan})[0]))


@pytest.mark.parametrize(
    ("number", "dtype"), [(2, "bool"), (1, "bool"), (True, "int64"), (True, "bfloat16"), (0.5, "int32")]
)
def test_a_python_number_of_another_kind_is_refused(number: Any, dtype: str) -> None:
    with pytest.raises(FuselineError, match="E0204"):
        admit([TensorSpec("x", dtype, ())], {"x": number})


def test_a_wide_integer_that_an_index_cannot_hold_is_refused() -> None:
    spec = TensorSpec("n", "int64", ("n",), type=INDEX_TYPE)
    assert admit([spec], {"n": np.uint64(5)})[0].tolist() == 5
    with pytest.raises(FuselineError, match="E0204"):
        admit([spec], {"n": np.uint64(2**64 - 1)})
