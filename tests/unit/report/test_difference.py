"""A diff names what changed, and nothing for equal records."""

from __future__ import annotations

import copy

import msgspec

from fuseline.report.difference import difference, difference_lines
from fuseline.report.records import CompileRecord, Decision, DispatchRecord, MemberRecord, TunedChange
from tests.unit.report.records import RECORD


def test_equal_records_have_no_difference():
    found = difference(RECORD, copy.deepcopy(RECORD))
    assert found.empty
    assert difference_lines(found) == []


def test_seconds_are_no_difference():
    assert difference(RECORD, msgspec.structs.replace(RECORD, phase_seconds={"frontend": 9.0})).empty


def test_a_vanished_dispatch_and_a_flipped_decision_are_named():
    flipped = msgspec.structs.replace(RECORD.decisions[0], verdict="missed", code="scratch")
    after = msgspec.structs.replace(
        RECORD,
        dispatches=RECORD.dispatches[:1],
        decisions=[flipped, *RECORD.decisions[1:]],
        statistics={**RECORD.statistics, "dispatches": 1},
    )
    lines = difference_lines(difference(RECORD, after))
    assert "dispatches: 2 -> 1" in lines
    assert "- dispatch contraction [MatMul_2]" in lines
    assert any(line.startswith("- fused") for line in lines)
    assert any(line.startswith("+ missed") and "scratch" in line for line in lines)


def test_what_was_not_saved_is_not_compared():
    saved = msgspec.structs.replace(RECORD, dispatches=[], decisions=[])
    assert difference(saved, RECORD).empty
    assert difference(RECORD, saved).empty


def test_a_new_statistic_is_shown_from_none():
    after = msgspec.structs.replace(
        RECORD, statistics={**RECORD.statistics, "edges": {"fused": 1, "missed": {"scratch": 2}}}
    )
    found = difference(RECORD, after).statistics
    assert found == {"edges.missed.consumer-reduces": (1, None), "edges.missed.scratch": (None, 2)}


def _dispatch(name: str, *members: str) -> DispatchRecord:
    return DispatchRecord(
        name=name,
        executable=name,
        root="contraction",
        members=[MemberRecord(id=m, kind="copy", role="member") for m in members],
    )


def _record(*dispatches: DispatchRecord, graph: str = "g") -> CompileRecord:
    return CompileRecord(dispatches=list(dispatches), fingerprint=graph)


def _edge(producer: str, consumer: str, **fields: object) -> Decision:
    ends = {"producer": producer, "consumer": consumer, "producer_op": "copy", "consumer_op": "copy"}
    return Decision(rule="r", **ends, **fields)  # pyright: ignore[reportArgumentType]


def test_a_dispatch_that_lost_an_op_is_changed_and_the_decision_is_named():
    before, after = (
        _record(_dispatch("d", "copy.a", "copy.b")),
        _record(_dispatch("d", "copy.a"), _dispatch("e", "copy.b")),
    )
    before.decisions, after.decisions = (
        [_edge("copy.a", "copy.b", verdict="fused")],
        [_edge("copy.a", "copy.b", verdict="missed", code="scratch")],
    )
    found = difference(before, after)
    assert (found.appeared, found.vanished) == (["contraction [copy.b]"], [])
    assert [(change.gained, change.lost) for change in found.changed] == [([], ["copy copy.b"])]
    assert [line[0] for line in found.changed[0].decisions] == ["-", "+"]
    lines = difference_lines(found)
    assert "~ dispatch contraction [copy.a, copy.b] -> contraction [copy.a]" in lines
    assert sum("scratch" in line for line in lines) == 1


def test_the_most_alike_dispatches_are_paired():
    before = _record(_dispatch("d", "copy.a", "copy.b", "copy.c"), _dispatch("e", "copy.x"))
    after = _record(_dispatch("d", "copy.c", "copy.x"), _dispatch("e", "copy.a", "copy.b"))
    assert [(change.gained, change.lost) for change in difference(before, after).changed] == [
        ([], ["copy copy.c"]),
        (["copy copy.c"], []),
    ]


def test_equal_dispatches_are_counted():
    before = _record(_dispatch("d", "copy.a"), _dispatch("e", "copy.a"))
    assert difference(before, _record(_dispatch("d", "copy.a"))).vanished == ["contraction [copy.a]"]


def test_graphs_that_share_few_ids_are_matched_by_source_nodes():
    def one(id: str) -> DispatchRecord:
        return DispatchRecord(
            name="d",
            executable="d",
            root="copy",
            members=[MemberRecord(id=id, kind="copy", role="root", nodes=("Node_1",))],
        )

    assert difference(_record(one("copy.a"), graph="g"), _record(one("copy.z"), graph="h")).empty
    assert not difference(_record(one("copy.a")), _record(one("copy.z"))).empty


def test_a_plan_is_compared_with_a_compile_by_ids_without_kinds():
    assert difference(_record(_dispatch("group 1", "a", "b")), _record(_dispatch("d", "copy.a", "copy.b"))).empty


def test_what_a_search_changed_is_told_with_what_it_gained():
    kept = TunedChange(knob="dedup", choice="none", detail="code", gain=0.02)
    gone = TunedChange(knob="threads", choice="1", detail="threads", gain=-0.01)
    new = TunedChange(knob="plan/a", choice="apart", nodes=tuple(f"n{i}" for i in range(6)))
    found = difference(CompileRecord(tuned=[kept, gone]), CompileRecord(tuned=[kept, new]))
    assert found.tuned == [
        "- tuned threads = 1: threads; loses 1.00 %",
        "+ tuned plan/a = apart [n0, n1, n2, n3, ..]",
    ]
    assert not found.empty and difference_lines(found)[-2:] == found.tuned
