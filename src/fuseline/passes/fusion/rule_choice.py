"""Which rules take part: those of the tree and others, all of them, some by name, or all but some.

The joins of several groups have names as rules do (decisions give them), and are chosen in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from fuseline.errors import FuselineError
from fuseline.passes.fusion.chain_cuts import CHAIN_CUTS
from fuseline.passes.fusion.horizontal import CONCAT_SLICES, SAME_SPACE, SHARED_OPERAND, SMALL
from fuseline.passes.fusion.rule import FusionRule, builtin_rules, order_rules
from fuseline.passes.fusion.streamed_softmax import STREAMED_SOFTMAX

JOINS = (STREAMED_SOFTMAX, CHAIN_CUTS, CONCAT_SLICES, SHARED_OPERAND, SAME_SPACE, SMALL)
"""What makes one group of several at once, or fewer of some, in order."""


@dataclass(frozen=True)
class ChosenRules:
    """The rules that are asked, in order, and the joins that are done."""

    rules: tuple[FusionRule, ...] = ()
    joins: frozenset[str] = frozenset()


def chosen_rules(more: Iterable[FusionRule], only: Sequence[str] = (), without: Sequence[str] = ()) -> ChosenRules:
    """The rules of the tree and `more`: those named in `only` (none: all) and not in `without`. The names must be
    known; raises E0704 as `order_rules` does."""
    named = frozenset(only or known_names(more)) - frozenset(without)
    rules = order_rules([*builtin_rules(), *more])
    return ChosenRules(tuple(rule for rule in rules if rule.name in named), named & frozenset(JOINS))


def known_names(more: Iterable[FusionRule]) -> list[str]:
    """Every name that can be chosen, in order."""
    return [*(rule.name for rule in order_rules([*builtin_rules(), *more])), *JOINS]


def require_known(option: str, names: Iterable[str], more: Iterable[FusionRule], code: str, node: str = "") -> None:
    """Raises `code` (at `node`) for the first of `names`, which `option` gives, that no rule or join has."""
    known = known_names(more)
    for name in names:
        if name not in known:
            near = get_close_matches(name, known, 3)
            hint = f"did you mean {' or '.join(near)}?" if near else f"use names out of {', '.join(known)}"
            raise FuselineError(code, f"{option}: no fusion rule is called {name!r}", node=node or None, hint=hint)
