"""Who takes part as workers come and go."""

from __future__ import annotations

from typing import Any

import pytest

from fuseline.cluster.admission import wanted
from fuseline.cluster.team import Team
from fuseline.cluster.worker_facts import worker_facts
from fuseline.errors import FuselineError
from tests.unit.cluster.fake_client import FakeClient


def _team(client: FakeClient, **options: Any) -> tuple[Team, list[str]]:
    notices: list[str] = []
    taken: Any = client
    return Team(taken, wanted("null"), notice=notices.append, **options), notices


def _other(**changes: Any) -> dict[str, Any]:
    return {**worker_facts(), **changes}


def test_workers_come_and_go():
    client = FakeClient("a")
    team, notices = _team(client)
    team.gather()
    assert list(team.members) == ["a"] and team.kind == worker_facts()["kind"]
    client.answers["b"] = _other(version="0.0.1")
    client.answers["c"] = _other(kind="another")
    client.answers["d"] = OSError("gone")
    client.answers["e"] = worker_facts()
    del client.answers["a"]
    team.refresh()
    assert list(team.members) == ["e"] and len(notices) == 3
    team.refresh()
    assert len(notices) == 3  # they are told once
    del client.answers["b"]
    team.refresh()
    client.answers["b"] = worker_facts()  # another process at the same address
    team.refresh()
    assert sorted(team.members) == ["b", "e"]
    team.forget("b")
    assert list(team.members) == ["e"]
    team.refresh()
    assert sorted(team.members) == ["b", "e"]


def test_the_most_frequent_kind():
    client = FakeClient("a")
    client.answers |= {"b": _other(kind="another"), "c": _other(kind="another")}
    team, notices = _team(client)
    team.gather()
    assert sorted(team.members) == ["b", "c"] and "another kind of machine" in notices[0]
    team, _ = _team(client, kind=worker_facts()["kind"])
    team.gather()
    assert list(team.members) == ["a"]


def test_a_worker_that_cannot_be_prepared():
    def prepare(address: str) -> None:
        if address == "a":
            raise FuselineError("E0502", "no room", node=address)

    client = FakeClient("a", "b")
    team, notices = _team(client, prepare=prepare)
    team.gather()
    assert list(team.members) == ["b"] and notices == ["1 worker does not take part: E0502: no room"]


def test_capacity_is_what_the_cores_have_room_for():
    client = FakeClient()
    client.answers = {name: _other(host="h", cores=2) for name in "abc"} | {"d": _other(host="i", cores=1)}
    team, _ = _team(client)
    team.gather()
    assert team.capacity == 3


def test_nobody():
    client = FakeClient()
    team, _ = _team(client, patience=0.0)
    with pytest.raises(FuselineError) as raised:
        team.gather()
    assert raised.value.code == "E1102" and "dask worker tcp://nowhere:1" in (raised.value.hint or "")
    client.answers["a"] = _other(python="2.7")
    team, _ = _team(client, patience=0.0)
    with pytest.raises(FuselineError) as raised:
        team.gather()
    assert raised.value.code == "E1102" and "Python 2.7 there" in raised.value.message


def test_the_scheduler_is_lost():
    client = FakeClient("a")
    team, _ = _team(client)
    team.gather()
    client.problem = OSError("closed")
    with pytest.raises(FuselineError) as raised:
        team.refresh()
    assert raised.value.code == "E1101"
    client.problem, client.status = None, "connecting"
    with pytest.raises(FuselineError) as raised:
        team.refresh()
    assert raised.value.code == "E1101" and raised.value.node == "tcp://nowhere:1"
