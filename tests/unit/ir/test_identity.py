"""What is remembered by identity is computed once per object, also for equal objects that are not the same."""

from __future__ import annotations

import pytest
from xdsl.ir.affine import AffineMap

from fuseline.ir.fast import identity
from fuseline.ir.fast.identity import by_first_identity, by_identities, by_identity


def _map(rank: int) -> AffineMap:
    return AffineMap.identity(rank)


def test_once_per_object():
    asked: list[AffineMap] = []

    @by_identity
    def rank(map_: AffineMap) -> int:
        asked.append(map_)
        return map_.num_dims

    first, equal = _map(3), _map(3)
    assert [rank(first), rank(first), rank(equal), rank(_map(4))] == [3, 3, 3, 4]
    assert len(asked) == 3 and asked[0] is first and asked[1] is equal


def test_once_per_tuple_of_objects():
    asked: list[int] = []

    @by_identities
    def ranks(maps: tuple[AffineMap, ...]) -> tuple[int, ...]:
        asked.append(len(maps))
        return tuple(map_.num_dims for map_ in maps)

    a, b = _map(1), _map(2)
    assert ranks((a, b)) == (1, 2) and ranks((a, b)) == (1, 2) and ranks((b, a)) == (2, 1) and ranks(()) == ()
    assert asked == [2, 2, 0]


def test_what_is_asked_about_stays_alive():
    @by_identity
    def rank(map_: AffineMap) -> int:
        return map_.num_dims

    # Without a reference kept, a later map would get the identity of an earlier one, and its answer.
    assert [rank(_map(i % 7)) for i in range(500)] == [i % 7 for i in range(500)]


def test_tables_are_bounded(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(identity, "_MANY", 4)
    calls: list[int] = []

    @by_identity
    def rank(map_: AffineMap) -> int:
        calls.append(map_.num_dims)
        return map_.num_dims

    maps = [_map(i) for i in range(6)]
    assert [rank(map_) for map_ in maps] == list(range(6)) and rank(maps[0]) == 0
    assert calls == [0, 1, 2, 3, 4, 5, 0]


def test_once_per_object_and_value():
    asked: list[int] = []

    @by_first_identity
    def result(map_: AffineMap, axis: int) -> str:
        asked.append(axis)
        return str(map_.results[axis])

    first, equal = _map(3), _map(3)
    assert [result(first, 1), result(first, 1), result(first, 2), result(equal, 1)] == ["d1", "d1", "d2", "d1"]
    assert asked == [1, 2, 1]
    assert [result(_map(2 + i % 5), i % 2) for i in range(300)] == [f"d{i % 2}" for i in range(300)]
