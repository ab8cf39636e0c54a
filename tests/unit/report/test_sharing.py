"""Who shares code, told from a hand-made record: two arms of one dispatch, one of which another dispatch runs, too."""

from __future__ import annotations

import msgspec

from fuseline.report.records import CompileRecord, DispatchRecord, SharingDecision
from fuseline.report.sharing import code_classes, companion_lines, companions, sharing_json, sharing_lines


def _dispatch(name: str, *kernels: str, loss: float = 0.0, unshared: tuple[str, ...] = ()) -> DispatchRecord:
    return DispatchRecord(
        name=name,
        executable=f"of_{name}",
        root="elementwise",
        members=[],
        kernels=kernels,
        code_bytes=100 * len(kernels),
        unshared=unshared,
        sharing_loss=loss,
    )


RECORD = CompileRecord(
    dedup="constants",
    dispatches=[
        _dispatch("a", "k0"),
        _dispatch("b", "k0", loss=0.123),
        _dispatch("c", "k0", "k1"),
        _dispatch("d", "k2", unshared=("@of_c: op 3 is another, and @gone",)),
    ],
    sharing=[
        SharingDecision(verdict="shared", first="a", second="b", code="shared", detail="arith.mulf has 2, 3"),
        SharingDecision(verdict="apart", first="a", second="d", code="constant-decides-code", detail="x", ns=1500.0),
    ],
    statistics={"executables": 3, "code_bytes": 300},
)


def test_a_class_runs_the_same_kernels():
    assert [(one.dispatches, one.kernels, one.code_bytes) for one in code_classes(RECORD)] == [
        (("a", "b"), ("k0",), 100),
        (("c",), ("k0", "k1"), 200),
        (("d",), ("k2",), 100),
    ]


def test_companions_have_a_kernel_in_common():
    assert [companions(RECORD, dispatch) for dispatch in RECORD.dispatches] == [["b", "c"], ["a", "c"], ["a", "b"], []]


def test_nothing_is_shared_at_level_none():
    record = msgspec.structs.replace(RECORD, dedup="none")
    assert [len(one.dispatches) for one in code_classes(record)] == [1, 1, 1, 1]
    assert companions(record, record.dispatches[0]) == []


def test_lines_and_their_document():
    text = list(sharing_lines(RECORD))
    assert text == [
        "level constants: 4 dispatches, 3 executables, 300 bytes of code",
        "  one executable (100 bytes): a, b",
        "  an executable of their own: c, d",
        "  shared  a and b: arith.mulf has 2, 3",
        "  apart   a and d: constant-decides-code: x (a launch would take 1.5 us longer)",
        "  b takes 12% longer in shared code, predicted",
        "  d keeps its code: c: op 3 is another, and @gone",
    ]
    document = sharing_json(RECORD)
    assert document["level"] == "constants" and [one["verdict"] for one in document["decisions"]] == ["shared", "apart"]
    assert list(document["unshared"]) == ["d"] and document["losses"] == {"b": 0.123}


def test_lines_of_one_dispatch():
    assert list(companion_lines(RECORD, RECORD.dispatches[1])) == [
        "  shares its code with a, c",
        "  takes 12% longer in shared code, predicted",
        "  shared  a and b: arith.mulf has 2, 3",
    ]
    assert list(companion_lines(RECORD, RECORD.dispatches[3]))[-1] == "  keeps its code: c: op 3 is another, and @gone"
