"""Which kernels a listing of code asks the target for, and what stands above each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

import pytest

from fuseline.code_listing import code_listing, find_dispatch
from fuseline.errors import FuselineError
from fuseline.report.records import CompileRecord, DispatchRecord
from fuseline.targets.target import Target


class _Asked:
    """Stands for a target: writes down what it is asked."""

    def code_text(self, headings: Mapping[str, Sequence[str]], form: str) -> str:
        return "\n".join([form, *(f"{symbol} | {' | '.join(lines)}" for symbol, lines in headings.items())])


def _dispatch(name: str, family: str, *kernels: str, executable: str = "", shape: str = "") -> DispatchRecord:
    return DispatchRecord(
        name=name, executable=executable or f"code_{name}", root="", members=[], family=family, kernels=kernels,
        shape=shape,
    )  # fmt: skip


RECORD = CompileRecord(
    dispatches=[
        _dispatch("000_contraction", "contraction", "k1", shape="4x8_f32"),
        _dispatch("001_copy", "nests", "k2", "k0"),
        _dispatch("002_contraction", "contraction", "k1", executable="code_000_contraction"),
        _dispatch("003_window", "window", "k0", "k1"),
        _dispatch("004_nothing", "host"),
    ]
)


def _listing(dispatch: str | None = None) -> list[str]:
    form, *kernels = code_listing(RECORD, cast(Target, _Asked()), "llvm", dispatch).split("\n")
    assert form == "llvm"
    return kernels


def test_each_kernel_is_listed_once_in_the_order_of_first_launches():
    assert [line.partition(" ")[0] for line in _listing()] == ["k1", "k2", "k0"]


def test_a_heading_names_all_that_launch_the_kernel():
    first, second, last = _listing()
    assert first == (
        "k1 | k1: contraction window | executable @code_000_contraction @code_003_window"
        " | dispatch 000_contraction_4x8_f32 002_contraction 003_window"
    )
    assert second == "k2 | k2: nests | executable @code_001_copy | dispatch 001_copy"
    assert last == "k0 | k0: nests window | executable @code_001_copy @code_003_window | dispatch 001_copy 003_window"


@pytest.mark.parametrize(
    ("word", "kernels"),
    [("000_contraction", ["k1"]), ("000_contraction_4x8_f32", ["k1"]), ("3", ["k0", "k1"]), ("004_nothing", [])],
)
def test_the_kernels_of_one_dispatch_keep_their_headings(word: str, kernels: list[str]):
    found = _listing(word)
    assert [line.partition(" ")[0] for line in found if line] == kernels
    assert set(found) <= {*_listing(), ""}


@pytest.mark.parametrize("number", range(5))
def test_a_dispatch_is_found_by_name_and_by_number(number: int):
    wanted = RECORD.dispatches[number]
    assert all(find_dispatch(RECORD, word) is wanted for word in (wanted.name, wanted.label, str(number)))


@pytest.mark.parametrize("word", ["5", "-1", "contraction", ""])
def test_others_are_refused_with_the_numbers_there_are(word: str):
    for asked in (lambda: find_dispatch(RECORD, word), lambda: _listing(word)):
        with pytest.raises(FuselineError) as caught:
            asked()
        assert caught.value.code == "E0501" and repr(word) in caught.value.message and caught.value.node == word
        assert caught.value.hint is not None and "0 to 4" in caught.value.hint
