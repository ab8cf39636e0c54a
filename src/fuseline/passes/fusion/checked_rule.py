"""Rules from outside the tree, held to their word: they answer in the forms that exist, change nothing, and are
believed only where the structure bears them out. A rule judges what it likes to see together; whether the merged
dispatch can be computed is looked up again after each `Legal`.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from math import isfinite
from typing import Any, cast

from fuseline.errors import FuselineError
from fuseline.passes.fusion.decision import Answer, Legal, NotApplicable, WhyNot
from fuseline.passes.fusion.graph import FusionGraph
from fuseline.passes.fusion.group import Group
from fuseline.passes.fusion.rule import FusionRule, Merge, Shape, count_roots, scratch_refusal

_HINT = (
    "matches() returns Legal(), WhyNot(code, detail, at), Forbid(code, detail, at) or NotApplicable() and changes "
    "nothing; docs/errors/E0704.md"
)


def checked(rule: FusionRule, from_: str = "") -> FusionRule:
    """`rule`, which comes `from_` a file or package, with its answers checked. They raise E0704, naming the rule and
    the candidate, where they are none."""

    class CheckedRule(FusionRule):
        __doc__ = type(rule).__doc__
        name = rule.name
        after = rule.after
        late = rule.late
        last = rule.last
        shape = rule.shape
        origin = from_

        def matches(self, merge: Merge, graph: FusionGraph) -> Answer:
            answer = _asked(rule, merge, graph)
            believed = not isinstance(answer, Legal) or merge.joint
            return answer if believed else structural_refusal(merge, rule.shape) or answer

    return CheckedRule()


def structural_refusal(merge: Merge, shape: Shape) -> WhyNot | None:
    """Why a merge cannot be computed whatever a rule says of it; None where it can."""
    at = merge.consumer.root.name
    if shape is Shape.INLINE_PRODUCER:
        if merge.leaks:
            return WhyNot("multi-use", "other ops read the producer too, so it has to be stored", at)
        if merge.producer.reduces:
            return WhyNot("recompute", "a reduction read in place would be done again for each element", at)
        return None
    roots, limit = count_roots(merge.shared), merge.target.roots_limit
    if roots > limit:
        return WhyNot(
            "roots-limit", f"{roots} roots, the target runs {limit} in a dispatch", at, {"roots": float(roots)}
        )
    return scratch_refusal(merge)


def _asked(rule: FusionRule, merge: Merge, graph: FusionGraph) -> Answer:
    candidate = f"{merge.producer.root.name} -> {merge.consumer.root.name}"
    before = _stamp(merge.producer), _stamp(merge.consumer)
    try:
        answer: Any = rule.matches(merge, graph)
    except (Exception, SystemExit) as problem:
        raise _wrong(rule, candidate, _raised(problem)) from problem
    if (_stamp(merge.producer), _stamp(merge.consumer)) != before:
        raise _wrong(rule, candidate, "it changed the groups it was asked about")
    complaint = _complaint(answer)
    if complaint is not None:
        raise _wrong(rule, candidate, complaint)
    return answer


def _stamp(group: Group) -> tuple[object, ...]:
    return tuple(group.members), group.grid, tuple(group.grid_loop_of.items()), frozenset(group.inlined), group.arms


def _raised(problem: BaseException) -> str:
    frames = traceback.extract_tb(problem.__traceback__)
    if isinstance(problem, KeyError) and frames and frames[-1].name == "__post_init__":
        return f"it gave the reason {problem.args[0]!r}, which is none"
    return f"it raised {type(problem).__name__}: {problem}"


def _complaint(answer: object) -> str | None:
    """What is wrong with an answer, None for a good one."""
    if isinstance(answer, NotApplicable):
        return None
    if not isinstance(answer, Legal | WhyNot):
        return f"it answered {answer!r}"
    numbers, told = cast("object", answer.numbers), (answer.detail, answer.at) if isinstance(answer, WhyNot) else ()
    if not isinstance(numbers, Mapping) or not all(_is_number(key, value) for key, value in numbers.items()):
        return f"its numbers are {numbers!r}, not finite numbers by name"
    if not all(isinstance(cast("object", text), str) for text in told):
        return f"it answered {answer!r}, whose detail and op are no texts"
    return None


def _is_number(key: object, value: object) -> bool:
    return isinstance(key, str) and isinstance(value, int | float) and isfinite(value)


def _wrong(rule: FusionRule, candidate: str, message: str) -> FuselineError:
    return FuselineError("E0704", f"{message} at {candidate}", node=rule.name, hint=_HINT)
