"""The table of known disagreements between onnx.reference, as corrected here, and onnxruntime."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.conformance.generated_calls import Variant

SIDES = ("reference", "onnxruntime", "both")


@dataclass(frozen=True, eq=False)
class Disagreement:
    """One entry; see the head of `disagreements.toml`."""

    op: str
    kind: str
    right: str
    ours: str
    because: str
    types: Sequence[str] = ()
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    within: int | None = None

    def covers(self, variant: Variant, difference: str) -> bool:
        """Whether it speaks of this `difference` (as `generated_calls.difference` says it) in the answers to
        `variant`."""
        if operator_of(variant) != self.op or not difference.startswith(self.kind):
            return False
        if self.types and not {dtype.name for _, dtype in variant.dtypes} & set(self.types):
            return False
        if self.within is not None and not any(f"(by {i})" in difference for i in range(1, self.within + 1)):
            return False
        return all(_is(variant.call.attributes.get(name), wanted) for name, wanted in self.attributes.items())


def _is(value: Any, wanted: Any) -> bool:
    choices: list[Any] = wanted if isinstance(wanted, list) else [wanted]
    return any(choice in (value, [value]) for choice in choices)


def operator_of(variant: Variant) -> str:
    """The operator as the table names it."""
    return f"{variant.domain}.{variant.op_type}" if variant.domain else variant.op_type


@cache
def known_disagreements() -> list[Disagreement]:
    """The committed table."""
    text = Path(__file__).with_name("disagreements.toml").read_text("utf-8")
    return [Disagreement(**entry) for entry in tomllib.loads(text)["disagreement"]]
