"""What was asked of a kernel from outside, and what became of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

from fuseline.dispatch.view import DispatchView
from fuseline.ir.kernel_choice import HINT, Asked, parse_choice
from fuseline.targets.cpu.families.family import Plan, Policy, Unfollowed
from fuseline.targets.target import Refusal

T = TypeVar("T")

_ASIDE = "choice-direct"
"""Minimal filtering stands aside where the direct way is asked for: no reason of its own."""


def unreadable(asked: Asked) -> Unfollowed | None:
    """Why something is not even tried; None where it is."""
    if asked.stale:
        return Unfollowed(asked.text, Refusal("choice-stale", f"{asked.text}: {asked.stale}"))
    if parse_choice(asked.text) is None:
        return Unfollowed(asked.text, Refusal("choice-text", f"{asked.text!r} is no choice: {HINT}"))
    return None


def unfollowed(asked: Asked, refusals: Iterable[str], family: str) -> Unfollowed:
    """Why something was not followed, from what families said (`code: detail`) and the name of the one that takes the
    kernel."""
    for said in refusals:
        code, _, detail = said.partition(": ")
        if code.startswith("choice-") and code != _ASIDE:
            return Unfollowed(asked.text, Refusal(code, detail))
    return Unfollowed(asked.text, Refusal("choice-family", f"{asked.text}: kernels of {family} have no such choice"))


def built_as_asked(
    view: DispatchView, policy: Policy, offer: Callable[[Policy], T | None], plan_of: Callable[[T], Answer | None]
) -> tuple[T | None, Unfollowed | None]:
    """What `offer` answers where something is asked of the kernel of a dispatch, if that follows it, else what it
    answers where nothing is, and why. `offer` answers None for a kernel over the budget of code."""
    asked = policy.asked(view)
    if asked is None:
        return offer(policy), None
    why = unreadable(asked)
    if why is None:
        found = offer(policy)
        answer = None if found is None else plan_of(found)
        if found is not None and answer is not None and answer.plan.choice:
            return found, None
        why = over_budget(asked) if answer is None else unfollowed(asked, answer.refusals, answer.family)
    return offer(policy.without(view)), why


class Answer(NamedTuple):
    """The plan that was offered, by which family, and what others said."""

    plan: Plan
    family: str
    refusals: Iterable[str]


def over_budget(asked: Asked) -> Unfollowed:
    """What was asked makes the kernel longer than the budget of code."""
    return Unfollowed(asked.text, Refusal("choice-code", f"{asked.text}: the kernel would be longer than the budget"))


def asked_notes(plan: Plan, policy: Policy) -> Mapping[str, Any]:
    """What a report needs of a kernel where anything is asked of any: the `classes` of it and its parts, and under
    `asked` what became of what was asked of them."""
    found = tuple(_outcomes(plan))
    if not found and not policy.choices:
        return {}
    return {"classes": tuple(kernel_plan.view.kernel_class for kernel_plan in plan.kernel_plans), "asked": found}


def _outcomes(plan: Plan) -> Iterator[Mapping[str, str]]:
    """Per class: the choice, and why it was not followed (`code` and `detail`, empty where it was)."""
    for kernel_plan in plan.kernel_plans:
        if kernel_plan.choice:
            yield {"class": kernel_plan.view.kernel_class, "choice": kernel_plan.choice, "code": "", "detail": ""}
        elif kernel_plan.unfollowed is not None:
            why = kernel_plan.unfollowed.why
            said = {"choice": kernel_plan.unfollowed.text, "code": why.code, "detail": why.detail}
            yield {"class": kernel_plan.view.kernel_class, **said}
