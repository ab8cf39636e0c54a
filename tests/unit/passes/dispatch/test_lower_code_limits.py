"""Which dispatches get a lower limit of code, and how low."""

from __future__ import annotations

from fuseline.passes.dispatch.lower_code_limits import lowered, too_long
from fuseline.report.records import ArmRecord, DispatchRecord, MemberRecord
from fuseline.targets.compiled_kernel import CompiledKernel, KernelArm


def _kernel(*, too_long: bool = False, arms: tuple[KernelArm, ...] = ()) -> CompiledKernel:
    return CompiledKernel(symbol="k", object_code=b"", family="", workgroups=1, too_long=too_long, arms=arms)


def _dispatch(name: str, members: tuple[str, ...], *arms: tuple[str, ...]) -> DispatchRecord:
    return DispatchRecord(
        name=name,
        executable=name,
        root="elementwise",
        members=[MemberRecord(id=member, kind="elementwise", role="member") for member in members],
        arms=[ArmRecord(root="elementwise", members=arm) for arm in arms],
    )


def test_whole_dispatches() -> None:
    dispatches = [_dispatch("short", ("a", "b")), _dispatch("long", ("c", "d"))]
    assert too_long(dispatches, {"short": _kernel(), "long": _kernel(too_long=True)}) == [("c", "d")]


def test_only_the_arm_that_is_too_long() -> None:
    arms = tuple(KernelArm(_kernel(too_long=long), (), (), ()) for long in (False, True))
    assert too_long([_dispatch("two", ("a", "b", "c"), ("a",), ("b", "c"))], {"two": _kernel(arms=arms)}) == [
        ("b", "c")
    ]


def test_all_members_where_arms_are_not_known() -> None:
    arms = tuple(KernelArm(_kernel(too_long=long), (), (), ()) for long in (False, True))
    assert too_long([_dispatch("two", ("a", "b"))], {"two": _kernel(arms=arms)}) == [("a", "b")]


def test_a_quarter_and_in_the_end_every_op_alone() -> None:
    limits: dict[str, int] = {}
    found: list[int] = []
    for _ in range(4):
        limits = lowered(limits, [("a", "b")], 10_000)
        found.append(limits["b"])
    assert found == [2500, 625, 1, 1]
    assert "c" not in limits


def test_the_lowest_limit_counts() -> None:
    assert lowered({"a": 2500}, [("a", "b")], 10_000) == {"a": 625, "b": 625}
