"""What all trials of one search have in common, as every process that runs some of them gets it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from fuseline.tuning.knob import Knob


class SearchSetting(msgspec.Struct, frozen=True, kw_only=True):
    """One model with the options that every trial starts from.

    Attributes:
        model: the path of the model. options: arguments of `fuseline.compile` that are not their default, as JSON holds
        them. knobs: what is searched; a configuration chooses among these. plan: the plan of the default compile as
        text, which choices about groups change. seed: of inputs and of everything drawn. rounds: the most rounds that a
        trial is timed in. attribution: whether dispatches are timed one by one, too.
    """

    model: str
    options: dict[str, Any]
    knobs: tuple[Knob, ...]
    plan: str = ""
    seed: int = 0
    rounds: int = 60
    attribution: bool = True


Realize: TypeAlias = Callable[[SearchSetting, Mapping[str, str], Path], dict[str, Any]]
"""A configuration as arguments of `fuseline.compile`, the model aside; files that they name are in the folder."""
