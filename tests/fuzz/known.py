"""Differences that are documented, each with the page that says so. A reason here hides a finding, so each entry is as narrow as it can be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.case import Case


@dataclass(frozen=True, slots=True)
class Known:
    """`applies` to a case, the kind of finding and its detail; `reason` names the page."""

    reason: str
    applies: Callable[[Case, str, str], bool]


KNOWN: tuple[Known, ...] = ()


def known_reason(case: Case, kind: str, detail: str) -> str:
    """Why a finding is expected; empty where it is not."""
    return next((entry.reason for entry in KNOWN if entry.applies(case, kind, detail)), "")
