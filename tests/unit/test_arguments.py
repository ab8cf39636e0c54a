"""Arguments of the interface: what is taken as it is, and what is refused by the argument's name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from fuseline import arguments
from fuseline.errors import FuselineError
from fuseline.runtime.abi import MAX_THREADS


class Place:
    """A path of the caller's own, as text or as bytes."""

    def __init__(self, path: str | bytes) -> None:
        self.path = path

    def __fspath__(self) -> Any:
        return self.path


@pytest.mark.parametrize(
    ("given", "taken"), [(None, None), (1, 1), (MAX_THREADS, MAX_THREADS), (np.int32(3), 3), (np.uint8(2), 2)]
)
def test_numbers_of_threads(given: object, taken: int | None) -> None:
    assert arguments.thread_count(given) == taken


@pytest.mark.parametrize("given", [0, -1, MAX_THREADS + 1, True, np.bool_(True), 2.0, "2", [2], float("nan")])
def test_what_is_no_number_of_threads(given: object) -> None:
    with pytest.raises(FuselineError, match="threads is .* must be") as caught:
        arguments.thread_count(given)
    assert caught.value.code == "E0501"


@pytest.mark.parametrize("given", ["a/b", Path("a/b"), Place("a/b")])
def test_paths_in_every_form(given: Any) -> None:
    assert arguments.path_option("plan", given) == Path("a/b")
    assert arguments.paths("rules", [given, "c"]) == (Path("a/b"), Path("c"))


@pytest.mark.parametrize("given", [None, 3, b"a", "a\0b", Path("a\0b"), Place(b"a"), ["a"]])
def test_what_is_no_path(given: object) -> None:
    with pytest.raises(FuselineError, match="plan is .* must be the path of a file") as caught:
        arguments.path_option("plan", given)
    assert caught.value.code == "E0501"


@pytest.mark.parametrize(
    ("read", "given"),
    [
        (lambda value: arguments.paths("rules", value), "one.py"),
        (lambda value: arguments.paths("rules", value), Path("one.py")),
        (lambda value: arguments.paths("rules", value), {"one.py"}),
        (lambda value: arguments.paths("rules", value), ["one.py", 2]),
        (arguments.key_list, b"key"),
        (arguments.key_list, "key"),
        (lambda value: arguments.mapping("shapes", value), [("x", 1)]),
        (lambda value: arguments.mapping("shapes", value), "x"),
    ],
)
def test_one_where_several_are_wanted_is_refused(read: Callable[[Any], object], given: object) -> None:
    with pytest.raises(FuselineError) as caught:
        read(given)
    assert caught.value.code == "E0501"
    assert caught.value.message.partition(" ")[0] in ("rules", "trusted", "shapes")


def test_lists_and_mappings_stay_what_they_are() -> None:
    assert arguments.key_list(None) is None
    assert arguments.key_list(("a", "b")) == ["a", "b"]
    assert arguments.mapping("shapes", None) is None
    given = MappingProxyType({"x": (1, 2)})
    assert arguments.mapping("shapes", given) is given
    assert arguments.paths("rules", ()) == ()


def test_a_long_value_is_cut_in_the_message() -> None:
    assert len(arguments.wrong("threads", "x" * 5000, "a number").message) < 120
