"""Who takes part, and why others do not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from fuseline.cluster.admission import (
    ABSENT,
    UNREADABLE,
    Wanted,
    WorkerFacts,
    chosen_kind,
    counted,
    facts_of,
    refusal,
    wanted,
)
from fuseline.cluster.worker_facts import worker_facts
from fuseline.errors import FuselineError

HERE = msgspec.convert(worker_facts(), WorkerFacts)


def test_this_process_takes_part():
    for target in ("cpu", "null", f"cpu:{HERE.isa}" if HERE.isa else "interpreter"):
        assert refusal(HERE, wanted(target)) is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"version": "9"}, "fuseline 9 there"),
        ({"sources": "0"}, "of other sources there (0, here"),
        ({"python": "3.99"}, "Python 3.99 there"),
        ({"packages": {**HERE.packages, "numpy": "1"}}, "numpy 1 there"),
        ({"packages": {}}, "missing there"),
        ({"machine": "mips"}, "another instruction set: mips"),
        ({"isa": ""}, "another instruction set: none of ours"),
        ({"isa": "other"}, "another instruction set: other"),
    ],
)
def test_who_does_not(changed: dict[str, Any], words: str):
    facts = msgspec.structs.replace(HERE, **changed)
    asked = Wanted(client=HERE, machine=HERE.machine, isa=HERE.isa or "some")
    assert words in (refusal(facts, asked) or "")
    if "isa" in changed or "machine" in changed:
        assert refusal(facts, wanted("null")) is None


def test_a_named_isa():
    facts = msgspec.structs.replace(HERE, machine="x86_64", features=["avx2", "fma"])
    asked = wanted("cpu:avx2")
    assert "without bmi2" in (refusal(facts, asked) or "")
    assert "x86_64, not aarch64" in (refusal(facts, wanted("cpu:neon")) or "")
    with pytest.raises(FuselineError) as raised:
        wanted("cpu:nothing")
    assert raised.value.code == "E0501"


def test_answers_that_are_none():
    assert facts_of(worker_facts()) == HERE
    assert facts_of(ModuleNotFoundError("fuseline")) == ABSENT
    assert facts_of(Exception("ModuleNotFoundError(\"No module named 'fuseline'\")")) == ABSENT
    assert str(facts_of(OSError("gone"))).startswith(UNREADABLE)
    assert facts_of({"version": "0.9"}) == facts_of(7) == UNREADABLE
    assert facts_of({**worker_facts(), "more": 1}) == HERE  # of a later fuseline: refused for its version


def test_a_kind_is_chosen():
    assert chosen_kind(["b", "a", "b"], None, "a") == "b"
    assert chosen_kind(["b", "a"], None, "b") == "b" and chosen_kind(["b", "a"], None, "c") == "a"
    assert chosen_kind(["big one", "small one"], "small", "") == "small one"
    assert chosen_kind(["one", "one more"], "one", "") == "one"
    for asked, words in (("one", "2 kinds of machine fit"), ("none", "no kinds of machine fit")):
        with pytest.raises(FuselineError) as raised:
            chosen_kind(["big one", "small one"], asked, "")
        assert raised.value.code == "E1102" and words in raised.value.message
        assert "big one; small one" in (raised.value.hint or "")


def test_reasons_are_counted():
    assert counted({}) == []
    assert counted({"a": "x", "b": "y", "c": "y"}) == [
        "2 workers do not take part: y",
        "1 worker does not take part: x",
    ]
